from __future__ import annotations

import json
import runpy
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi
import pytest

from components.assemble import assemble
from rbln_stack import contract, states
from rbln_stack.config.load import load
from rbln_stack.discovery import Found
from rbln_stack.kube import Access
from rbln_stack.plan import make_plan
from rbln_stack.profiles import RBLN
from tests.unit.components.recording import Recorder, Registered, record
from tests.unit.rbln_stack.fleet import facts, manifest

if TYPE_CHECKING:
    from rbln_stack.nodes import NodeFacts

ROOT = Path(__file__).parents[3]
POOL = "ubuntu22.04-5.15.0-91-generic"
DAEMON_SET = f"rbln-driver-{POOL}"


def assembled(
    *nodes: NodeFacts, raw: dict[str, Any] | None = None, access: Access | None = None
) -> Recorder:
    plan = make_plan(load(raw or {}), Found("live", nodes or (facts("n"),)), RBLN)
    return record(lambda: assemble(plan, access or Access()))


OPERANDS = {
    "operator-validator": "rbln-operator-validator",
    "container-toolkit": "rbln-container-toolkit",
    "device-plugin": "rbln-device-plugin",
    "npu-feature-discovery": "rbln-npu-feature-discovery",
    "rbln-daemon": "rbln-daemon",
    "metrics-exporter": "rbln-metrics-exporter",
}


def workload(recorder: Recorder, state: str) -> Registered:
    """The resource that other states wait for."""
    if state == "driver":
        return recorder.one("DaemonSet", DAEMON_SET)
    if state == "node-state":
        return recorder.one("Deployment", "rbln-node-state")
    if state == "status":
        return recorder.one("RBLNClusterPolicy", "rbln-cluster-policy")
    return recorder.one("DaemonSet", OPERANDS[state])


def reachable(recorder: Recorder, start: Registered) -> set[str]:
    """Everything that a resource comes after, directly or not."""
    by_urn = {resource.urn: resource for resource in recorder.seen}
    found: set[str] = set()
    open_urns = list(start.after)
    while open_urns:
        urn = open_urns.pop()
        if urn not in found:
            found.add(urn)
            open_urns += by_urn[urn].after if urn in by_urn else ()
    return found


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        ("operator-validator", "driver"),
        ("container-toolkit", "operator-validator"),
        ("container-toolkit", "driver"),  # S1-50
        ("device-plugin", "container-toolkit"),  # S1-51
        ("npu-feature-discovery", "device-plugin"),
        ("rbln-daemon", "device-plugin"),
        ("metrics-exporter", "device-plugin"),
        ("status", "device-plugin"),  # S1-52
        ("status", "metrics-exporter"),
        ("status", "npu-feature-discovery"),
        ("status", "rbln-daemon"),
        ("status", "node-state"),
    ],
)
def test_order_of_workloads(later: str, earlier: str) -> None:  # DC-18, DC-19, DC-20
    recorder = assembled()
    first, second = workload(recorder, earlier), workload(recorder, later)
    assert first.urn in reachable(recorder, second)
    assert second.urn not in reachable(recorder, first)  # so destroy is the reverse


def test_edges_of_the_state_list_are_direct_edges_between_workloads() -> None:  # DC-20, S1-21
    recorder = assembled()
    made = {"driver", "node-state", "status", *OPERANDS}
    for state in RBLN.states:
        if state.name in made:
            for need in states.needed(RBLN.states, state.name, made):
                assert workload(recorder, need).urn in workload(recorder, state.name).after


def test_nothing_waits_for_itself() -> None:  # DC-21
    recorder = assembled()
    for resource in recorder.seen:
        assert resource.urn not in reachable(recorder, resource)


def test_what_cannot_become_ready_yet_is_not_awaited() -> None:  # DC-21, X-06, D4
    recorder = assembled()
    skipping = {
        resource.name
        for resource in recorder.kinds("DaemonSet")
        if contract.SKIP_AWAIT_ANNOTATION in resource.inputs["metadata"].get("annotations", {})
    }
    assert skipping == {DAEMON_SET, "rbln-operator-validator"}


def test_an_operand_that_is_off_hands_its_place_on() -> None:  # S1-23, X-45
    recorder = assembled(raw={"validator": {"enabled": False}, "devicePlugin": {"enabled": False}})
    assert workload(recorder, "driver").urn in workload(recorder, "container-toolkit").after
    assert workload(recorder, "container-toolkit").urn in workload(recorder, "rbln-daemon").after


def test_disabled_operands_leave_nothing_behind() -> None:  # S0-53, S0-20, S0-34
    sections = ("driver", "validator", "containerToolkit", "devicePlugin", "npuFeatureDiscovery")
    raw = {name: {"enabled": False} for name in (*sections, "rblnDaemon", "metricsExporter")}
    recorder = assembled(raw=raw)
    assert recorder.kinds("DaemonSet") == []
    assert [r.name for r in recorder.kinds("ServiceAccount")] == ["rbln-node-state"]


def test_one_daemon_set_per_pool() -> None:  # S0-02, S0-11, DC-13
    recorder = assembled(facts("b", kernel="6.8.0-49-generic"), facts("a"), facts("a2"))
    names = sorted(resource.name for resource in recorder.kinds("DaemonSet"))
    assert [name for name in names if name.startswith("rbln-driver")] == [
        DAEMON_SET,
        "rbln-driver-ubuntu22.04-6.8.0-49-generic",
    ]


@pytest.mark.parametrize("name", ["rbln-driver", *OPERANDS.values(), "rbln-node-state"])
def test_a_bundle_is_made_in_order(name: str) -> None:  # S1-54, S1-56, X-19
    recorder = assembled()
    kinds = ("ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
    made = [r for kind in kinds for r in recorder.kinds(kind) if r.name == name]
    for earlier, later in pairwise(made):
        assert earlier.urn in later.after
    kind = "Deployment" if name == "rbln-node-state" else "DaemonSet"
    last = recorder.one(kind, DAEMON_SET if name == "rbln-driver" else name)
    assert {resource.urn for resource in made} <= last.after


def test_driver_sets_are_owned_by_their_declaration() -> None:  # D5, S0-01
    recorder = assembled()
    declaration = recorder.one("RBLNDriver", "rbln-driver")
    assert declaration.type == "kubernetes:rebellions.ai/v1alpha1:RBLNDriver"
    driver = workload(recorder, "driver")
    assert declaration.urn in driver.after
    (owner,) = driver.inputs["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"]) == ("rebellions.ai/v1alpha1", "RBLNDriver")
    assert (owner["name"], owner["controller"]) == ("rbln-driver", True)


def test_definitions_come_before_declarations() -> None:  # D4
    recorder = assembled()
    definitions = {resource.urn for resource in recorder.kinds("CustomResourceDefinition")}
    assert definitions
    for kind in ("RBLNDriver", "RBLNClusterPolicy"):
        (declaration,) = recorder.kinds(kind)
        assert definitions <= declaration.after


@pytest.mark.parametrize(
    ("require", "annotations"),
    [
        ("all", {"pulumi.com/waitFor": "condition=Ready"}),
        ("95%", {"pulumi.com/waitFor": "condition=Ready"}),
        ("none", {"pulumi.com/skipAwait": "true"}),
    ],
)
def test_the_gate(require: str, annotations: dict[str, str]) -> None:  # D5
    recorder = assembled(raw={"readiness": {"require": require}})
    inputs = workload(recorder, "status").inputs
    assert inputs["metadata"]["annotations"] == annotations
    assert inputs["spec"]["readiness"] == {"require": require}


def test_children_belong_to_their_component_and_use_its_provider() -> None:  # DC-17
    recorder = assembled()
    parents = {r.urn: r.type for r in recorder.seen if r.type.startswith("rbln:operand:")}
    assert len(set(parents.values())) == 10
    objects = [resource for resource in recorder.seen if resource.type.startswith("kubernetes:")]
    assert {resource.parent for resource in objects} <= parents.keys()
    (provider,) = recorder.kinds("kubernetes")
    assert {resource.provider for resource in objects} == {f"{provider.urn}::cluster-id"}
    assert parents.keys() <= recorder.outputs.keys()


def test_every_object_carries_the_labels_of_the_stack() -> None:
    for resource in assembled().seen:
        if resource.type.startswith("kubernetes:"):
            labels = resource.inputs["metadata"]["labels"]
            assert labels["app.kubernetes.io/part-of"] == "rbln-stack"
            assert labels["app.kubernetes.io/managed-by"] == "rbln-stack"
            assert labels["app.kubernetes.io/component"]


def test_provider_gets_the_path_and_context_of_discovery(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:  # DC-23
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text("users: [secret]")
    access = Access(str(kubeconfig), "dev")
    inputs = assembled(access=access).one("kubernetes", "cluster").inputs
    assert (inputs["kubeconfig"], inputs["context"]) == (str(kubeconfig), "dev")
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    inputs = assembled().one("kubernetes", "cluster").inputs
    assert inputs["kubeconfig"] == ""
    assert "context" not in inputs


def run_program() -> None:
    runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__")


def test_program_from_config_to_outputs(tmp_path: Path) -> None:  # DC-05, DC-26, DC-28
    snapshot = tmp_path / "nodes.json"
    snapshot.write_text(json.dumps({"kind": "List", "items": [manifest("n1"), manifest("n0")]}))
    settings = {"source": "snapshot", "snapshot": str(snapshot)}
    recorder = record(run_program, {"rbln-stack:discovery": json.dumps(settings)})
    outputs = recorder.exports
    assert outputs["namespace"] == "rbln-system"
    assert outputs["nodeSource"] == f"snapshot {snapshot}"
    assert outputs["problems"] == []
    assert outputs["pools"][0]["nodes"] == ["n0", "n1"]
    assert outputs["operands"]["container-toolkit"] == {
        "image": "docker.io/rebellions/rbln-container-toolkit:latest",
        "nodes": 2,
    }
    assert len(recorder.kinds("DaemonSet")) == 7


def test_program_reports_undeclared_keys_without_trace() -> None:
    with pytest.raises(pulumi.RunError) as caught:
        record(run_program, {"rbln-stack:drivr": "{}"})
    assert str(caught.value) == (
        "the stack config is not valid:\n  - drivr: unknown key. Did you mean driver."
    )
