"""Records accelerator nodes for previews without a cluster. Pure but for the last function.

What is recorded has the form that `kubectl get nodes -o json` prints, so either can be given to
`discovery.snapshot`. Fields that the program does not read, addresses and annotations above all,
stay out of a file that is meant for a repository.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rbln_stack.errors import DiscoveryError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_INFO: Final = ("containerRuntimeVersion", "kernelVersion", "kubeletVersion", "osImage")
_MODE: Final = 0o644


def recorded(manifests: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The list of nodes, each once and by name."""
    by_name = {manifest["metadata"]["name"]: manifest for manifest in manifests}
    items = [_node(by_name[name]) for name in sorted(by_name)]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def text(content: Mapping[str, Any]) -> str:
    """One form for equal content, one label per line: a change is a readable difference."""
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def write(path: Path, content: str) -> None:
    """Put the file in place as a whole: a reader sees the old list or the new one."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            name = Path(file.name)
            try:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                name.chmod(_MODE)
                name.replace(path)
            except BaseException:
                name.unlink(missing_ok=True)
                raise
    except OSError as error:
        reason = error.strerror or str(error)
        remedy = "Choose a file in a folder that exists and can be written"
        raise DiscoveryError(
            [Problem(f"file {path}", f"cannot be written ({reason})", remedy, code="snapshot")]
        ) from error


def _node(manifest: Mapping[str, Any]) -> dict[str, Any]:
    metadata = manifest["metadata"]
    spec = manifest.get("spec") or {}
    status = manifest.get("status") or {}
    info = status.get("nodeInfo") or {}
    kept: dict[str, Any] = {}
    if spec.get("taints"):
        kept["taints"] = sorted(
            (_taint(taint) for taint in spec["taints"]), key=lambda taint: sorted(taint.items())
        )
    if spec.get("unschedulable"):
        kept["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": metadata["name"], "labels": dict(metadata.get("labels") or {})},
        "spec": kept,
        "status": {
            "nodeInfo": {key: info[key] for key in _INFO if info.get(key)},
            "conditions": [
                {"type": "Ready", "status": condition.get("status", "Unknown")}
                for condition in status.get("conditions") or ()
                if condition.get("type") == "Ready"
            ],
        },
    }


def _taint(taint: Mapping[str, Any]) -> dict[str, str]:
    """Without the time it was added, which differs on every run."""
    return {key: taint[key] for key in ("key", "value", "effect") if taint.get(key)}
