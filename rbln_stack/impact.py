"""What applying a plan does to nodes, driver pods and running workloads. Pure.

Called by the program before it declares anything and by `rbln-stack plan`. A driver pod that is
replaced or removed takes the devices of its node away from the pods that hold them, and no other
output says so.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from rbln_stack import placement
from rbln_stack.drift import template_changes
from rbln_stack.errors import Notice
from rbln_stack.pods import driver as driver_pods

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rbln_stack.nodes import NodeFacts
    from rbln_stack.observed import DriverSet, Observed, Workload
    from rbln_stack.operands import DriverPlan
    from rbln_stack.plan import StackPlan

Action = Literal["create", "update", "same", "keep", "remove"]
ON_DELETION: Final = "on next deletion"
AT_ONCE: Final = "at once"
_SHOWN_NODES: Final = 8
_REQUIRED: Final = "required_during_scheduling_ignored_during_execution"


@dataclass(frozen=True, slots=True)
class Move:
    """A node that another DaemonSet will serve."""

    node: str
    origin: str


@dataclass(frozen=True, slots=True)
class KeptOff:
    """A node of a pool that will not run its driver pod, and why."""

    node: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolImpact:
    """What happens to one driver DaemonSet and on its nodes."""

    pool: str
    daemon_set: str
    action: Action
    nodes: tuple[str, ...] = ()
    joins: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()
    moves: tuple[Move, ...] = ()
    changes: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    when: str = ""
    outdated: tuple[str, ...] = ()
    kept_off: tuple[KeptOff, ...] = ()
    workloads: tuple[Workload, ...] = ()

    @property
    def quiet(self) -> bool:
        """Whether nothing happens here."""
        moving = self.joins or self.leaves or self.moves or self.replaced
        return self.action in {"same", "keep"} and not (moving or self.outdated or self.kept_off)

    def notices(self) -> Iterator[Notice]:
        """What a user should read about the pool, the dangerous parts as warnings."""
        subject = f"pool {self.pool}"
        if self.action == "remove":
            text = f"DaemonSet {self.daemon_set} will be removed{_on(self.leaves)}"
            yield Notice("warning", subject, text)
        if self.action == "keep":
            yield Notice("warning", subject, f"no node is left; {self.daemon_set} is kept")
        if self.action == "create":
            yield Notice("info", subject, f"DaemonSet {self.daemon_set} will be made")
        if self.action == "update":
            text = f"DaemonSet {self.daemon_set} will change: {', '.join(self.changes)}"
            yield Notice("info", subject, text)
        yield from self._node_notices(subject)
        if self.workloads:
            text = f"running pods there hold devices: {_listed(self.workloads)}"
            yield Notice("warning", subject, text)

    def _node_notices(self, subject: str) -> Iterator[Notice]:
        if self.joins:
            yield Notice("info", subject, f"a driver pod will start{_on(self.joins)}")
        for move in self.moves:
            text = f"node {move.node} moves here from {move.origin}: its driver pod is replaced"
            yield Notice("warning", subject, text)
        if self.leaves and self.action != "remove":
            yield Notice("warning", subject, f"the driver pod will end{_on(self.leaves)}")
        if self.replaced:
            level: Literal["info", "warning"] = "info" if self.when == ON_DELETION else "warning"
            text = f"the driver pod will be replaced {self.when}{_on(self.replaced)}"
            yield Notice(level, subject, text)
        if self.outdated:
            text = f"an older driver pod still runs, until it is deleted,{_on(self.outdated)}"
            yield Notice("info", subject, text)
        for one in self.kept_off:
            yield Notice("info", subject, f"node {one.node} gets no driver pod: {one.reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """The effect on every pool; `observed` is False where nobody could look at the cluster."""

    observed: bool
    pools: tuple[PoolImpact, ...] = ()
    gaps: tuple[str, ...] = ()

    @property
    def quiet(self) -> bool:
        """Whether applying the plan does nothing to nodes and workloads."""
        return self.observed and not self.gaps and all(pool.quiet for pool in self.pools)

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """Every running pod that stands to lose its devices."""
        return tuple(sorted({one for pool in self.pools for one in pool.workloads}))

    def notices(self) -> tuple[Notice, ...]:
        """The impact as diagnostics."""
        if not self.observed and not self.gaps:
            return ()
        gaps = [
            Notice("warning", "impact", f"not all of it is known, because {gap}")
            for gap in self.gaps
        ]
        found = [notice for pool in self.pools for notice in pool.notices()]
        if not found and not gaps:
            return (Notice("info", "impact", "no node, driver pod or running pod is touched"),)
        return (*gaps, *found)

    def as_lines(self) -> list[str]:
        """The same as text, one statement per line."""
        return [str(notice) for notice in self.notices()]

    def as_json(self) -> dict[str, Any]:
        """Plain values, with the keys that users see elsewhere too."""
        return {
            "observed": self.observed,
            "gaps": list(self.gaps),
            "pools": [_pool_json(pool) for pool in self.pools],
            "workloads": [asdict(one) for one in self.workloads],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One planned driver DaemonSet, reduced to what is compared.

    A standing one is meant for nodes that nobody has seen yet, so it may be without any.
    """

    name: str
    pool: str
    nodes: tuple[NodeFacts, ...]
    standing: bool
    kept_off: tuple[KeptOff, ...]
    template: Mapping[str, Any] = field(hash=False)


def impact(plan: StackPlan, observed: Observed | None) -> Impact:
    """Compare what is planned with what is there; without the latter nothing is claimed."""
    if observed is None:
        return Impact(observed=False)
    if not observed.complete:
        return Impact(observed=False, gaps=observed.gaps)
    intents = [intent for driver in drivers_of(plan) for intent in _intents(driver)]
    home = {node.name: intent.name for intent in intents for node in intent.nodes}
    live = {driver.name: driver for driver in observed.drivers}
    running = {pod.node: driver.name for driver in observed.drivers for pod in driver.pods}
    planned = [
        _planned(intent, live.get(intent.name), running, home, observed) for intent in intents
    ]
    names = {intent.name for intent in intents}
    gone = [
        _removed(driver, home, observed) for driver in observed.drivers if driver.name not in names
    ]
    ordered = sorted([*planned, *gone], key=lambda pool: pool.daemon_set)
    return Impact(observed=True, pools=tuple(ordered), gaps=observed.gaps)


def drivers_of(plan: StackPlan) -> tuple[DriverPlan, ...]:
    """The driver declarations of a plan, none when the driver is off."""
    several = getattr(plan, "drivers", None)
    one = getattr(plan, "driver", None)
    if several is not None:
        return tuple(several)
    return () if one is None else (one,)


def _intents(driver: DriverPlan) -> Iterator[Intent]:
    for entry in driver.pools:
        spec: Mapping[str, Any] = {**driver_pods.daemon_set(driver, entry)}
        template: Mapping[str, Any] = spec["template"]
        nodes = entry.pool.nodes
        yield Intent(
            name=entry.name,
            pool=entry.pool.name,
            nodes=nodes,
            standing=getattr(entry, "catch_all", False),
            kept_off=tuple(one for node in nodes for one in _kept_off(node, template["spec"])),
            template=template,
        )


def _kept_off(node: NodeFacts, pod: Mapping[str, Any]) -> Iterator[KeptOff]:
    """The first reason why the pod would not run on the node, as the scheduler sees it."""
    required = (pod.get("affinity") or {}).get("node_affinity") or {}
    terms = (required.get(_REQUIRED) or {}).get("node_selector_terms") or ()
    unmet = [list(_unmet(node.labels, term.get("match_expressions") or ())) for term in terms]
    # Terms are alternatives: one that is met is enough, else the nearest one tells the reason.
    reasons = min(unmet, key=len, default=[])
    taints = placement.keeping_off(node.taints, pod.get("tolerations") or ())
    reasons += [f"taint {taint} is not tolerated" for taint in taints]
    if reasons:
        yield KeptOff(node.name, reasons[0])


def _unmet(labels: Mapping[str, str], conditions: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for condition in conditions:
        key, values = condition["key"], condition.get("values") or ()
        value = labels.get(key)
        met = {
            "In": value in values,
            "NotIn": value not in values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }
        if not met.get(condition["operator"], True):
            yield f"label {key} is missing" if value is None else f"label {key}={value}"


def _planned(
    intent: Intent,
    live: DriverSet | None,
    running: Mapping[str, str],
    home: Mapping[str, str],
    observed: Observed,
) -> PoolImpact:
    off = {one.node for one in intent.kept_off}
    served = [node.name for node in intent.nodes if node.name not in off]
    moves = tuple(
        Move(node, running[node])
        for node in served
        if running.get(node, intent.name) != intent.name
    )
    own = {} if live is None else {pod.node: pod for pod in live.pods}
    staying = [node for node in sorted(own) if home.get(node) == intent.name]
    # A pod that leaves for another pool is told there, as a move.
    leaves = tuple(node for node in sorted(own) if node not in home)
    changes = () if live is None else template_changes(intent.template, live.template)
    replaced = tuple(staying) if changes else ()
    touched = {*leaves, *replaced, *(move.node for move in moves)}
    return PoolImpact(
        pool=intent.pool,
        daemon_set=intent.name,
        action=_action(intent, live, changes),
        nodes=tuple(node.name for node in intent.nodes),
        joins=tuple(node for node in served if node not in running),
        leaves=leaves,
        moves=moves,
        changes=changes,
        replaced=replaced,
        when=_when(live) if replaced else "",
        outdated=() if changes else tuple(node for node in staying if own[node].outdated),
        kept_off=intent.kept_off,
        workloads=_on_nodes(observed.workloads, touched),
    )


def _removed(driver: DriverSet, home: Mapping[str, str], observed: Observed) -> PoolImpact:
    nodes = sorted({pod.node for pod in driver.pods})
    return PoolImpact(
        pool=driver.pool or driver.name,
        daemon_set=driver.name,
        action="remove",
        nodes=tuple(nodes),
        leaves=tuple(node for node in nodes if node not in home),
        workloads=_on_nodes(observed.workloads, nodes),
    )


def _action(intent: Intent, live: DriverSet | None, changes: Sequence[str]) -> Action:
    if live is None:
        return "create"
    if changes:
        return "update"
    return "same" if intent.nodes or intent.standing else "keep"


def _when(live: DriverSet | None) -> str:
    return ON_DELETION if live is not None and live.on_delete else AT_ONCE


def _on_nodes(workloads: Iterable[Workload], nodes: Iterable[str]) -> tuple[Workload, ...]:
    wanted = set(nodes)
    return tuple(one for one in workloads if one.node in wanted)


def _on(nodes: Sequence[str]) -> str:
    if not nodes:
        return ""
    return f" on {len(nodes)} node{'s' if len(nodes) > 1 else ''}: {_listed(nodes)}"


def _listed(things: Sequence[object]) -> str:
    """The first few by name: a line must stay readable for a fleet."""
    shown = ", ".join(str(thing) for thing in things[:_SHOWN_NODES])
    more = len(things) - _SHOWN_NODES
    return f"{shown} and {more:,} more" if more > 0 else shown


def _pool_json(pool: PoolImpact) -> dict[str, Any]:
    return {
        "pool": pool.pool,
        "daemonSet": pool.daemon_set,
        "action": pool.action,
        "joins": list(pool.joins),
        "leaves": list(pool.leaves),
        "moves": [{"node": move.node, "from": move.origin} for move in pool.moves],
        "changes": list(pool.changes),
        "replaced": list(pool.replaced),
        "when": pool.when,
        "outdated": list(pool.outdated),
        "keptOff": [asdict(one) for one in pool.kept_off],
        "workloads": [asdict(one) for one in pool.workloads],
    }
