from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.node_state import core, facts, status
from agents.node_state.selection import selects
from rbln_stack import contract
from tests.unit.agents.node_state_fleet import (
    OPERANDS,
    POOL,
    RBLN,
    Cluster,
    daemon_set,
    node,
    pod,
)

if TYPE_CHECKING:
    import random

DEPLOY_DRIVER = RBLN.deploy_label(contract.DRIVER_OPERAND)


def lack(cluster: Cluster, **spec: Any) -> str:
    """What the only covered node lacks."""
    (verdict,) = core.judge(cluster.facts(), spec).nodes
    return f"{verdict.lack.component}: {verdict.lack.reason}" if verdict.lack else ""


@pytest.mark.parametrize("operand", ["driver", *OPERANDS])
def test_missing_daemon_set_is_not_ready(operand: str) -> None:
    cluster = Cluster(node("a"))
    cluster.drop_set(operand)
    verdict = core.judge(cluster.facts(), {})
    (missing,) = (c for c in verdict.components if not c.ready)
    assert (missing.name, missing.lack, missing.settled) == (
        operand,
        "there is no DaemonSet",
        False,
    )
    assert verdict.first_unready() == operand
    assert not status.policy_finding(verdict, {}).ready


def test_stale_generation_is_not_ready() -> None:
    cluster = Cluster(node("a"))
    cluster.replace_set(daemon_set("container-toolkit", 1, generation=3))
    verdict = core.judge(cluster.facts(), {})
    (stale,) = (c for c in verdict.components if not c.ready)
    assert stale.lack == "rbln-container-toolkit: its newest form is not yet acted on"
    assert not stale.settled
    assert status.policy_finding(verdict, {}).reason == "SomeComponentsNotReady"


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({"numberReady": 0}, "rbln-device-plugin: 0 of 1 pods are ready"),
        (
            {"updatedNumberScheduled": 0},
            "rbln-device-plugin: 0 of 1 pods are of the newest template",
        ),
    ],
)
def test_incomplete_daemon_set_is_not_ready(counts: dict[str, int], text: str) -> None:
    cluster = Cluster(node("a"))
    cluster.replace_set(daemon_set("device-plugin", 1, **counts))
    verdict = core.judge(cluster.facts(), {})
    assert [c.lack for c in verdict.components if not c.ready] == [text]


def test_daemon_set_whose_controller_has_said_nothing_is_not_ready() -> None:
    cluster = Cluster(node("a"))
    silent = daemon_set("device-plugin", 1)
    del silent["status"]
    cluster.replace_set(silent)
    verdict = core.judge(cluster.facts(), {})
    assert [c.name for c in verdict.components if not c.ready] == ["device-plugin"]


def test_driver_pod_of_an_old_template_is_not_ready() -> None:
    cluster = Cluster(node("a"))
    cluster.drop_pod("driver-a")
    cluster.pods.append(pod("driver", "a", revision="old"))
    assert lack(cluster) == "driver: pod driver-a is not of the newest template"


def test_driver_pod_of_an_unknown_template_is_not_ready() -> None:
    cluster = Cluster(node("a"))
    cluster.revisions.clear()
    assert lack(cluster) == "driver: pod driver-a is not of the newest template"


def test_pod_that_leaves_counts_only_without_a_successor() -> None:
    cluster = Cluster(node("a"))
    leaving = pod("driver", "a")
    leaving["metadata"] |= {"name": "before", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    cluster.pods.append(leaving)
    assert lack(cluster) == ""
    cluster.drop_pod("driver-a")
    assert lack(cluster) == "driver: pod before is being deleted"


def test_container_that_waits_is_named() -> None:
    cluster = Cluster(node("a"))
    cluster.drop_pod("operator-validator-a")
    waiting = pod("operator-validator", "a", ready=False)
    waiting["status"]["initContainerStatuses"] = [
        {"name": "driver-validation", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    ]
    waiting["status"]["containerStatuses"] = [
        {"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}
    ]
    cluster.pods.append(waiting)
    assert lack(cluster) == (
        "operator-validator: pod operator-validator-a is not ready (driver-validation "
        "ImagePullBackOff)"
    )


def test_first_broken_state_is_named_in_order() -> None:
    cluster = Cluster(node("a", allocatable="0"))
    cluster.drop_pod("metrics-exporter-a")
    assert lack(cluster) == (
        "device-plugin: none of rebellions.ai/ATOM, rebellions.ai/REBEL, rebellions.ai/npu is "
        "allocatable"
    )
    cluster.drop_pod("container-toolkit-a")
    assert lack(cluster) == "container-toolkit: there is no pod of rbln-container-toolkit"
    cluster.drop_pod("driver-a")
    assert lack(cluster) == "driver: there is no pod of rbln-driver"
    cluster.nodes = [node("a", ready="Unknown")]
    assert lack(cluster) == "node: its kubelet does not report Ready"


def test_resource_names_of_the_policy_count_too() -> None:
    broken = node("a", allocatable="0")
    broken["status"]["allocatable"]["example.com/card"] = "2"
    cluster = Cluster(broken)
    own = {"resourceList": [{"resourceName": "card", "resourcePrefix": "example.com"}]}
    assert lack(cluster).startswith("device-plugin: none of")
    assert lack(cluster, devicePlugin=own) == ""


@pytest.mark.parametrize(
    "labels",
    [
        {DEPLOY_DRIVER: "false"},
        {RBLN.workload_label: "vm-passthrough"},
        {RBLN.present_labels[0]: "false"},
    ],
)
def test_node_that_takes_no_part_is_ignored(labels: dict[str, str]) -> None:
    cluster = Cluster(node("a"))
    cluster.nodes.append(node("b", labels=labels))
    verdict = core.judge(cluster.facts(), {})
    assert [found.name for found in verdict.nodes] == ["a"]
    assert verdict.uncovered == ()
    assert status.policy_finding(verdict, {}).ready


def test_opt_out_of_one_operand_asks_for_the_rest() -> None:
    cluster = Cluster(
        node("a", allocatable="0", labels={RBLN.deploy_label("device-plugin"): "false"})
    )
    cluster.drop_pod("device-plugin-a")
    assert lack(cluster) == ""
    cluster.drop_pod("operator-validator-a")
    assert lack(cluster).startswith("operator-validator: ")


def test_pause_is_not_ready_and_keeps_the_pool() -> None:
    cluster = Cluster(node("a", labels={DEPLOY_DRIVER: "paused-for-driver-upgrade"}))
    (verdict,) = core.judge(cluster.facts(), {}).nodes
    assert verdict.pool == POOL
    assert lack(cluster) == "driver: it is paused for a driver upgrade"


def test_driver_of_the_host_needs_no_pod_and_no_pool() -> None:
    cluster = Cluster(node("a", kernel="6.8", labels={DEPLOY_DRIVER: "pre-installed"}))
    cluster.drop_pod("driver-a")
    assert lack(cluster) == ""
    cluster.drop_pod("operator-validator-a")
    assert lack(cluster).startswith("operator-validator: ")


def test_stack_without_driver_asks_for_no_driver_pod() -> None:
    cluster = Cluster(node("a", kernel="6.8"))
    cluster.drop_set("driver")
    verdict = core.judge(cluster.facts(), {"driver": {"enabled": False}})
    assert status.policy_finding(verdict, {}).ready


def test_nodes_that_no_pool_covers_are_listed() -> None:
    cluster = Cluster(node("a"))
    cluster.nodes += [node("c", drop=contract.KERNEL_LABEL), node("b", kernel="6.8.0")]
    verdict = core.judge(cluster.facts(), {})
    assert [(found.name, found.reason) for found in verdict.uncovered] == [
        ("b", "no driver DaemonSet selects ubuntu 22.04 6.8.0 amd64"),
        ("c", f"it lacks the label {contract.KERNEL_LABEL}"),
    ]
    assert [found.name for found in verdict.nodes] == ["a"]


def test_operand_nobody_expects_is_still_judged_last() -> None:
    cluster = Cluster(node("a"))
    cluster.daemon_sets.append(daemon_set("dra-kubelet-plugin", 1, numberReady=0))
    verdict = core.judge(cluster.facts(), {})
    assert [c.name for c in verdict.components] == ["driver", *OPERANDS, "dra-kubelet-plugin"]
    assert verdict.first_unready() == "dra-kubelet-plugin"


def test_pods_and_revisions_of_others_are_not_kept() -> None:
    other = {"metadata": {"name": "p", "ownerReferences": [{"kind": "ReplicaSet"}]}}
    assert facts.pod(other) is None
    assert facts.revision(other) is None


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ({"key": "k", "operator": "In", "values": ["1", "2"]}, True),
        ({"key": "k", "operator": "NotIn", "values": ["1"]}, False),
        ({"key": "z", "operator": "NotIn", "values": ["1"]}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "operator": "DoesNotExist"}, False),
        ({"key": "k", "operator": "Gt", "values": ["0"]}, True),
        ({"key": "k", "operator": "Lt", "values": ["0"]}, False),
        ({"key": "z", "operator": "Gt", "values": ["0"]}, False),
        ({"key": "k", "operator": "Unheard"}, False),
    ],
)
def test_affinity_is_read_as_the_scheduler_reads_it(
    requirement: dict[str, Any], *, expected: bool
) -> None:
    manifest = daemon_set("driver", 1)
    manifest["spec"]["template"]["spec"] = {"affinity": affinity([requirement])}
    assert selects(facts.daemon_set(manifest, RBLN), "a", {"k": "1"}) is expected


def test_terms_are_alternatives_and_fields_count() -> None:
    manifest = daemon_set("driver", 1)
    only_b = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
    wanted = affinity([{"key": "k", "operator": "Exists"}])
    terms = wanted["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    terms["nodeSelectorTerms"] += [only_b, {}]
    manifest["spec"]["template"]["spec"] = {"affinity": wanted}
    found = facts.daemon_set(manifest, RBLN)
    assert [selects(found, name, {}) for name in ("a", "b")] == [False, True]
    assert selects(found, "a", {"k": ""})


def affinity(expressions: list[dict[str, Any]]) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


names = st.sampled_from(["a", "b", "c", "d"])


@given(
    count=st.integers(0, 4),
    lost_pods=st.sets(st.tuples(st.sampled_from(["driver", *OPERANDS]), names), max_size=3),
    lost_devices=st.sets(names, max_size=2),
    opted_out=st.sets(names, max_size=2),
    strange_kernel=st.sets(names, max_size=2),
    seed=st.randoms(use_true_random=False),
)
def test_ready_implies_that_every_covered_node_is(
    *,
    count: int,
    lost_pods: set[tuple[str, str]],
    lost_devices: set[str],
    opted_out: set[str],
    strange_kernel: set[str],
    seed: random.Random,
) -> None:
    nodes = [
        node(
            name,
            allocatable="0" if name in lost_devices else "1",
            kernel="6.8" if name in strange_kernel else "5.15.0-91-generic",
            labels={DEPLOY_DRIVER: "false"} if name in opted_out else {},
        )
        for name in "abcd"[:count]
    ]
    cluster = Cluster(*nodes)
    for operand, name in lost_pods:
        cluster.drop_pod(f"{operand}-{name}")
    for kind in (cluster.nodes, cluster.pods, cluster.daemon_sets, cluster.revisions):
        seed.shuffle(kind)
    verdict = core.judge(cluster.facts(), {})
    finding = status.policy_finding(verdict, {})
    expected = set("abcd"[:count]) - opted_out - strange_kernel
    assert {found.name for found in verdict.nodes} == expected
    broken = {name for _, name in lost_pods} | lost_devices
    assert finding.ready == (bool(expected) and not expected & broken)
    if finding.ready:
        assert verdict.first_unready() == ""
