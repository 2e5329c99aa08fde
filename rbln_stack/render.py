"""Registered resources → the Kubernetes objects to apply, in the order of their dependencies.

Pure. The command line records the resources by running the program (`cli/rendering.py`).
"""

from __future__ import annotations

import heapq
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import yaml

from rbln_stack.errors import PlanError, Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

Manifest = dict[str, Any]

# What the API server gives an object that nobody has applied yet.
UNKNOWN_UID: Final = "00000000-0000-0000-0000-000000000000"
HEAD: Final = "# Written by rbln-stack render."
_FIRST_KINDS: Final = ("Namespace", "CustomResourceDefinition")
_FIRST_KEYS: Final = ("apiVersion", "kind", "metadata", "name", "namespace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One resource: an object if `manifest` is set, else a step between objects."""

    urn: str
    manifest: Manifest | None = field(hash=False)
    after: frozenset[str] = frozenset()


def in_order(recorded: Iterable[Recorded]) -> list[Manifest]:
    """The objects such that each follows all it depends on; otherwise by kind and name."""
    by_urn = {one.urn: one for one in recorded}
    waiting = {urn: set(one.after & by_urn.keys()) for urn, one in by_urn.items()}
    followers: dict[str, list[str]] = {urn: [] for urn in by_urn}
    for urn, needed in waiting.items():
        for other in needed:
            followers[other].append(urn)
    ready = [(_rank(by_urn[urn]), urn) for urn, needed in waiting.items() if not needed]
    heapq.heapify(ready)
    ordered: list[Recorded] = []
    while ready:
        _, urn = heapq.heappop(ready)
        ordered.append(by_urn[urn])
        for follower in followers[urn]:
            waiting[follower].discard(urn)
            if not waiting[follower]:
                heapq.heappush(ready, (_rank(by_urn[follower]), follower))
    if len(ordered) < len(by_urn):
        raise PlanError([_circle(by_urn.keys() - {one.urn for one in ordered})])
    return [cleaned(one.manifest) for one in ordered if one.manifest is not None]


def cleaned(manifest: Mapping[str, Any]) -> Manifest:
    """The object with whole numbers and keys in one order.

    An owner that does not exist yet has no identity. Kubernetes removes objects whose owner it
    cannot find, so such a reference must not be applied by hand.
    """
    plain = _plain(manifest)
    metadata = plain.get("metadata")
    if isinstance(metadata, dict) and "ownerReferences" in metadata:
        owners = [one for one in metadata["ownerReferences"] if one.get("uid") != UNKNOWN_UID]
        metadata["ownerReferences"] = owners
        if not owners:
            del metadata["ownerReferences"]
    return dict(plain)


def documents(manifests: Iterable[Manifest]) -> str:
    """All objects as one stream of YAML documents."""
    return "---\n".join(document(manifest) for manifest in manifests)


def document(manifest: Manifest) -> str:
    """One object as YAML; text of several lines stays readable."""
    return yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True)


def file_names(manifests: Sequence[Manifest]) -> list[str]:
    """`NN-kind-name.yaml`, numbered so that the order of names is the order of dependencies."""
    width = max(2, len(str(len(manifests))))
    return [
        f"{number:0{width}}-{_slug(manifest['kind'])}-{_slug(_name(manifest))}.yaml"
        for number, manifest in enumerate(manifests, 1)
    ]


class _Dumper(yaml.SafeDumper):
    """A dumper of its own, so that the library's is left as it is."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the library's signature
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def _rank(one: Recorded) -> tuple[int, str, str, str]:
    if one.manifest is None:
        return (-1, "", "", one.urn)
    kind = str(one.manifest.get("kind", ""))
    early = _FIRST_KINDS.index(kind) if kind in _FIRST_KINDS else len(_FIRST_KINDS)
    metadata = one.manifest.get("metadata") or {}
    return (early, kind, str(metadata.get("namespace", "")), str(metadata.get("name", "")))


def _plain(value: Any) -> Any:  # noqa: ANN401 - anything that JSON can hold
    if isinstance(value, dict):
        keys = sorted(value, key=_key_rank)
        return {key: _plain(value[key]) for key in keys if value[key] is not None}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    # The wire knows no whole numbers; every number in the stack's objects is one.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _key_rank(key: str) -> tuple[int, str]:
    return (_FIRST_KEYS.index(key) if key in _FIRST_KEYS else len(_FIRST_KEYS), key)


def _name(manifest: Manifest) -> str:
    return str(manifest["metadata"]["name"])


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.-]+", "-", text.lower())


def _circle(urns: Collection[str]) -> Problem:
    names = ", ".join(sorted(urn.rsplit("::", 1)[-1] for urn in urns))
    return Problem("resources", f"these wait for each other: {names}", "Remove one of the edges")
