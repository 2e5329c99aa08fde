"""Where pods may run: node affinity, node selector, tolerations. The only source of these.

An operand's nodes are those NFD found a device in, minus opt-outs (D2), so a new node of a known
pool is served without another run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from rbln_stack import contract

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pulumi_kubernetes.core.v1 import (
        AffinityArgsDict,
        NodeSelectorRequirementArgsDict,
        NodeSelectorTermArgsDict,
        TolerationArgsDict,
    )

    from rbln_stack.nodes import Taint
    from rbln_stack.pools import Pool
    from rbln_stack.profiles import VendorProfile

Toleration = dict[str, Any]

# The DaemonSet controller adds tolerations for these to every pod.
_ALWAYS_TOLERATED: Final = frozenset(
    f"node.kubernetes.io/{name}"
    for name in (
        "not-ready",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
    )
)
_KEEPS_PODS_OFF: Final = frozenset({"NoSchedule", "NoExecute"})


def deploy_exclusions(operand: str) -> tuple[str, ...]:
    """Values of the operand's deploy label that keep it off a node."""
    values = (contract.DEPLOY_OFF, contract.DEPLOY_PAUSED)
    if operand == contract.DRIVER_OPERAND:
        return (*values, contract.DEPLOY_PRE_INSTALLED)
    return values


def workload_exclusions(profile: VendorProfile) -> tuple[str, ...]:
    """Workload types a container operand must stay away from."""
    return tuple(value for value in contract.WORKLOADS if value != profile.default_workload)


def pool_affinity(profile: VendorProfile, pool: Pool) -> AffinityArgsDict:
    """Nodes of the pool that hold a device and have not opted out of the driver.

    Terms are alternatives, hence one complete term per spelling of NFD's device label.
    """
    shared = [
        *(_is_in(key, [value]) for key, value in pool.labels.items()),
        # NotIn also holds for nodes without the key: nobody has to label nodes first.
        _is_not_in(
            profile.deploy_label(contract.DRIVER_OPERAND),
            deploy_exclusions(contract.DRIVER_OPERAND),
        ),
        _is_not_in(profile.workload_label, workload_exclusions(profile)),
    ]
    terms = [_term([_is_in(label, ["true"]), *shared]) for label in profile.present_labels]
    return {
        "node_affinity": {
            "required_during_scheduling_ignored_during_execution": {"node_selector_terms": terms}
        }
    }


def pool_selector(pool: Pool, node_selector: Mapping[str, str]) -> dict[str, str]:
    """The pool's labels and the user's; `plan` has made sure that they do not clash."""
    return {**pool.labels, **node_selector}


def toleration_list(tolerations: Sequence[Toleration]) -> list[TolerationArgsDict]:
    """Tolerations of a pod."""
    return [cast("TolerationArgsDict", toleration) for toleration in tolerations]


def keeping_off(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> tuple[Taint, ...]:
    """The taints that keep a DaemonSet's pod with these tolerations off a node."""
    return tuple(
        taint
        for taint in taints
        if taint.effect in _KEEPS_PODS_OFF
        and taint.key not in _ALWAYS_TOLERATED
        and not any(_tolerates(toleration, taint) for toleration in tolerations)
    )


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.get("effect") not in {None, taint.effect}:
        return False
    if toleration.get("key") not in {None, "", taint.key}:
        return False
    return toleration.get("operator") == "Exists" or (toleration.get("value") or "") == taint.value


def _term(expressions: list[NodeSelectorRequirementArgsDict]) -> NodeSelectorTermArgsDict:
    return {"match_expressions": expressions}


def _is_in(key: str, values: Sequence[str]) -> NodeSelectorRequirementArgsDict:
    return {"key": key, "operator": "In", "values": list(values)}


def _is_not_in(key: str, values: Sequence[str]) -> NodeSelectorRequirementArgsDict:
    return {"key": key, "operator": "NotIn", "values": list(values)}
