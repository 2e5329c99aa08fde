from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rbln_stack import contract
from rbln_stack.config.load import load
from rbln_stack.discovery import DriverSet, Found
from rbln_stack.errors import DiscoveryError, PlanError, Problem
from rbln_stack.operands import ToolkitPlan
from rbln_stack.plan import StackPlan, make_plan
from rbln_stack.profiles import RBLN
from tests.unit.rbln_stack.fleet import facts

DEPLOY = "rebellions.ai/npu.deploy.driver"
ABSENCE = Problem("cluster x", "nothing there", "Add something")


def planned(*nodes: Any, raw: dict[str, Any] | None = None, source: str = "live") -> StackPlan:
    return make_plan(load(raw or {}), Found(source, nodes), RBLN)


def test_absence_fails_by_default() -> None:
    with pytest.raises(DiscoveryError) as caught:
        make_plan(load({}), Found("live", (), ABSENCE), RBLN)
    assert str(caught.value) == (
        "the accelerator nodes cannot be found:\n  - cluster x: nothing there. Add something."
    )


def test_absence_warns_if_told_so() -> None:  # S0-05, X-05
    config = load({"discovery": {"onMissing": "warn"}})
    plan = make_plan(config, Found("live", (), ABSENCE), RBLN)
    assert plan.pools == ()
    assert plan.problems == (ABSENCE,)
    assert [(n.level, str(n)) for n in plan.notices] == [
        ("warning", "cluster x: nothing there. Add something.")
    ]


def test_unlabelled_nodes_fail_all_at_once() -> None:  # S0-05
    bad = [facts(name, drop=(contract.KERNEL_LABEL,)) for name in ("b", "a")]
    with pytest.raises(PlanError) as caught:
        planned(*bad, facts("good"))
    assert [problem.subject for problem in caught.value.problems] == ["node a", "node b"]
    assert str(caught.value).startswith(
        "config and nodes do not fit together:\n  - node a: it holds"
    )


def test_unlabelled_nodes_warn_if_told_so() -> None:  # S0-06
    bad = facts("bad", drop=(contract.KERNEL_LABEL,))
    plan = planned(bad, facts("good"), raw={"discovery": {"onMissing": "warn"}})
    assert len(plan.pools) == 1
    assert [problem.subject for problem in plan.problems] == ["node bad"]
    assert [(n.level, n.subject) for n in plan.notices] == [("warning", "node bad")]


def test_unlabelled_nodes_do_not_matter_without_driver() -> None:  # S0-53
    bad = facts("bad", drop=(contract.KERNEL_LABEL,))
    plan = planned(bad, raw={"driver": {"enabled": False}})
    assert plan.drivers == ()
    assert len(plan.problems) == 1


def test_reserved_keys_are_refused_together() -> None:  # S0-70, S0-73
    raw = {
        "driver": {
            "labels": {"rebellions.ai/driver-node-pool": "x"},
            "nodeSelector": {contract.KERNEL_LABEL: "x", DEPLOY: "true"},
        }
    }
    with pytest.raises(PlanError) as caught:
        planned(facts("n"), raw=raw)
    assert [str(problem) for problem in caught.value.problems] == [
        (
            "driver.labels.rebellions.ai/driver-node-pool: the DaemonSet selects its pods by this "
            "label. Use another key."
        ),
        (
            "driver.nodeSelector.feature.node.kubernetes.io/kernel-version.full: "
            "each pool gives this "
            "label its own value. Remove it; to keep the driver off a node label the node "
            "rebellions.ai/npu.deploy.driver=false."
        ),
        (
            "driver.nodeSelector.rebellions.ai/npu.deploy.driver: each pool gives "
            "this label its own "
            "value. Remove it; to keep the driver off a node label the node "
            "rebellions.ai/npu.deploy.driver=false."
        ),
    ]


def test_too_long_precompiled_tag() -> None:
    raw = {"driver": {"usePrecompiled": True, "image": {"tag": "v" * 110}}}
    with pytest.raises(PlanError, match="has a tag of more than 128 characters"):
        planned(facts("n"), raw=raw)


def test_images() -> None:  # S0-16, X-10, X-44
    (driver,) = planned(facts("n")).drivers
    assert driver.pools[0].image == "harbor.k8s.rebellions.in/rebellions-sw/driver:3.0.0"
    raw = {
        "driver": {"usePrecompiled": True, "image": {"registry": "localhost", "repository": "d"}}
    }
    (driver,) = planned(facts("n"), raw=raw).drivers
    assert driver.pools[0].image == "localhost/d:3.0.0-5.15.0-91-generic-ubuntu22.04"


def test_shared_settings_fill_empty_ones_only() -> None:  # S0-108
    shared = {"tolerations": [{"operator": "Exists"}], "priorityClassName": "p"}
    (driver,) = planned(facts("n"), raw={"daemonsets": shared}).drivers
    assert driver.tolerations == ({"operator": "Exists"},)
    assert driver.priority_class == "p"
    own = {"tolerations": [{"key": "npu", "operator": "Exists"}], "priorityClassName": "q"}
    (driver,) = planned(facts("n"), raw={"daemonsets": shared, "driver": own}).drivers
    assert driver.tolerations == ({"key": "npu", "operator": "Exists"},)
    assert driver.priority_class == "q"


def test_snapshot_is_marked() -> None:  # DC-28
    plan = planned(facts("n"), source="snapshot nodes.json")
    assert plan.outputs()["nodeSource"] == "snapshot nodes.json"
    assert [(n.level, str(n)) for n in plan.notices] == [
        ("warning", "snapshot nodes.json: nodes were read from this file, not from the cluster")
    ]


def test_nodes_that_keep_the_driver_off_are_named() -> None:
    nodes = [
        facts("opt-out", labels={DEPLOY: "false"}),
        facts("host", labels={DEPLOY: "pre-installed"}),
        facts("vm", labels={"rebellions.ai/npu.workload.config": "vm-passthrough"}),
        facts("served", labels={DEPLOY: "true"}),
        facts("tainted", taints=[{"key": "npu", "value": "x", "effect": "NoSchedule"}]),
        facts(
            "cordoned", taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
        ),
    ]
    plan = planned(*nodes)
    assert len(plan.pools[0].nodes) == 6
    pool = "ubuntu22.04-5.15.0-91-generic"
    assert [(n.level, str(n)) for n in plan.notices] == [
        ("info", f"node host: its label {DEPLOY}=pre-installed keeps the driver of {pool} off it"),
        ("info", f"node opt-out: its label {DEPLOY}=false keeps the driver of {pool} off it"),
        (
            "warning",
            (
                f"node tainted: its taint npu=x:NoSchedule keeps the driver of {pool} "
                f"off it; add a "
                "toleration to driver.tolerations or daemonsets.tolerations"
            ),
        ),
        (
            "info",
            (
                "node vm: its label rebellions.ai/npu.workload.config=vm-passthrough "
                "keeps the driver "
                f"of {pool} off it"
            ),
        ),
    ]
    tolerated = planned(nodes[4], raw={"driver": {"tolerations": [{"key": "npu", "value": "x"}]}})
    assert tolerated.notices == ()


def test_plan_does_not_depend_on_order_and_is_plain() -> None:  # DC-25
    nodes = [facts(f"n{i}", kernel=f"6.8.0-{i % 3}-generic") for i in range(9)]
    first = planned(*nodes)
    assert planned(*nodes[4:], *nodes[3::-1]) == first
    json.dumps(first.outputs())
    assert first.outputs()["namespace"] == "rbln-system"  # S0-51
    assert [pool["nodeCount"] for pool in first.outputs()["pools"]] == [3, 3, 3]


def test_planning_loads_neither_pulumi_nor_a_client() -> None:
    code = (
        "import sys, rbln_stack.plan, rbln_stack.pods.services, rbln_stack.config.load;"
        "print([m for m in ('pulumi', 'pulumi_kubernetes', 'lightkube') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def declared(**sections: dict[str, Any]) -> dict[str, Any]:
    """Config with several drivers and none of the default one."""
    return {"driver": {"enabled": False}, "drivers": sections}


def test_a_node_of_two_drivers_is_refused_with_both_names() -> None:  # S0-18, D3
    raw = declared(one={"nodeSelector": {"zone": "a"}}, two={"nodeSelector": {"rack": "1"}})
    node = facts("n", ("zone", "rack"), labels={"zone": "a", "rack": "1"})
    with pytest.raises(PlanError) as caught:
        planned(node, raw=raw)
    assert "node n: the drivers one and two both select it" in str(caught.value)


def test_a_node_of_no_driver_is_a_problem_and_others_go_on() -> None:  # S0-18, S1-19
    raw = declared(one={"nodeSelector": {"zone": "a"}}, two={"nodeSelector": {"zone": "b"}})
    nodes = [facts(f"n{zone}", ("zone",), labels={"zone": zone}) for zone in "abc"]
    plan = planned(*nodes, raw=raw)
    assert [(d.name, [n.name for p in d.pools for n in p.pool.nodes]) for d in plan.drivers] == [
        ("one", ["na"]),
        ("two", ["nb"]),
    ]
    assert [problem.node for problem in plan.problems] == ["nc"]


def test_required_node_affinity_of_the_driver_decides_who_is_claimed() -> None:  # S0-71
    expression = {"key": "zone", "operator": "In", "values": ["a"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    raw = {"driver": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    nodes = [facts(f"n{zone}", ("zone",), labels={"zone": zone}) for zone in "ab"]
    plan = planned(*nodes, raw=raw)
    assert [node.name for pool in plan.pools for node in pool.nodes] == ["na"]
    assert [problem.node for problem in plan.problems] == ["nb"]


def test_managed_nodes_leave_a_node_out_of_everything() -> None:  # S2-08
    plan = planned(facts("n", labels={"rebellions.ai/npu.enabled": "false"}), facts("m"))
    assert [node.name for pool in plan.pools for node in pool.nodes] == ["m"]
    assert [problem.code for problem in plan.problems] == ["node-not-managed"]


def existing(kernel: str, instance: str = "rbln-driver") -> DriverSet:
    pool = f"ubuntu22.04-{kernel}"
    return DriverSet(f"{instance}-{pool}", instance, pool, ("ubuntu", "22.04", kernel, "amd64"))


def test_a_pool_without_nodes_is_kept_with_a_warning() -> None:  # D3, X-18, DC-27
    found = Found("live", (facts("n"),), None, (existing("6.1.0-1"), existing("6.1.0-1", "other")))
    plan = make_plan(load({}), found, RBLN)
    assert [entry.name for entry in plan.drivers[0].pools] == [
        "rbln-driver-ubuntu22.04-5.15.0-91-generic",
        "rbln-driver-ubuntu22.04-6.1.0-1",
    ]
    assert [(n.level, n.subject) for n in plan.notices] == [("warning", "pool ubuntu22.04-6.1.0-1")]


def test_a_pool_without_nodes_goes_by_prune_but_not_when_retained() -> None:  # D3, X-18
    found = Found("live", (facts("n"),), None, (existing("6.1.0-1"), existing("6.1.0-2")))
    raw = {"driver": {"emptyPools": "prune", "retainPools": ["ubuntu22.04-6.1.0-2"]}}
    plan = make_plan(load(raw), found, RBLN)
    assert [pool.kernel for pool in plan.pools] == ["5.15.0-91-generic", "6.1.0-2"]
    assert "goes away" in plan.notices[0].text


def test_catch_all_takes_only_kernels_that_no_pool_names() -> None:  # D3
    nodes = (facts("a"), facts("b", kernel="6.8.0-1"))
    (driver,) = planned(*nodes, raw={"driver": {"catchAll": True}}).drivers
    last = driver.pools[-1]
    assert (last.name, last.catch_all) == ("rbln-driver-catch-all", True)
    assert last.excluded_kernels == ("5.15.0-91-generic", "6.8.0-1")
    assert last.node_selector == {}


def test_two_catch_alls_that_could_meet_are_refused() -> None:  # D3
    raw = declared(
        one={"nodeSelector": {"zone": "a"}, "catchAll": True},
        two={"nodeSelector": {"rack": "1"}, "catchAll": True},
    )
    with pytest.raises(PlanError, match="drivers one and two: both have catchAll"):
        planned(facts("n", ("zone",), labels={"zone": "a"}), raw=raw)


def test_one_toolkit_group_per_runtime() -> None:
    nodes = (facts("a"), facts("b", runtime="cri-o://1.30"), facts("c", runtime="docker://27"))
    (plan,) = [p for p in planned(*nodes).workloads if isinstance(p, ToolkitPlan)]
    assert [(g.name, g.runtime.name, g.only, g.others) for g in plan.groups] == [
        ("rbln-container-toolkit", "containerd", (), ("b", "c")),
        ("rbln-container-toolkit-crio", "crio", ("b",), ()),
        ("rbln-container-toolkit-docker", "docker", ("c",), ()),
    ]


def test_an_unknown_runtime_is_a_problem_unless_config_names_one() -> None:
    node = facts("n", runtime="frakti://1")
    with pytest.raises(PlanError, match="its container runtime frakti is none of"):
        planned(node)
    plan = planned(node, raw={"discovery": {"onMissing": "warn"}})
    assert [problem.code for problem in plan.problems] == ["runtime-unknown"]
    assert planned(node, raw={"containerToolkit": {"runtime": "crio"}}).problems == ()
    assert planned(node, raw={"containerToolkit": {"enabled": False}}).problems == ()


def test_vm_operands_are_accepted_and_said_not_to_be_deployed() -> None:  # S0-58, S1-60
    raw = {"vfioManager": {"enabled": True}, "sandboxDevicePlugin": {"enabled": True}}
    plan = planned(facts("n"), raw=raw)
    assert [(n.level, str(n)) for n in plan.notices] == [
        ("warning", f"{name}: it is enabled, but this version does not deploy it")
        for name in ("vfio-manager", "sandbox-device-plugin")
    ]
    assert {p.operand for p in plan.workloads} == {p.operand for p in planned(facts("n")).workloads}


def test_switches_take_operands_out_of_the_plan() -> None:  # S0-20, S0-34, S0-54
    sections = ["validator", "containerToolkit", "devicePlugin", "npuFeatureDiscovery"]
    sections += ["rblnDaemon", "metricsExporter"]
    plan = planned(facts("n"), raw={name: {"enabled": False} for name in sections})
    assert [p.operand for p in plan.workloads] == ["node-state"]
    off = planned(facts("n"), raw={"driver": {"enabled": False}})
    assert off.drivers == ()
    assert "container-toolkit" in [p.operand for p in off.workloads]


KERNELS = st.sampled_from(["5.15.0-91-generic", "6.8.0-45-generic", "6.8.0-45_generic", "5.14.0+"])
NODES = st.lists(
    st.tuples(KERNELS, st.sampled_from(["amd64", "arm64"]), st.booleans()), min_size=1, max_size=12
)


@given(NODES, st.randoms(use_true_random=False))
def test_any_order_of_nodes_gives_the_same_plan_and_no_node_is_lost(
    rows: list[tuple[str, str, bool]], random: Any
) -> None:  # D3, D6, DC-25
    nodes = [
        facts(f"n{i}", kernel=kernel, arch=arch, drop=(contract.OS_ID_LABEL,) if bad else ())
        for i, (kernel, arch, bad) in enumerate(rows)
    ]
    raw = {"discovery": {"onMissing": "warn"}}
    first = planned(*nodes, raw=raw)
    random.shuffle(nodes)
    assert planned(*nodes, raw=raw) == first
    pooled = [node.name for pool in first.pools for node in pool.nodes]
    told = [problem.node for problem in first.problems]
    assert sorted([*pooled, *told]) == sorted(node.name for node in nodes)
    names = [entry.name for driver in first.drivers for entry in driver.pools]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 63 for name in names)
