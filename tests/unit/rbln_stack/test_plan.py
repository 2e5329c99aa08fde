from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from rbln_stack import contract
from rbln_stack.config.load import load
from rbln_stack.discovery import Found
from rbln_stack.errors import DiscoveryError, PlanError, Problem
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
    assert plan.driver is None
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
    driver = planned(facts("n")).driver
    assert driver is not None
    assert driver.pools[0].image == "harbor.k8s.rebellions.in/rebellions-sw/driver:3.0.0"
    raw = {
        "driver": {"usePrecompiled": True, "image": {"registry": "localhost", "repository": "d"}}
    }
    driver = planned(facts("n"), raw=raw).driver
    assert driver is not None
    assert driver.pools[0].image == "localhost/d:3.0.0-5.15.0-91-generic-ubuntu22.04"


def test_shared_settings_fill_empty_ones_only() -> None:  # S0-108
    shared = {"tolerations": [{"operator": "Exists"}], "priorityClassName": "p"}
    driver = planned(facts("n"), raw={"daemonsets": shared}).driver
    assert driver is not None
    assert driver.tolerations == ({"operator": "Exists"},)
    assert driver.priority_class == "p"
    own = {"tolerations": [{"key": "npu", "operator": "Exists"}], "priorityClassName": "q"}
    driver = planned(facts("n"), raw={"daemonsets": shared, "driver": own}).driver
    assert driver is not None
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
        "import sys, rbln_stack.plan, rbln_stack.pods, rbln_stack.config.load;"
        "print([m for m in ('pulumi', 'pulumi_kubernetes', 'lightkube') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
