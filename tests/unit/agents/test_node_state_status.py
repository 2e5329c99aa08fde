from __future__ import annotations

from typing import Any

import pytest

from agents.node_state import core, status
from tests.unit.agents.node_state_fleet import POOL, Cluster, daemon_set, node, pod

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def of(cluster: Cluster, kind: str) -> status.Write:
    (write,) = (w for w in status.decide(cluster.facts(), NOW) if w.kind == kind)
    return write


def one_of(total: int) -> Cluster:
    """A fleet in which the validator's pod of the first node is lost."""
    cluster = Cluster(*(node(f"n{i}") for i in range(total)))
    cluster.drop_pod("operator-validator-n0")
    cluster.replace_set(daemon_set("operator-validator", total, numberReady=total - 1))
    return cluster


@pytest.mark.parametrize(
    ("readiness", "ready", "reason"),
    [
        ({}, False, "SomeNodesNotReady"),
        ({"require": "all"}, False, "SomeNodesNotReady"),
        ({"require": "90%"}, True, "EnoughNodesReady"),
        ({"require": "91%"}, False, "SomeNodesNotReady"),
        ({"require": "none"}, True, "NothingRequired"),
        ({"require": "most"}, False, "InvalidReadiness"),
        ({"pools": [POOL]}, False, "SomeNodesNotReady"),
        ({"pools": ["elsewhere"]}, False, "PoolMissing"),
    ],
)
def test_what_readiness_asks_for(readiness: dict[str, Any], *, ready: bool, reason: str) -> None:
    cluster = one_of(10)
    cluster.spec(readiness=readiness)
    write = of(cluster, status.POLICY)
    assert (write.ready, write.reason) == (ready, reason)
    assert write.status["nodes"] == "9/10"
    assert write.status["firstUnready"] == "operator-validator"
    assert [found["name"] for found in write.status["unreadyNodes"]] == ["n0"]


def test_percentage_does_not_excuse_a_missing_daemon_set() -> None:
    cluster = one_of(10)
    cluster.drop_set("metrics-exporter")
    cluster.spec(readiness={"require": "0%"})
    assert of(cluster, status.POLICY).reason == "SomeComponentsNotReady"


def test_no_node_is_never_ready() -> None:
    cluster = Cluster()
    assert of(cluster, status.POLICY).reason == "NoNodes"
    assert of(cluster, status.DRIVER).reason == "NoNodes"


def test_nodes_without_a_pool_are_told() -> None:
    cluster = Cluster(node("a"))
    cluster.nodes.append(node("b", kernel="6.8"))
    write = of(cluster, status.POLICY)
    why = "no driver DaemonSet selects ubuntu 22.04 6.8 amd64"
    assert write.message == f"1 of 1 nodes are ready; in no pool: b ({why})"
    assert write.status["uncoveredNodes"] == [{"name": "b", "reason": why}]


def test_driver_is_judged_by_its_own_pods_alone() -> None:
    cluster = one_of(2)
    assert of(cluster, status.DRIVER).ready
    cluster.drop_pod("driver-n1")
    cluster.pods.append(pod("driver", "n1", ready=False))
    write = of(cluster, status.DRIVER)
    assert (write.status["nodes"], write.status["firstUnready"]) == ("1/2", "driver")
    cluster.replace_set(daemon_set("driver", 2, generation=3))
    assert of(cluster, status.DRIVER).reason == "DaemonSetNotObserved"
    cluster.drop_set("driver")
    assert of(cluster, status.DRIVER).reason == "DaemonSetMissing"


def test_same_facts_again_write_nothing() -> None:
    for cluster in (Cluster(node("a")), one_of(3)):
        for write in status.decide(cluster.facts(), THEN):
            kind = cluster.policies if write.kind == status.POLICY else cluster.drivers
            kind[0]["status"] = write.status
        assert status.decide(cluster.facts(), NOW) == ()


def test_transition_time_changes_with_the_status_alone() -> None:
    cluster = one_of(2)
    foreign = {"type": "Error", "status": "False"}
    before = of(cluster, status.POLICY).status
    before["conditions"][0]["lastTransitionTime"] = THEN
    cluster.policies[0]["status"] = {**before, "conditions": [*before["conditions"], foreign]}
    cluster.drop_pod("driver-n1")
    conditions = of(cluster, status.POLICY).status["conditions"]
    assert (conditions[0]["status"], conditions[0]["lastTransitionTime"]) == ("False", THEN)
    assert conditions[-1] == foreign
    whole = Cluster(node("a"))
    whole.policies = cluster.policies
    ready = of(whole, status.POLICY).status["conditions"][0]
    assert (ready["status"], ready["lastTransitionTime"]) == ("True", NOW)


def test_long_lists_are_cut() -> None:
    cluster = Cluster(*(node(f"n{i:03}", allocatable="0") for i in range(120)))
    write = of(cluster, status.POLICY)
    assert len(write.status["unreadyNodes"]) == 100
    assert write.status["nodes"] == "0/120"
    assert write.message.endswith("; and 117 more")


def test_operand_that_is_off_is_not_expected() -> None:
    off = {"enabled": False}
    assert core.expected_operands({"validator": off, "rblnDaemon": off, "devicePlugin": {}}) == (
        "driver",
        "container-toolkit",
        "device-plugin",
        "npu-feature-discovery",
        "metrics-exporter",
    )
