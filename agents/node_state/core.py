"""Which nodes and operands are ready, and what is missing: facts in, verdicts out.

No I/O, no clock, no logging. A thing that is not there, or not known yet, is never ready.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agents.node_state.selection import selects
from rbln_stack import contract

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agents.node_state.facts import DaemonSet, Facts, Node, Pod

# Operands in the order in which a node gets them, with their key in the policy's spec.
OPERANDS: Final = (
    (contract.DRIVER_OPERAND, "driver"),
    (contract.VALIDATOR_OPERAND, "validator"),
    (contract.TOOLKIT_OPERAND, "containerToolkit"),
    (contract.DEVICE_PLUGIN_OPERAND, "devicePlugin"),
    (contract.FEATURE_DISCOVERY_OPERAND, "npuFeatureDiscovery"),
    (contract.DAEMON_OPERAND, "rblnDaemon"),
    (contract.EXPORTER_OPERAND, "metricsExporter"),
)
# Where the node itself is at fault: comes before all operands.
NODE: Final = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """The first thing that a node lacks."""

    component: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeVerdict:
    """A covered node; it is ready when it lacks nothing."""

    name: str
    pool: str
    instance: str
    lack: Lack | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentVerdict:
    """One operand over all nodes; `settled` means: there, and its newest form is being served."""

    name: str
    namespace: str
    lack: str
    settled: bool

    @property
    def ready(self) -> bool:
        """Whether nothing is missing."""
        return not self.lack


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncovered:
    """An accelerator node that no driver pool takes in."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Everything known about the stack as one policy declares it."""

    components: tuple[ComponentVerdict, ...]
    nodes: tuple[NodeVerdict, ...]
    uncovered: tuple[Uncovered, ...]

    def first_unready(self) -> str:
        """The first thing in the order of start that is not ready anywhere; empty when all are."""
        names = [node.lack.component for node in self.nodes if node.lack]
        names += [component.name for component in self.components if not component.ready]
        return min(names, key=rank, default="")


def rank(component: str) -> tuple[int, str]:
    """The place of a component in the order of start; strangers come last, by name."""
    order = [NODE, *(name for name, _ in OPERANDS)]
    return (order.index(component) if component in order else len(order), component)


def expected_operands(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Operands the policy asks for: all whose section does not say that they are off."""
    return tuple(
        name for name, key in OPERANDS if (spec.get(key) or {}).get("enabled") is not False
    )


def judge(facts: Facts, spec: Mapping[str, Any]) -> Verdict:
    """The whole stack, for a policy with this spec."""
    fleet = _Fleet(facts, spec)
    covered: list[NodeVerdict] = []
    uncovered: list[Uncovered] = []
    for node in sorted(facts.nodes, key=lambda node: node.name):
        if not fleet.takes_part(node):
            continue
        reason = fleet.gap(node)
        if reason:
            uncovered.append(Uncovered(name=node.name, reason=reason))
        else:
            covered.append(fleet.node_verdict(node))
    return Verdict(
        components=tuple(fleet.component_verdicts()),
        nodes=tuple(covered),
        uncovered=tuple(uncovered),
    )


def revisions_of(facts: Facts) -> dict[str, str]:
    """Digest of the newest template of each DaemonSet, by its uid."""
    ordered = sorted(facts.revisions, key=lambda revision: revision.number)
    return {revision.owner: revision.digest for revision in ordered}


class _Fleet:
    """The facts, arranged for look-ups; asking it changes nothing."""

    def __init__(self, facts: Facts, spec: Mapping[str, Any]) -> None:
        self._vendor = facts.vendor
        self._workload = spec.get("workloadType") or contract.WORKLOAD_CONTAINER
        self._resources = _resources(spec) | frozenset(facts.vendor.resources)
        self._expected = expected_operands(spec)
        self._current = revisions_of(facts)
        self._sets: defaultdict[str, list[DaemonSet]] = defaultdict(list)
        for daemon_set in sorted(facts.daemon_sets, key=lambda found: found.name):
            self._sets[daemon_set.component].append(daemon_set)
        self._pods: defaultdict[tuple[str, str], list[Pod]] = defaultdict(list)
        for pod in facts.pods:
            self._pods[(pod.owner, pod.node)].append(pod)

    def takes_part(self, node: Node) -> bool:
        """Whether the node holds a device, runs containers and has not opted out (D2)."""
        labels = node.labels
        if not any(labels.get(key) == "true" for key in self._vendor.present_labels):
            return False
        workload = labels.get(self._vendor.workload_label)
        if workload not in contract.WORKLOADS:
            workload = self._workload
        if workload != contract.WORKLOAD_CONTAINER:
            return False
        return self._deploy(node, contract.DRIVER_OPERAND) != contract.DEPLOY_OFF

    def gap(self, node: Node) -> str:
        """Why no pool covers the node; empty when one does, or when none has to."""
        if not self._needs_driver_pod(node) or self._driver_set(node):
            return ""
        missing = [key for key in contract.GROUPING_LABELS if not node.labels.get(key)]
        if missing:
            return f"it lacks the label {', '.join(missing)}"
        values = " ".join(node.labels[key] for key in contract.GROUPING_LABELS)
        return f"no driver DaemonSet selects {values}"

    def node_verdict(self, node: Node) -> NodeVerdict:
        """What a covered node lacks first."""
        pool = self._driver_set(node)
        lacks = (self._lack(node, operand) for operand in self._expected)
        lack = next((found for found in lacks if found), None)
        if not node.ready:
            lack = Lack(component=NODE, reason="its kubelet does not report Ready")
        return NodeVerdict(
            name=node.name,
            pool=pool.pool or pool.name if pool else "",
            instance=pool.instance if pool else "",
            lack=lack,
        )

    def component_verdicts(self) -> Iterable[ComponentVerdict]:
        """All expected operands and whatever else the stack runs, in the order of start."""
        for name in sorted({*self._expected, *self._sets}, key=rank):
            yield self._component(name)

    def _component(self, name: str) -> ComponentVerdict:
        found = self._sets.get(name, [])
        lacks = [lack for daemon_set in found if (lack := _unsettled(daemon_set))]
        settled = bool(found) and not lacks
        if not found:
            lacks = ["there is no DaemonSet"]
        lacks += [lack for daemon_set in found if (lack := _incomplete(daemon_set))]
        return ComponentVerdict(
            name=name,
            namespace=found[0].namespace if found else "",
            lack="; ".join(lacks),
            settled=settled,
        )

    def _lack(self, node: Node, operand: str) -> Lack | None:
        deploy = self._deploy(node, operand)
        if deploy == contract.DEPLOY_OFF:
            return None
        if deploy == contract.DEPLOY_PAUSED:
            return Lack(component=operand, reason="it is paused for a driver upgrade")
        if operand == contract.DRIVER_OPERAND and not self._needs_driver_pod(node):
            return None
        reason = self._pod_lack(node, operand)
        if not reason and operand == contract.DEVICE_PLUGIN_OPERAND:
            reason = self._allocatable_lack(node)
        return Lack(component=operand, reason=reason) if reason else None

    def _pod_lack(self, node: Node, operand: str) -> str:
        """Empty when a ready pod of the newest template runs there."""
        if operand == contract.DRIVER_OPERAND:
            chosen = self._driver_set(node)
            sets = [chosen] if chosen else []
        else:
            sets = self._sets.get(operand, [])
        pods = [pod for found in sets for pod in self._pods.get((found.uid, node.name), [])]
        if not sets:
            return "there is no DaemonSet"
        if not pods:
            return f"there is no pod of {' or '.join(found.name for found in sets)}"
        pod = min(pods, key=lambda pod: (pod.leaving, not pod.ready, pod.name))
        if pod.leaving:
            return f"pod {pod.name} is being deleted"
        if not pod.ready:
            return f"pod {pod.name} is not ready ({pod.why})"
        if pod.revision != self._current.get(pod.owner):
            return f"pod {pod.name} is not of the newest template"
        return ""

    def _allocatable_lack(self, node: Node) -> str:
        if any(node.allocatable.get(name, 0) > 0 for name in self._resources):
            return ""
        return f"none of {', '.join(sorted(self._resources))} is allocatable"

    def _needs_driver_pod(self, node: Node) -> bool:
        if contract.DRIVER_OPERAND not in self._expected:
            return False
        return self._deploy(node, contract.DRIVER_OPERAND) != contract.DEPLOY_PRE_INSTALLED

    def _driver_set(self, node: Node) -> DaemonSet | None:
        """The DaemonSet of the node's pool, also while the driver is paused there."""
        deploy = self._vendor.deploy_label(contract.DRIVER_OPERAND)
        labels = {key: value for key, value in node.labels.items() if key != deploy}
        drivers = self._sets.get(contract.DRIVER_OPERAND, [])
        return next((found for found in drivers if selects(found, node.name, labels)), None)

    def _deploy(self, node: Node, operand: str) -> str:
        return node.labels.get(self._vendor.deploy_label(operand), "")


def _resources(spec: Mapping[str, Any]) -> frozenset[str]:
    """Names the policy's device plugin offers besides the vendor's own."""
    entries = (spec.get("devicePlugin") or {}).get("resourceList") or ()
    return frozenset(
        f"{entry.get('resourcePrefix', '')}/{entry['resourceName']}"
        for entry in entries
        if entry.get("resourceName")
    )


def _unsettled(daemon_set: DaemonSet) -> str:
    if daemon_set.observed != daemon_set.generation:
        return f"{daemon_set.name}: its newest form is not yet acted on"
    return ""


def _incomplete(daemon_set: DaemonSet) -> str:
    """What is missing of the pods; a pool may be empty, an operand of a served fleet is not."""
    wanted = daemon_set.desired
    if daemon_set.ready != wanted:
        return f"{daemon_set.name}: {daemon_set.ready} of {wanted} pods are ready"
    if daemon_set.updated != wanted:
        return (
            f"{daemon_set.name}: {daemon_set.updated} of {wanted} pods are of the newest template"
        )
    return ""
