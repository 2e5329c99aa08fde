from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import yaml

from components.assemble import assemble
from rbln_stack import kube, observed
from rbln_stack.config.load import load
from rbln_stack.discovery import Found
from rbln_stack.drift import template_changes
from rbln_stack.impact import AT_ONCE, ON_DELETION, Impact, impact
from rbln_stack.observed import DriverPod, DriverSet, Observed, Workload
from rbln_stack.plan import StackPlan, make_plan
from rbln_stack.profiles import RBLN
from tests.unit.components.recording import record
from tests.unit.rbln_stack.fleet import facts

if TYPE_CHECKING:
    from pathlib import Path

POOL = "ubuntu22.04-5.15.0-91-generic"
NAME = f"rbln-driver-{POOL}"
TRAINER = Workload(namespace="ml", name="trainer", node="n1", devices="rebellions.ai/ATOM: 2")


def planned(*nodes: Any, raw: dict[str, Any] | None = None) -> StackPlan:
    return make_plan(load(raw or {}), Found("live", nodes), RBLN)


def live(plan: StackPlan, *, on_delete: bool = True, **pods: str) -> tuple[DriverSet, ...]:
    """The DaemonSets of a plan once applied, with pods by node: `n1="rbln-driver-…"`."""
    sets = [
        one for one in record(lambda: assemble(plan, kube.Access())).objects() if is_driver(one)
    ]
    return tuple(
        DriverSet(
            name=one["metadata"]["name"],
            pool=one["metadata"]["labels"][RBLN.pool_label],
            on_delete=on_delete,
            template=one["spec"]["template"],
            pods=tuple(
                DriverPod(name=f"p-{node}", node=node, outdated=False)
                for node, owner in pods.items()
                if owner == one["metadata"]["name"]
            ),
        )
        for one in sets
    )


def is_driver(manifest: dict[str, Any]) -> bool:
    labels = manifest["metadata"].get("labels") or {}
    return manifest["kind"] == "DaemonSet" and RBLN.pool_label in labels


def only(found: Impact) -> Any:
    (pool,) = found.pools
    return pool


def test_without_a_cluster_nothing_is_claimed() -> None:  # DC-28
    found = impact(planned(facts("n1")), None)
    assert not found.observed
    assert found.notices() == ()
    assert not found.quiet


def test_gap_is_told_and_is_not_quiet() -> None:
    unread = Observed(complete=False, gaps=("API server x: cannot be reached",))
    found = impact(planned(facts("n1")), unread)
    assert found.as_lines() == [
        "impact: not all of it is known, because API server x: cannot be reached"
    ]
    assert found.pools == ()


def test_new_pool_starts_drivers() -> None:
    pool = only(impact(planned(facts("n1"), facts("n2")), Observed()))
    assert (pool.action, pool.joins) == ("create", ("n1", "n2"))


def test_applied_plan_is_quiet() -> None:  # DC-25
    plan = planned(
        facts("n1"), raw={"driver": {"resources": {"requests": {"cpu": "1000m"}}, "args": ["x"]}}
    )
    found = impact(plan, Observed(drivers=live(plan, n1=NAME), workloads=(TRAINER,)))
    assert only(found).changes == ()
    assert found.quiet
    assert found.as_lines() == ["impact: no node, driver pod or running pod is touched"]


def test_changed_image_names_pods_nodes_and_workloads() -> None:
    before = planned(facts("n1"), facts("n2"))
    after = planned(facts("n1"), facts("n2"), raw={"driver": {"image": {"tag": "3.1.0"}}})
    elsewhere = Workload(namespace="ml", name="other", node="n9", devices="rebellions.ai/ATOM: 1")
    seen = Observed(drivers=live(before, n1=NAME, n2=NAME), workloads=(elsewhere, TRAINER))
    pool = only(impact(after, seen))
    assert pool.action == "update"
    assert any(change.endswith("driver:3.1.0") for change in pool.changes)
    assert (pool.replaced, pool.when) == (("n1", "n2"), ON_DELETION)
    assert pool.workloads == (TRAINER,)
    rolling = Observed(drivers=live(before, on_delete=False, n1=NAME))
    assert only(impact(after, rolling)).when == AT_ONCE


@pytest.mark.parametrize(
    ("driver", "field"),
    [
        ({"tolerations": [{"operator": "Exists"}]}, "tolerations"),
        ({"priorityClassName": "high"}, "priorityClassName"),
        ({"env": [{"name": "A", "value": "1"}]}, "env"),
        ({"resources": {"limits": {"cpu": "1"}}}, "resources"),
        ({"labels": {"team": "x"}}, "labels"),
    ],
)
def test_added_and_removed_fields_are_seen(driver: dict[str, Any], field: str) -> None:
    bare, full = planned(facts("n1")), planned(facts("n1"), raw={"driver": driver})
    for before, after in ((bare, full), (full, bare)):
        pool = only(impact(after, Observed(drivers=live(before, n1=NAME))))
        assert any(change.endswith(field) for change in pool.changes), pool.changes


def test_quantities_are_compared_as_amounts() -> None:
    def template(amount: str) -> dict[str, Any]:
        container = {"name": "c", "resources": {"requests": {"cpu": amount}}}
        return {"spec": {"containers": [container]}}

    assert template_changes(template("1000m"), template("1")) == ()
    assert template_changes(template("1024Mi"), template("1Gi")) == ()
    assert template_changes(template("2"), template("1")) == ("resources",)
    assert template_changes(template("odd"), template("1")) == ("resources",)


def test_pool_that_disappears_is_a_warning_with_its_nodes() -> None:  # DC-27, X-18
    before = planned(facts("n1"), facts("n2", kernel="6.8.0-49-generic"))
    seen = Observed(drivers=live(before, n1=NAME), workloads=(TRAINER,))
    found = impact(planned(facts("n2", kernel="6.8.0-49-generic")), seen)
    removed = next(pool for pool in found.pools if pool.action == "remove")
    assert (removed.pool, removed.leaves, removed.workloads) == (POOL, ("n1",), (TRAINER,))
    assert [(notice.level, notice.text) for notice in removed.notices()] == [
        ("warning", f"DaemonSet {NAME} will be removed on 1 node: n1"),
        (
            "warning",
            "running pods there hold devices: ml/trainer (rebellions.ai/ATOM: 2) on n1",
        ),
    ]


def test_node_that_moves_is_told_once() -> None:
    before = planned(facts("n1"))
    after = planned(facts("n1", kernel="6.8.0-49-generic"))
    found = impact(after, Observed(drivers=live(before, n1=NAME)))
    moves = [move for pool in found.pools for move in pool.moves]
    assert [(move.node, move.origin) for move in moves] == [("n1", NAME)]
    assert all(not pool.leaves and not pool.joins for pool in found.pools)


def test_switched_off_driver_removes_all() -> None:
    before = planned(facts("n1"))
    off = planned(facts("n1"), raw={"driver": {"enabled": False}})
    pool = only(impact(off, Observed(drivers=live(before, n1=NAME))))
    assert (pool.action, pool.leaves) == ("remove", ("n1",))


def test_nodes_that_keep_the_driver_off_are_not_said_to_join() -> None:
    nodes = [
        facts("opt-out", labels={"rebellions.ai/npu.deploy.driver": "false"}),
        facts("tainted", taints=[{"key": "npu", "effect": "NoSchedule"}]),
        facts("vm", labels={"rebellions.ai/npu.workload.config": "vm-passthrough"}),
    ]
    pool = only(impact(planned(*nodes, facts("ok")), Observed()))
    assert pool.joins == ("ok",)
    reasons = {one.node: one.reason for one in pool.kept_off}
    assert reasons["opt-out"] == "label rebellions.ai/npu.deploy.driver=false"
    assert reasons["tainted"] == "taint npu:NoSchedule is not tolerated"


def test_fleet_is_not_listed_in_full() -> None:
    plan = planned(*(facts(f"n{number:04}") for number in range(1000)))
    lines = impact(plan, Observed()).as_lines()
    assert any("on 1000 nodes: n0000, n0001" in line for line in lines)
    assert any(line.endswith("and 992 more") for line in lines)
    assert max(len(line) for line in lines) < 250


def test_impact_is_plain() -> None:
    before, after = planned(facts("n1")), planned(facts("n1", kernel="6.8.0-49-generic"))
    seen = Observed(drivers=live(before, n1=NAME), workloads=(TRAINER,))
    shown = impact(after, seen).as_json()
    assert json.loads(json.dumps(shown)) == shown
    assert shown["workloads"][0]["name"] == "trainer"


def pod(name: str, containers: list[dict[str, Any]], **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"nodeName": "n1", "containers": containers, **spec},
    }


def asking(**amounts: str) -> dict[str, Any]:
    named = {f"rebellions.ai/{name}": amount for name, amount in amounts.items()}
    return {"resources": {"limits": named}}


def test_devices_of_init_containers_count_and_are_handed_on() -> None:
    one = observed.workload(pod("a", [asking(ATOM="1"), asking(ATOM="2")]), "rebellions.ai/")
    assert one is not None
    assert one.devices == "rebellions.ai/ATOM: 3"
    initial = observed.workload(
        pod("b", [{}], initContainers=[asking(ATOM="4"), asking(ATOM="2")]), "rebellions.ai/"
    )
    assert initial is not None
    assert initial.devices == "rebellions.ai/ATOM: 4"
    assert observed.workload(pod("c", [asking(ATOM="0"), {}]), "rebellions.ai/") is None


class Api:
    """Answers lists by path; a path that is not there is forbidden."""

    def __init__(self, lists: dict[str, list[dict[str, Any]]]) -> None:
        self.lists = lists
        self.asked: list[httpx.Request] = []

    def __deepcopy__(self, _: object) -> Api:
        return self

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        items = self.lists.get(request.url.path)
        if items is None:
            return httpx.Response(403, json={"message": "no"})
        return httpx.Response(200, json={"items": items})


DAEMON_SETS = "/apis/apps/v1/namespaces/rbln-system/daemonsets"
DRIVER_PODS = "/api/v1/namespaces/rbln-system/pods"
PODS = "/api/v1/pods"


def looked(tmp_path: Path, api: Api) -> Observed:
    path = tmp_path / "config"
    content = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "http://api.test"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "users": [{"name": "c", "user": {}}],
    }
    path.write_text(yaml.safe_dump(content))
    transport = httpx.MockTransport(api)
    access = kube.Access(str(path))
    return observed.look(access, "rbln-system", RBLN, timeout_s=1, transport=transport)


def test_observer_joins_sets_pods_and_workloads(tmp_path: Path) -> None:
    owner = {
        "metadata": {
            "name": NAME,
            "uid": "u1",
            "labels": {RBLN.pool_label: POOL},
            "annotations": {"deprecated.daemonset.template.generation": "2"},
        },
        "spec": {"updateStrategy": {"type": "OnDelete"}, "template": {"spec": {}}},
    }
    pods: list[dict[str, Any]] = [
        {
            "metadata": {
                "name": f"p{number}",
                "labels": {"pod-template-generation": str(number)},
                "ownerReferences": [{"uid": "u1", "controller": True}],
            },
            "spec": {"nodeName": f"n{number}"},
        }
        for number in (2, 1)
    ]
    leaving = {"metadata": {**pods[0]["metadata"], "name": "p3", "deletionTimestamp": "now"}}
    api = Api(
        {
            DAEMON_SETS: [owner],
            DRIVER_PODS: [*pods, {**leaving, "spec": {"nodeName": "n3"}}],
            PODS: [pod("trainer", [asking(ATOM="2")]), pod("web", [{}])],
        }
    )
    seen = looked(tmp_path, api)
    (driver,) = seen.drivers
    assert (driver.pool, driver.on_delete) == (POOL, True)
    assert [(one.name, one.outdated) for one in driver.pods] == [("p1", True), ("p2", False)]
    assert [one.name for one in seen.workloads] == ["trainer"]
    assert "status.phase!=Succeeded" in api.asked[-1].url.params["fieldSelector"]
    assert seen.gaps == ()


def test_what_is_forbidden_is_a_gap(tmp_path: Path) -> None:
    seen = looked(tmp_path, Api({DAEMON_SETS: [], DRIVER_PODS: []}))
    assert seen.complete
    assert seen.gaps == ("API server http://api.test: access to pods is forbidden: no",)
    assert not looked(tmp_path, Api({PODS: []})).complete


def test_recorded_plan_is_compared_with_no_cluster() -> None:  # DC-28
    plan = make_plan(load({}), Found("snapshot x", (facts("n1"),)), RBLN)
    assert observed.beside(plan, kube.Access("/nowhere"), timeout_s=1) is None
