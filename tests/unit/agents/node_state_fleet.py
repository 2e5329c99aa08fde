"""A small cluster as JSON, complete and ready unless a test breaks it."""

from __future__ import annotations

from typing import Any

from agents.node_state import facts
from rbln_stack import contract

RBLN = facts.VENDORS["rbln"]
POOL = "ubuntu22.04-5.15.0-91-generic"
INSTANCE = "rbln-driver"
OPERANDS = (
    "operator-validator",
    "container-toolkit",
    "device-plugin",
    "npu-feature-discovery",
    "rbln-daemon",
    "metrics-exporter",
)
Manifest = dict[str, Any]


def node(
    name: str,
    *,
    kernel: str = "5.15.0-91-generic",
    allocatable: str = "4",
    ready: str = "True",
    labels: dict[str, str] | None = None,
    drop: str = "",
) -> Manifest:
    values = {
        RBLN.present_labels[0]: "true",
        contract.OS_ID_LABEL: "ubuntu",
        contract.OS_VERSION_LABEL: "22.04",
        contract.KERNEL_LABEL: kernel,
        contract.ARCH_LABEL: "amd64",
        **(labels or {}),
    }
    return {
        "metadata": {"name": name, "labels": {k: v for k, v in values.items() if k != drop}},
        "status": {
            "allocatable": {"cpu": "64", "rebellions.ai/ATOM": allocatable},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def daemon_set(operand: str, count: int, **changes: Any) -> Manifest:
    """The DaemonSet of an operand with `count` nodes; `changes` go into its status."""
    driver = operand == contract.DRIVER_OPERAND
    kernel = changes.pop("kernel", "5.15.0-91-generic")
    pool = {f"{RBLN.group}/driver-node-pool": POOL, f"{RBLN.group}/driver-instance": INSTANCE}
    return {
        "metadata": {
            "name": f"rbln-{operand}",
            "uid": f"uid-{operand}",
            "namespace": "rbln-system",
            "generation": changes.pop("generation", 2),
            "labels": {
                contract.PART_OF_LABEL: contract.STACK,
                contract.COMPONENT_LABEL: "rbln-driver" if driver else operand,
                **(pool if driver else {}),
            },
        },
        "spec": {
            "updateStrategy": {"type": "OnDelete" if driver else "RollingUpdate"},
            "template": {
                "spec": {"nodeSelector": {contract.KERNEL_LABEL: kernel} if driver else {}}
            },
        },
        "status": {
            "observedGeneration": 2,
            "desiredNumberScheduled": count,
            "numberReady": count,
            "updatedNumberScheduled": count,
            **changes,
        },
    }


def owned(operand: str) -> list[Manifest]:
    return [{"kind": "DaemonSet", "controller": True, "uid": f"uid-{operand}"}]


def pod(operand: str, where: str, *, ready: bool = True, revision: str = "new") -> Manifest:
    return {
        "metadata": {
            "name": f"{operand}-{where}",
            "ownerReferences": owned(operand),
            "labels": {facts.REVISION_LABEL: revision},
        },
        "spec": {"nodeName": where},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def revisions(operand: str) -> list[Manifest]:
    return [
        {
            "metadata": {
                "name": f"{operand}-{digest}",
                "ownerReferences": owned(operand),
                "labels": {facts.REVISION_LABEL: digest},
            },
            "revision": number,
        }
        for number, digest in ((2, "new"), (1, "old"))
    ]


class Cluster:
    """Objects of a cluster by kind; tests change the lists."""

    def __init__(self, *nodes: Manifest, operands: tuple[str, ...] = OPERANDS) -> None:
        every = (contract.DRIVER_OPERAND, *operands)
        names = [found["metadata"]["name"] for found in nodes]
        self.nodes = list(nodes)
        self.daemon_sets = [daemon_set(operand, len(nodes)) for operand in every]
        self.pods = [pod(operand, name) for operand in every for name in names]
        self.revisions = [found for operand in every for found in revisions(operand)]
        self.drivers = [declared(INSTANCE)]
        self.policies = [declared("rbln-cluster-policy")]

    def drop_pod(self, name: str) -> None:
        self.pods = [found for found in self.pods if found["metadata"]["name"] != name]

    def replace_set(self, replacement: Manifest) -> None:
        name = replacement["metadata"]["name"]
        self.daemon_sets = [
            replacement if found["metadata"]["name"] == name else found
            for found in self.daemon_sets
        ]

    def drop_set(self, operand: str) -> None:
        gone = f"rbln-{operand}"
        self.daemon_sets = [s for s in self.daemon_sets if s["metadata"]["name"] != gone]

    def spec(self, **spec: Any) -> None:
        self.policies = [declared("rbln-cluster-policy", spec)]

    def facts(self) -> facts.Facts:
        pods = [facts.pod(found) for found in self.pods]
        found_revisions = [facts.revision(found) for found in self.revisions]
        return facts.Facts(
            vendor=RBLN,
            nodes=tuple(facts.node(found) for found in self.nodes),
            daemon_sets=tuple(facts.daemon_set(found, RBLN) for found in self.daemon_sets),
            pods=tuple(found for found in pods if found),
            revisions=tuple(found for found in found_revisions if found),
            drivers=tuple(facts.declaration(found) for found in self.drivers),
            policies=tuple(facts.declaration(found) for found in self.policies),
        )


def declared(name: str, spec: Manifest | None = None, generation: int = 1) -> Manifest:
    return {"metadata": {"name": name, "generation": generation}, "spec": spec or {}}
