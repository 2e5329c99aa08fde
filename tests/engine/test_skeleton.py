"""The program under the real engine, on a real cluster: preview, up, up again, destroy."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.machine import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.machine import Machine

pytestmark = [pytest.mark.engine, pytest.mark.cluster]

STACK = "dev"
NAMESPACE = "rbln-system"


@pytest.fixture(scope="module")
def stack(cluster: Machine) -> Iterator[Machine]:
    cluster.pulumi("stack", "select", "--create", STACK)
    yield cluster
    cluster.pulumi("destroy", "--stack", STACK, "--yes", "--skip-preview")


def changes(summary: str) -> dict[str, int]:
    """The numbers of a preview in JSON, by operation."""
    found: dict[str, int] = json.loads(summary)["changeSummary"]
    return found


def driver_pods(machine: Machine) -> list[dict[str, Any]]:
    selector = "--selector=app.kubernetes.io/component=rbln-driver"
    items: list[dict[str, Any]] = machine.get("pods", "-n", NAMESPACE, selector)["items"]
    return items


def wait_for_drivers(machine: Machine) -> None:
    """A DaemonSet makes its pods in its own time, and `wait` needs them to exist."""
    selector = "--selector=app.kubernetes.io/component=rbln-driver"
    for pool in machine.get("daemonsets", "-n", NAMESPACE, selector)["items"]:
        name = pool["metadata"]["name"]
        machine.wait(f"daemonset/{name}", "jsonpath={.status.numberReady}=1", NAMESPACE)


# DC-01, DC-09, DC-22, DC-25, DC-26, DC-44, S0-02: one story, each step on what the last one left.
def test_from_live_labels_to_a_driver_on_every_node_and_back(stack: Machine) -> None:
    namespaces = {item["metadata"]["name"] for item in stack.get("namespaces")["items"]}

    policies = ("--policy-pack", "policies")
    preview = changes(stack.pulumi("preview", "--stack", STACK, "--json", *policies))
    assert preview.get("create", 0) > 0
    assert NAMESPACE not in namespaces

    stack.pulumi("up", "--stack", STACK, "--yes", "--skip-preview")
    outputs = json.loads(stack.pulumi("stack", "output", "--stack", STACK, "--json"))
    pools = {tuple(pool["nodes"]): pool["name"] for pool in outputs["pools"]}
    assert set(pools) == {("node-1",), ("node-2",)}
    assert outputs["problems"] == []

    wait_for_drivers(stack)
    placed = {
        pod["spec"]["nodeName"]: pod["metadata"]["labels"]["rebellions.ai/driver-node-pool"]
        for pod in driver_pods(stack)
    }
    assert placed == {nodes[0]: name for nodes, name in pools.items()}

    again = changes(stack.pulumi("preview", "--stack", STACK, "--json", "--expect-no-changes"))
    assert set(again) == {"same"}

    stack.pulumi("destroy", "--stack", STACK, "--yes", "--skip-preview")
    left = {item["metadata"]["name"] for item in stack.get("namespaces")["items"]}
    assert left == namespaces


# S0-07, S0-09, S0-17: Ready means that the driver is on the node.
def test_a_ready_driver_pod_means_a_driver_on_the_node(stack: Machine) -> None:
    stack.pulumi("up", "--stack", STACK, "--yes", "--skip-preview")
    wait_for_drivers(stack)
    for node in ("node-1", "node-2"):
        stack.on_node(node, "test", "-e", "/run/rbln/validations/.driver-ctr-ready")
        stack.on_node(node, "test", "-c", "/dev/rbln0")
        assert "RBLN" in stack.on_node(node, "chroot", "/run/rbln/driver", "rbln-smi")


# DC-24: no cluster is not the same as no node.
def test_an_unreachable_cluster_is_said_so_before_anything_is_changed(stack: Machine) -> None:
    elsewhere = stack.layout.root / "elsewhere"
    elsewhere.write_text(stack.layout.kubeconfig.read_text().replace(":6443", ":1"))
    done = subprocess.run(
        ["pulumi", "preview", "--stack", STACK, "--non-interactive"],
        env={**os.environ, **stack.environment, "KUBECONFIG": str(elsewhere)},
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
    )
    assert done.returncode != 0
    assert "cannot be reached" in done.stdout + done.stderr
