"""Where pods may run: node affinity, node selector, tolerations. The only source of these.

An operand's nodes are those NFD found a device in, minus opt-outs (D2), so a new node of a known
pool is served without another run. A user's own affinity narrows this down and never widens it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from rbln_stack import contract

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pulumi_kubernetes.core.v1 import (
        AffinityArgsDict,
        TolerationArgsDict,
    )

    from rbln_stack.nodes import Taint
    from rbln_stack.operands import DriverPlan, DriverPoolPlan, OperandPlan, RuntimeGroup
    from rbln_stack.pools import Pool
    from rbln_stack.profiles import VendorProfile

Plain = dict[str, Any]
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
_REQUIRED: Final = "required_during_scheduling_ignored_during_execution"


def deploy_exclusions(operand: str) -> tuple[str, ...]:
    """Values of the operand's deploy label that keep it off a node."""
    values = (contract.DEPLOY_OFF, contract.DEPLOY_PAUSED)
    if operand == contract.DRIVER_OPERAND:
        return (*values, contract.DEPLOY_PRE_INSTALLED)
    return values


def excluded_workloads(workloads: Sequence[str]) -> tuple[str, ...]:
    """Values of the workload label that an operand of these workload types stays away from."""
    return tuple(value for value in contract.WORKLOADS if value not in workloads)


def serves(labels: Mapping[str, str], profile: VendorProfile, default: str, workload: str) -> bool:
    """Whether a node with these labels is for the workload type; unknown values count as none."""
    value = labels.get(profile.workload_label, "")
    return (value if value in contract.WORKLOADS else default) == workload


def operand_affinity(plan: OperandPlan, more: Sequence[Plain] = ()) -> AffinityArgsDict:
    """Nodes that hold a device and have not opted out, narrowed by `more` and by the user.

    Terms are alternatives, hence one complete term per spelling of NFD's device label.
    """
    profile = plan.profile
    shared = [
        *plan.managed,
        *more,
        # NotIn also holds for nodes without the key: nobody has to label nodes first.
        is_not_in(profile.deploy_label(plan.operand), deploy_exclusions(plan.operand)),
        _workload(profile, plan.default_workload, contract.WORKLOAD_CONTAINER),
    ]
    own = [[is_in(label, ["true"]), *shared] for label in plan.present_labels]
    return cast("AffinityArgsDict", _joined(own, plan.affinity))


def pool_affinity(driver: DriverPlan, pool: DriverPoolPlan) -> AffinityArgsDict:
    """Nodes of one pool, or of no known kernel for the DaemonSet that takes all others (D3)."""
    if not pool.catch_all:
        return operand_affinity(driver, [is_in(key, [v]) for key, v in pool.pool.labels.items()])
    # NotIn alone would also take nodes of which NFD has not told the kernel yet.
    kernels = [is_not_in(contract.KERNEL_LABEL, pool.excluded_kernels)]
    return operand_affinity(
        driver,
        [
            {"key": contract.KERNEL_LABEL, "operator": "Exists"},
            *(kernels if pool.excluded_kernels else []),
        ],
    )


def runtime_affinity(plan: OperandPlan, group: RuntimeGroup) -> AffinityArgsDict:
    """Nodes of one container runtime (X-13)."""
    if group.only:
        return operand_affinity(plan, [is_in(contract.HOSTNAME_LABEL, group.only)])
    if group.others:
        return operand_affinity(plan, [is_not_in(contract.HOSTNAME_LABEL, group.others)])
    return operand_affinity(plan)


def managed_nodes(
    label_key: str, node_selector: Mapping[str, str], *, enabled_by_default: bool
) -> tuple[Plain, ...]:
    """The conditions by which nodes are given to the stack or withheld from it as a whole."""
    wanted = [is_in(key, [value]) for key, value in sorted(node_selector.items())]
    if label_key:
        choice = (
            is_not_in(label_key, ["false"]) if enabled_by_default else is_in(label_key, ["true"])
        )
        wanted.append(choice)
    return tuple(wanted)


def meets(labels: Mapping[str, str], conditions: Iterable[Plain]) -> bool:
    """Whether a node with these labels meets all conditions, as the scheduler would say."""
    return all(_meets(labels, condition) for condition in conditions)


def meets_affinity(labels: Mapping[str, str], node_affinity: Plain) -> bool:
    """Whether a node meets one of the required terms; terms on fields are left to the scheduler."""
    terms = node_affinity.get(_REQUIRED, {}).get("node_selector_terms")
    return not terms or any(meets(labels, term.get("match_expressions") or ()) for term in terms)


def affinity_keys(node_affinity: Plain) -> tuple[str, ...]:
    """The label keys that required terms speak of."""
    terms = node_affinity.get(_REQUIRED, {}).get("node_selector_terms") or ()
    return tuple(
        condition["key"] for term in terms for condition in term.get("match_expressions") or ()
    )


def pool_selector(pool: Pool, node_selector: Mapping[str, str]) -> dict[str, str]:
    """The pool's labels and the user's; `plan` has made sure that they do not clash."""
    return {**pool.labels, **node_selector}


def joined_tolerations(
    managed: Sequence[Toleration], shared: Sequence[Toleration], own: Sequence[Toleration]
) -> tuple[Toleration, ...]:
    """The tolerations of an operand, each once (X-17, S0-108).

    Those of the managed nodes always count; to them come the operand's own, or, if it has none,
    those that all DaemonSets share.
    """
    found: list[Toleration] = []
    for toleration in (*managed, *(own or shared)):
        if toleration not in found:
            found.append(toleration)
    return tuple(found)


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


def is_in(key: str, values: Sequence[str]) -> Plain:
    """A condition on a label's value."""
    return {"key": key, "operator": "In", "values": list(values)}


def is_not_in(key: str, values: Sequence[str]) -> Plain:
    """A condition that also holds for nodes without the label."""
    return {"key": key, "operator": "NotIn", "values": list(values)}


def _workload(profile: VendorProfile, default: str, workload: str) -> Plain:
    """Nodes for a workload type; unlabelled nodes are for the default type."""
    if default == workload:
        return is_not_in(profile.workload_label, excluded_workloads([workload]))
    return is_in(profile.workload_label, [workload])


def _joined(own: Sequence[Sequence[Plain]], affinity: Plain) -> Plain:
    """All of the user's affinity, with its required terms joined by AND with the stack's."""
    nodes = affinity.get("node_affinity", {})
    terms: Sequence[Plain] = nodes.get(_REQUIRED, {}).get("node_selector_terms") or [{}]
    required = [
        {**term, "match_expressions": [*expressions, *(term.get("match_expressions") or ())]}
        for expressions in own
        for term in terms
    ]
    return {
        **affinity,
        "node_affinity": {**nodes, _REQUIRED: {"node_selector_terms": required}},
    }


def _meets(labels: Mapping[str, str], condition: Plain) -> bool:
    value = labels.get(condition["key"])
    values: Sequence[str] = condition.get("values") or []
    match condition["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case operator:
            return _compares(value, operator, values[0])


def _compares(value: str | None, operator: str, bound: str) -> bool:
    """Gt and Lt hold for whole numbers alone."""
    try:
        difference = int(value or "") - int(bound)
    except ValueError:
        return False
    return difference > 0 if operator == "Gt" else difference < 0


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.get("effect") not in {None, taint.effect}:
        return False
    if toleration.get("key") not in {None, "", taint.key}:
        return False
    return toleration.get("operator") == "Exists" or (toleration.get("value") or "") == taint.value
