"""What the agent keeps of the cluster's objects, taken out of their JSON. Pure.

A node or a pod is some ten kilobytes as JSON; of a fleet only these records stay in memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rbln_stack import contract

if TYPE_CHECKING:
    from collections.abc import Mapping

Manifest = dict[str, Any]

REVISION_LABEL: Final = "controller-revision-hash"
OPERAND_PREFIX: Final = "rbln-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """Keys by which the agent recognises a vendor's nodes, pods and resources."""

    group: str
    stem: str
    present_labels: tuple[str, ...]
    resources: tuple[str, ...]

    @property
    def workload_label(self) -> str:
        """The key that gives a node to containers or to virtual machines."""
        return f"{self.group}/{self.stem}.workload.config"

    def deploy_label(self, operand: str) -> str:
        """The key by which a node opts out of an operand or pauses it."""
        return f"{self.group}/{self.stem}.deploy.{operand}"


def _present(devices: contract.Devices) -> tuple[str, ...]:
    return (
        f"{contract.NFD_PREFIX}pci-{devices.pci_class}_{devices.pci_vendor}.present",
        f"{contract.NFD_PREFIX}pci-{devices.pci_vendor}.present",
    )


VENDORS: Final[Mapping[str, Vendor]] = {
    "rbln": Vendor(
        group="rebellions.ai",
        stem="npu",
        present_labels=_present(contract.RBLN_DEVICES),
        resources=("rebellions.ai/ATOM", "rebellions.ai/REBEL", "rebellions.ai/npu"),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node; `allocatable` holds the resources whose names have a domain."""

    name: str
    ready: bool
    labels: Mapping[str, str] = field(hash=False)
    allocatable: Mapping[str, int] = field(hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSet:
    """A DaemonSet of the stack, and where its pods may run."""

    uid: str
    name: str
    namespace: str
    component: str
    pool: str
    instance: str
    on_delete: bool
    generation: int
    observed: int
    desired: int
    ready: int
    updated: int
    node_selector: Mapping[str, str] = field(hash=False)
    affinity: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod of some DaemonSet; `why` tells why it is not ready."""

    name: str
    node: str
    owner: str
    revision: str
    ready: bool
    leaving: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A recorded template of a DaemonSet."""

    owner: str
    number: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """A status object: what it asks for and what it says now."""

    name: str
    generation: int
    spec: Mapping[str, Any] = field(hash=False)
    status: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything a verdict rests on."""

    vendor: Vendor
    nodes: tuple[Node, ...]
    daemon_sets: tuple[DaemonSet, ...]
    pods: tuple[Pod, ...]
    revisions: tuple[Revision, ...]
    drivers: tuple[Declaration, ...]
    policies: tuple[Declaration, ...]


def node(manifest: Manifest) -> Node:
    """A node's labels, resources and condition."""
    status = manifest.get("status") or {}
    amounts = status.get("allocatable") or {}
    return Node(
        name=manifest["metadata"]["name"],
        ready=_condition(status, "Ready"),
        labels=_labels(manifest),
        allocatable={key: _whole(value) for key, value in amounts.items() if "/" in key},
    )


def daemon_set(manifest: Manifest, vendor: Vendor) -> DaemonSet:
    """A DaemonSet; numbers its controller has not written yet count as zero."""
    metadata, spec = manifest["metadata"], manifest.get("spec") or {}
    status = manifest.get("status") or {}
    pod = (spec.get("template") or {}).get("spec") or {}
    labels = _labels(manifest)
    affinity = ((pod.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    return DaemonSet(
        uid=metadata.get("uid", ""),
        name=metadata["name"],
        namespace=metadata.get("namespace", ""),
        component=component_of(labels.get(contract.COMPONENT_LABEL) or metadata["name"]),
        pool=labels.get(f"{vendor.group}/driver-node-pool", ""),
        instance=labels.get(f"{vendor.group}/driver-instance", ""),
        on_delete=(spec.get("updateStrategy") or {}).get("type") == "OnDelete",
        generation=metadata.get("generation", 0),
        observed=status.get("observedGeneration", 0),
        desired=status.get("desiredNumberScheduled", 0),
        ready=status.get("numberReady", 0),
        updated=status.get("updatedNumberScheduled", 0),
        node_selector=pod.get("nodeSelector") or {},
        affinity=affinity or {},
    )


def component_of(label: str) -> str:
    """The operand's word: `rbln-driver` is the driver, but `rbln-daemon` is called that."""
    return label if label == contract.DAEMON_OPERAND else label.removeprefix(OPERAND_PREFIX)


def pod(manifest: Manifest) -> Pod | None:
    """A pod that belongs to a DaemonSet; any other is None."""
    metadata, status = manifest["metadata"], manifest.get("status") or {}
    owner = _owner(metadata)
    if owner is None:
        return None
    return Pod(
        name=metadata["name"],
        node=(manifest.get("spec") or {}).get("nodeName", ""),
        owner=owner,
        revision=_labels(manifest).get(REVISION_LABEL, ""),
        ready=_condition(status, "Ready"),
        leaving="deletionTimestamp" in metadata,
        why=_why(status),
    )


def revision(manifest: Manifest) -> Revision | None:
    """A recorded template of a DaemonSet; that of anything else is None."""
    owner = _owner(manifest["metadata"])
    if owner is None:
        return None
    digest = _labels(manifest).get(REVISION_LABEL, "")
    return Revision(owner=owner, number=manifest.get("revision", 0), digest=digest)


def declaration(manifest: Manifest) -> Declaration:
    """A status object of either kind."""
    metadata = manifest["metadata"]
    return Declaration(
        name=metadata["name"],
        generation=metadata.get("generation", 0),
        spec=manifest.get("spec") or {},
        status=manifest.get("status") or {},
    )


def _labels(manifest: Manifest) -> Mapping[str, str]:
    labels: Mapping[str, str] = manifest["metadata"].get("labels") or {}
    return labels


def _owner(metadata: Manifest) -> str | None:
    for reference in metadata.get("ownerReferences") or ():
        if reference.get("controller") and reference.get("kind") == "DaemonSet":
            return str(reference.get("uid", ""))
    return None


def _condition(status: Manifest, kind: str) -> bool:
    return any(
        condition.get("type") == kind and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )


def _whole(amount: object) -> int:
    """Extended resources come as whole numbers; anything else is none."""
    text = str(amount)
    return int(text) if text.isdecimal() else 0


def _why(status: Manifest) -> str:
    """The first container's own word for what it waits for, else the pod's phase."""
    every = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    for container in every:
        waiting = (container.get("state") or {}).get("waiting") or {}
        # A later container says nothing but that it waits for its turn.
        if waiting.get("reason") not in {None, "PodInitializing"}:
            return f"{container.get('name', '')} {waiting['reason']}"
    return str(status.get("reason") or status.get("phase") or "Unknown")
