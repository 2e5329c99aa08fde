"""What the status objects must say, and whether that is news. Pure: time is an argument."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from agents.node_state import core
from rbln_stack import contract

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agents.node_state.core import NodeVerdict, Verdict
    from agents.node_state.facts import Declaration, Facts

Status = dict[str, Any]

READY: Final = contract.READY_CONDITION
COMPONENTS_READY: Final = "ComponentsReady"
POLICY: Final = "policy"
DRIVER: Final = "driver"
# A status must fit into one object whatever the size of the fleet.
_LISTED: Final = 100
_NAMED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A status that differs from the one the object has."""

    kind: str
    name: str
    status: Status
    ready: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A condition without its times."""

    ready: bool
    reason: str
    message: str


def decide(facts: Facts, now: str) -> tuple[Write, ...]:
    """All statuses to be written; none when the objects say already what is true."""
    writes = [_policy_write(policy, facts, now) for policy in facts.policies]
    # Driver declarations do not depend on a policy, so they are judged with all operands on.
    verdict = core.judge(facts, {})
    writes += [_driver_write(driver, facts, verdict, now) for driver in facts.drivers]
    return tuple(write for write in writes if write is not None)


def _policy_write(policy: Declaration, facts: Facts, now: str) -> Write | None:
    verdict = core.judge(facts, policy.spec)
    components, finding = components_finding(verdict), policy_finding(verdict, policy.spec)
    if verdict.uncovered:
        left_out = _some([f"{node.name} ({node.reason})" for node in verdict.uncovered])
        finding = replace(finding, message=f"{finding.message}; in no pool: {left_out}")
    status = {
        **_summary(policy, finding, verdict.nodes),
        "firstUnready": verdict.first_unready(),
        "components": [
            {
                "name": component.name,
                "namespace": component.namespace,
                "state": _state(ready=component.ready),
                "message": component.lack,
            }
            for component in verdict.components
        ],
        "uncoveredNodes": [
            {"name": node.name, "reason": node.reason} for node in verdict.uncovered[:_LISTED]
        ],
    }
    return _write(POLICY, policy, status, {READY: finding, COMPONENTS_READY: components}, now)


def _driver_write(driver: Declaration, facts: Facts, verdict: Verdict, now: str) -> Write | None:
    """A driver is ready when its pods are, on all of its nodes; other operands are not its own."""
    nodes = [
        node if _is_about_driver(node) else _lacking_nothing(node)
        for node in verdict.nodes
        if node.instance == driver.name
    ]
    sets = [
        found
        for found in facts.daemon_sets
        if found.component == contract.DRIVER_OPERAND and found.instance == driver.name
    ]
    finding = driver_finding(nodes, stale=[s.name for s in sets if s.observed != s.generation])
    if not sets:
        finding = Finding(ready=False, reason="DaemonSetMissing", message="it has no DaemonSet")
    first = next((node.lack.component for node in nodes if node.lack), "")
    status = {**_summary(driver, finding, nodes), "firstUnready": first}
    return _write(DRIVER, driver, status, {READY: finding}, now)


def components_finding(verdict: Verdict) -> Finding:
    """Whether every operand is there, up to date and complete."""
    lacking = [component for component in verdict.components if not component.ready]
    if not lacking:
        return Finding(ready=True, reason="AllComponentsReady", message="all components are ready")
    text = _some([f"{component.name}: {component.lack}" for component in lacking])
    return Finding(ready=False, reason="SomeComponentsNotReady", message=text)


def driver_finding(nodes: Sequence[NodeVerdict], stale: Sequence[str]) -> Finding:
    """Whether a driver runs, in its newest form, on every node of its pools."""
    if stale:
        text = f"the newest form is not yet acted on: {_some(stale)}"
        return Finding(ready=False, reason="DaemonSetNotObserved", message=text)
    return _nodes_finding(nodes, share=100)


def policy_finding(verdict: Verdict, spec: Mapping[str, Any]) -> Finding:
    """Whether what `spec.readiness` asks for is the case."""
    readiness = spec.get("readiness") or {}
    require = str(readiness.get("require") or "all")
    pools = readiness.get("pools") or ()
    if require == "none":
        total, ready = len(verdict.nodes), sum(node.lack is None for node in verdict.nodes)
        text = f"nothing is required; {ready} of {total} nodes are ready"
        return Finding(ready=True, reason="NothingRequired", message=text)
    share = _share(require)
    if share is None:
        text = f"spec.readiness.require {require} is neither all, none nor a percentage"
        return Finding(ready=False, reason="InvalidReadiness", message=text)
    whole = share == 100 and not pools  # noqa: PLR2004 - a percentage
    unmet = [c for c in verdict.components if not (c.ready if whole else c.settled)]
    absent = [c for c in unmet if not c.settled]
    if absent:
        text = _some([f"{c.name}: {c.lack}" for c in absent])
        return Finding(ready=False, reason="SomeComponentsNotReady", message=text)
    unknown = sorted(set(pools) - {node.pool for node in verdict.nodes})
    if unknown:
        text = f"no covered node is in pool {', '.join(unknown)}"
        return Finding(ready=False, reason="PoolMissing", message=text)
    finding = _nodes_finding([n for n in verdict.nodes if not pools or n.pool in pools], share)
    if finding.ready and unmet:
        text = _some([f"{c.name}: {c.lack}" for c in unmet])
        return Finding(ready=False, reason="SomeComponentsNotReady", message=text)
    return finding


def _nodes_finding(nodes: Sequence[NodeVerdict], share: int) -> Finding:
    """Whether that percentage of the nodes lacks nothing; no node at all is never ready."""
    lacking = sorted(
        (node for node in nodes if node.lack), key=lambda node: (_rank(node), node.name)
    )
    ready = len(nodes) - len(lacking)
    if not nodes:
        return Finding(ready=False, reason="NoNodes", message="no accelerator node is covered")
    count = f"{ready} of {len(nodes)} nodes are ready"
    if not lacking:
        return Finding(ready=True, reason="AllNodesReady", message=count)
    text = f"{count}; {_some([_told(node) for node in lacking])}"
    if ready >= math.ceil(len(nodes) * share / 100) and ready:
        return Finding(ready=True, reason="EnoughNodesReady", message=text)
    return Finding(ready=False, reason="SomeNodesNotReady", message=text)


def _summary(declaration: Declaration, finding: Finding, nodes: Sequence[NodeVerdict]) -> Status:
    lacking = [node for node in nodes if node.lack]
    ready = len(nodes) - len(lacking)
    return {
        "observedGeneration": declaration.generation,
        "phase": "Ready" if finding.ready else "NotReady",
        "state": _state(ready=finding.ready),
        "nodes": f"{ready}/{len(nodes)}",
        "nodesReady": ready,
        "nodesTotal": len(nodes),
        "unreadyNodes": [
            {
                "name": node.name,
                "pool": node.pool,
                "component": node.lack.component,
                "reason": node.lack.reason,
            }
            for node in lacking[:_LISTED]
            if node.lack
        ],
    }


def _write(
    kind: str,
    declaration: Declaration,
    status: Status,
    findings: Mapping[str, Finding],
    now: str,
) -> Write | None:
    before = declaration.status.get("conditions") or []
    conditions = [
        _condition(name, found, declaration, before, now) for name, found in findings.items()
    ]
    # Conditions that somebody else wrote are kept as they are.
    foreign = [entry for entry in before if entry.get("type") not in findings]
    wanted = {**status, "conditions": [*conditions, *foreign]}
    if all(declaration.status.get(key) == value for key, value in wanted.items()):
        return None
    ready = findings[READY]
    return Write(
        kind=kind,
        name=declaration.name,
        status=wanted,
        ready=ready.ready,
        reason=ready.reason,
        message=ready.message,
    )


def _condition(
    name: str,
    finding: Finding,
    declaration: Declaration,
    before: Iterable[Mapping[str, Any]],
    now: str,
) -> Status:
    value = "True" if finding.ready else "False"
    previous = next((entry for entry in before if entry.get("type") == name), {})
    unchanged = previous.get("status") == value and previous.get("lastTransitionTime")
    return {
        "type": name,
        "status": value,
        "reason": finding.reason,
        "message": finding.message,
        "lastTransitionTime": unchanged or now,
        "observedGeneration": declaration.generation,
    }


def _share(require: str) -> int | None:
    if require == "all":
        return 100
    number = require.removesuffix("%")
    if number == require or not number.isdecimal() or int(number) > 100:  # noqa: PLR2004
        return None
    return int(number)


def _is_about_driver(node: NodeVerdict) -> bool:
    return node.lack is None or node.lack.component in {core.NODE, contract.DRIVER_OPERAND}


def _lacking_nothing(node: NodeVerdict) -> NodeVerdict:
    return core.NodeVerdict(name=node.name, pool=node.pool, instance=node.instance, lack=None)


def _rank(node: NodeVerdict) -> tuple[int, str]:
    return core.rank(node.lack.component if node.lack else "")


def _told(node: NodeVerdict) -> str:
    lack = node.lack
    return f"{node.name}: {lack.component}: {lack.reason}" if lack else node.name


def _some(texts: Sequence[str]) -> str:
    """The first few; the rest as a number."""
    more = len(texts) - _NAMED
    return "; ".join(texts[:_NAMED]) + (f"; and {more} more" if more > 0 else "")


def _state(*, ready: bool) -> str:
    return "ready" if ready else "notReady"
