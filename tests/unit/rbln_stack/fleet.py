"""Node manifests for tests, as small as discovery allows."""

from __future__ import annotations

from typing import Any

from rbln_stack import contract
from rbln_stack.nodes import NodeFacts, node_facts
from rbln_stack.profiles import RBLN

BY_CLASS, BY_VENDOR = RBLN.present_labels


def manifest(
    name: str,
    *,
    os_id: str = "ubuntu",
    os_version: str = "22.04",
    kernel: str = "5.15.0-91-generic",
    arch: str = "amd64",
    present: str | None = BY_CLASS,
    runtime: str = "containerd://2.1.4",
    taints: list[dict[str, str]] | None = None,
    drop: tuple[str, ...] = (),
    labels: dict[str, str] | None = None,
) -> dict[str, Any]:
    """A node object as the API server shows it."""
    values = {
        contract.OS_ID_LABEL: os_id,
        contract.OS_VERSION_LABEL: os_version,
        contract.KERNEL_LABEL: kernel,
        contract.ARCH_LABEL: arch,
        "kubernetes.io/hostname": name,
    }
    if present:
        values[present] = "true"
    values |= labels or {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {key: value for key, value in values.items() if key not in drop},
        },
        "spec": {"taints": taints or []},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"containerRuntimeVersion": runtime, "kubeletVersion": "v1.34.2"},
        },
    }


def facts(name: str, more_labels: tuple[str, ...] = (), **keywords: Any) -> NodeFacts:
    """The facts of such a node."""
    return node_facts(manifest(name, **keywords), RBLN, more_labels)
