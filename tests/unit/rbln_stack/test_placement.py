from __future__ import annotations

from typing import Any

from rbln_stack import contract, placement
from rbln_stack.config.load import load
from rbln_stack.discovery import Found
from rbln_stack.plan import make_plan
from rbln_stack.profiles import RBLN
from tests.unit.rbln_stack.fleet import BY_CLASS, BY_VENDOR, facts

REQUIRED = "required_during_scheduling_ignored_during_execution"


def terms(affinity: Any) -> list[list[dict[str, Any]]]:
    listed = affinity["node_affinity"][REQUIRED]["node_selector_terms"]
    return [term["match_expressions"] for term in listed]


def planned(raw: dict[str, Any] | None = None) -> Any:
    return make_plan(load(raw or {}), Found("live", (facts("n"),)), RBLN)


def toolkit(raw: dict[str, Any] | None = None) -> Any:
    (found,) = [p for p in planned(raw).workloads if p.operand == "container-toolkit"]
    return found


def test_every_operand_takes_accelerator_nodes_minus_opt_outs() -> None:  # D2, S1-64, S1-65
    for plan in planned().workloads:
        found = terms(placement.operand_affinity(plan))
        assert [term[0] for term in found] == [
            {"key": key, "operator": "In", "values": ["true"]} for key in (BY_CLASS, BY_VENDOR)
        ]
        opt_out = {
            "key": f"rebellions.ai/npu.deploy.{plan.operand}",
            "operator": "NotIn",
            "values": ["false", "paused-for-driver-upgrade"],
        }
        assert all(opt_out in term for term in found)


def test_driver_also_leaves_host_drivers_alone() -> None:  # D2
    (driver,) = planned().drivers
    found = terms(placement.pool_affinity(driver, driver.pools[0]))
    values = ["false", "paused-for-driver-upgrade", "pre-installed"]
    key = "rebellions.ai/npu.deploy.driver"
    assert all({"key": key, "operator": "NotIn", "values": values} in term for term in found)


def test_workload_type_follows_the_default() -> None:  # S1-57, S1-58
    key = "rebellions.ai/npu.workload.config"
    by_default = {"key": key, "operator": "NotIn", "values": ["vm-passthrough"]}
    assert by_default in terms(placement.operand_affinity(toolkit()))[0]
    labelled = {"key": key, "operator": "In", "values": ["container"]}
    plan = toolkit({"workloadType": "vm-passthrough"})
    assert labelled in terms(placement.operand_affinity(plan))[0]


def test_own_affinity_narrows_and_never_widens() -> None:  # D12
    def term(zone: str) -> dict[str, Any]:
        return {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}

    wanted = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [term("a"), term("b")]
            }
        }
    }
    plan = toolkit({"containerToolkit": {"affinity": wanted}})
    before = repr(plan.affinity)
    found = terms(placement.operand_affinity(plan))
    assert [(one[0]["key"], one[-1]["values"]) for one in found] == [
        (BY_CLASS, ["a"]),
        (BY_CLASS, ["b"]),
        (BY_VENDOR, ["a"]),
        (BY_VENDOR, ["b"]),
    ]
    assert repr(plan.affinity) == before


def test_catch_all_never_meets_a_pool() -> None:  # D3
    (driver,) = planned({"driver": {"catchAll": True}}).drivers
    pool, rest = driver.pools
    for term in terms(placement.pool_affinity(driver, rest)):
        assert {
            "key": contract.KERNEL_LABEL,
            "operator": "NotIn",
            "values": [pool.pool.kernel],
        } in term
        assert {"key": contract.KERNEL_LABEL, "operator": "Exists"} in term


def test_runtimes_are_told_apart_by_host_name() -> None:
    nodes = (facts("a"), facts("b", runtime="docker://27"))
    plan = make_plan(load({}), Found("live", nodes), RBLN)
    (found,) = [p for p in plan.workloads if p.operand == "container-toolkit"]
    groups = found.groups  # type: ignore[attr-defined]  # the toolkit's own field
    shown = [
        [e for e in terms(placement.runtime_affinity(found, group))[0] if "hostname" in e["key"]]
        for group in groups
    ]
    key = "kubernetes.io/hostname"
    assert shown == [
        [{"key": key, "operator": "NotIn", "values": ["b"]}],
        [{"key": key, "operator": "In", "values": ["b"]}],
    ]


def test_tolerations_of_managed_nodes_count_always_own_ones_replace_shared_ones() -> None:
    managed, shared, own = ({"key": key, "operator": "Exists"} for key in ("m", "s", "o"))
    assert placement.joined_tolerations([managed], [shared], []) == (managed, shared)
    assert placement.joined_tolerations([managed], [shared], [own]) == (managed, own)
    assert placement.joined_tolerations([managed], [], [managed]) == (managed,)
    raw = {"managedNodes": {"tolerations": [managed]}, "daemonsets": {"tolerations": [shared]}}
    plan = planned(raw)
    for operand in (*plan.drivers, *plan.workloads):
        assert operand.tolerations == (managed, shared)


def test_conditions_as_the_scheduler_reads_them() -> None:
    labels = {"n": "5", "zone": "a"}
    cases = [
        ("zone", "In", ["a"], True),
        ("zone", "NotIn", ["a"], False),
        ("rack", "NotIn", ["a"], True),
        ("zone", "Exists", None, True),
        ("zone", "DoesNotExist", None, False),
        ("n", "Gt", ["4"], True),
        ("n", "Lt", ["4"], False),
        ("zone", "Gt", ["4"], False),
    ]
    for key, operator, values, met in cases:
        condition = {"key": key, "operator": operator, "values": values}
        assert placement.meets(labels, [condition]) is met
