"""What the plan needs to know about a node, taken out of the API's JSON form.

Pure: the same function reads live objects and recorded ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rbln_stack import contract

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rbln_stack.profiles import VendorProfile


@dataclass(frozen=True, slots=True, order=True)
class Taint:
    """A taint of a node."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return (
            f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """One accelerator node; an empty text means that the node does not say."""

    name: str
    os_id: str
    os_version: str
    kernel: str
    arch: str
    runtime: str
    runtime_version: str
    kubelet_version: str
    taints: tuple[Taint, ...]
    unschedulable: bool
    ready: bool
    labels: Mapping[str, str] = field(hash=False)

    @property
    def missing_labels(self) -> tuple[str, ...]:
        """The labels without which the node cannot be put into a pool."""
        return tuple(key for key in contract.GROUPING_LABELS if not self.labels.get(key))


def labels_of(manifest: Mapping[str, Any]) -> Mapping[str, str]:
    """All labels of an object."""
    labels: Mapping[str, str] = manifest.get("metadata", {}).get("labels") or {}
    return labels


def has_accelerator(manifest: Mapping[str, Any], profile: VendorProfile) -> bool:
    """Whether NFD found a device of the vendor, in either spelling of its label."""
    labels = labels_of(manifest)
    return any(labels.get(key) == "true" for key in profile.present_labels)


def has_nfd_label(manifest: Mapping[str, Any]) -> bool:
    """Whether NFD has written anything about the node."""
    return any(key.startswith(contract.NFD_PREFIX) for key in labels_of(manifest))


def node_facts(
    manifest: Mapping[str, Any], profile: VendorProfile, more_labels: Collection[str] = ()
) -> NodeFacts:
    """Keep what the plan reads: a node carries some hundred labels, annotations and images."""
    labels = labels_of(manifest)
    fixed = (*contract.GROUPING_LABELS, contract.HOSTNAME_LABEL)
    wanted = {*fixed, *profile.present_labels, *more_labels}
    own = f"{profile.label_domain}/"
    kept = {key: labels[key] for key in sorted(labels) if key in wanted or key.startswith(own)}
    spec = manifest.get("spec") or {}
    status = manifest.get("status") or {}
    info = status.get("nodeInfo") or {}
    runtime, _, runtime_version = info.get("containerRuntimeVersion", "").partition("://")
    return NodeFacts(
        name=manifest["metadata"]["name"],
        os_id=kept.get(contract.OS_ID_LABEL, ""),
        os_version=kept.get(contract.OS_VERSION_LABEL, ""),
        kernel=kept.get(contract.KERNEL_LABEL, ""),
        arch=kept.get(contract.ARCH_LABEL, ""),
        runtime=runtime,
        runtime_version=runtime_version,
        kubelet_version=info.get("kubeletVersion", ""),
        taints=tuple(sorted(_taint(taint) for taint in spec.get("taints") or ())),
        unschedulable=bool(spec.get("unschedulable")),
        ready=_ready(status),
        labels=kept,
    )


def _taint(manifest: Mapping[str, Any]) -> Taint:
    return Taint(manifest.get("key", ""), manifest.get("value", ""), manifest.get("effect", ""))


def _ready(status: Mapping[str, Any]) -> bool:
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )
