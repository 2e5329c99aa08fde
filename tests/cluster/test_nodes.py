"""The embedded cluster's nodes are real ones: what a user does on any cluster works."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from simulator import kernel
from simulator.fleet import load_fleet
from tests.support.device_plugin import DevicePlugin
from toolchain.cluster import lifecycle, processes
from toolchain.progress import to_stderr

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.machine import Machine

pytestmark = pytest.mark.cluster

PROBE = "example.com/probe"
PROBE_PATH = PROBE.replace(".", r"\.")
AGENT_IMAGE = "localhost/rbln-agent:0.1.0"
FEATURE = "feature.node.kubernetes.io"
# From inside a pod: the mounted token and authority must be enough to read the own service account.
ASK_API = """
import json, os, ssl, urllib.request
folder = "/var/run/secrets/kubernetes.io/serviceaccount"
token = open(folder + "/token").read()
group = "authentication.k8s.io/v1"
request = urllib.request.Request(
    "https://kubernetes.default.svc/apis/" + group + "/selfsubjectreviews",
    headers={"Authorization": "Bearer " + token, "Content-Type": "application/json"},
    data=json.dumps({"apiVersion": group, "kind": "SelfSubjectReview"}).encode(),
)
context = ssl.create_default_context(cafile=folder + "/ca.crt")
answer = urllib.request.urlopen(request, context=context, timeout=20)
print(json.load(answer)["status"]["userInfo"]["username"])
"""
SERVE = "import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=8000, bind='0.0.0.0')"
FETCH = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=20).status)"


def pod(name: str, node: str, command: list[str], **extra: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": AGENT_IMAGE,
        "imagePullPolicy": "Never",
        "command": command,
        **extra.pop("container", {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"test": name}, **extra.pop("metadata", {})},
        "spec": {
            **({"nodeName": node} if node else {}),
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            **extra,
        },
    }


@pytest.fixture
def pods(cluster: Machine) -> Iterator[Machine]:
    yield cluster
    cluster.kubectl("delete", "pods,services", "--selector=test", "--wait", "--ignore-not-found")


def python(code: str, *argv: str) -> list[str]:
    return ["python3", "-c", code, *argv]


# S0-03, S0-04, DC-22: labels come from NFD itself, out of what it saw on the node.
@pytest.mark.parametrize("number", [0, 1])
def test_nfd_itself_labels_each_node(cluster: Machine, number: int) -> None:
    name = f"node-{number + 1}"
    expected = load_fleet().node(number, name)
    metadata = cluster.get("node", name)["metadata"]
    wanted = {
        "pci-1200_1eff.present": "true",
        "system-os_release.ID": expected.os_id,
        "system-os_release.VERSION_ID": expected.os_version,
        "kernel-version.full": expected.kernel,
    }
    assert {key: metadata["labels"].get(f"{FEATURE}/{key}") for key in wanted} == wanted
    by_nfd = metadata["annotations"]["nfd.node.kubernetes.io/feature-labels"].split(",")
    assert set(wanted) <= set(by_nfd)
    feature = cluster.get("nodefeatures.nfd.k8s-sigs.io", name, "-n", "node-feature-discovery")
    devices = feature["spec"]["features"]["instances"]["pci.device"]["elements"]
    npus = [item for item in devices if item["attributes"]["vendor"] == "1eff"]
    assert len(npus) == expected.count


def test_nodes_show_their_own_system(cluster: Machine) -> None:
    systems = [item["status"]["nodeInfo"]["osImage"] for item in cluster.get("nodes")["items"]]
    assert len(set(systems)) == 2
    assert all(system.startswith("Ubuntu") for system in systems)


def test_a_pod_runs_and_answers_logs_and_exec(pods: Machine) -> None:
    stay = "print('hello from the pod', flush=True); import signal; signal.pause()"
    pods.apply(pod("talk", "node-1", python(stay)))
    pods.wait("pod/talk", "condition=Ready")
    assert "hello from the pod" in pods.kubectl("logs", "talk")
    assert pods.kubectl("exec", "talk", "--", "python3", "-c", "print(6 * 7)").strip() == "42"


def test_a_service_account_token_reaches_the_api_by_name(pods: Machine) -> None:
    pods.apply(pod("token", "node-2", python(ASK_API)))
    pods.wait("pod/token", "jsonpath={.status.phase}=Succeeded")
    assert pods.kubectl("logs", "token").strip() == "system:serviceaccount:default:default"


def test_pods_reach_each_other_across_nodes_directly_and_by_service(pods: Machine) -> None:
    pods.apply(
        pod("server", "node-1", python(SERVE)),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "server", "labels": {"test": "server"}},
            "spec": {"selector": {"test": "server"}, "ports": [{"port": 80, "targetPort": 8000}]},
        },
    )
    pods.wait("pod/server", "condition=Ready")
    address = pods.get("pod", "server")["status"]["podIP"]
    pods.apply(
        pod("direct", "node-2", python(FETCH, f"http://{address}:8000/")),
        pod("named", "node-2", python(FETCH, "http://server.default.svc.cluster.local/")),
    )
    for name in ("direct", "named"):
        pods.wait(f"pod/{name}", "jsonpath={.status.phase}=Succeeded")
        assert pods.kubectl("logs", name).strip() == "200"


def test_a_mount_made_in_a_pod_appears_on_the_node(pods: Machine) -> None:
    mount = (
        "import subprocess, signal;"
        "subprocess.run(['mount', '-t', 'tmpfs', 'shown', '/shared/inner'], check=True);"
        "open('/shared/inner/file', 'w').write('seen'); signal.pause()"
    )
    pods.on_node("node-1", "mkdir", "-p", "/run/propagation/inner")
    pods.apply(
        pod(
            "propagate",
            "node-1",
            python(mount),
            container={
                "securityContext": {"privileged": True, "runAsUser": 0},
                "readinessProbe": {
                    "exec": {"command": ["test", "-e", "/shared/inner/file"]},
                    "periodSeconds": 1,
                },
                "volumeMounts": [
                    {
                        "name": "shared",
                        "mountPath": "/shared",
                        "mountPropagation": "Bidirectional",
                    }
                ],
            },
            volumes=[{"name": "shared", "hostPath": {"path": "/run/propagation"}}],
        )
    )
    pods.wait("pod/propagate", "condition=Ready")
    assert pods.on_node("node-1", "cat", "/run/propagation/inner/file") == "seen"
    pods.kubectl("delete", "pod", "propagate", "--wait")
    pods.on_node("node-1", "umount", "/run/propagation/inner")


# S2-64, S2-65: a pod that asks for a resource is scheduled where a device plugin offers it, and
# the device is looked for inside the container, since a pod without it would be Ready too.
def test_a_requested_device_is_injected_by_cdi(pods: Machine) -> None:
    spec = {
        "cdiVersion": "0.5.0",
        "kind": "example.com/probe",
        "devices": [
            {
                "name": "one",
                "containerEdits": {
                    "env": ["PROBE=injected"],
                    "deviceNodes": [{"path": "/dev/probe", "hostPath": "/dev/null"}],
                },
            }
        ],
    }
    folder = pods.layout.node("node-1")
    (folder / "run" / "cdi").mkdir(exist_ok=True)
    (folder / "run" / "cdi" / "probe.json").write_text(json.dumps(spec))
    plugin = DevicePlugin(
        folder / "kubelet" / "device-plugins", "example.com/probe", ["one"], "example.com/probe"
    )
    look = (
        "import os, stat; print(os.environ['PROBE'], stat.S_ISCHR(os.stat('/dev/probe').st_mode))"
    )
    asking = pod("cdi", "", python(look), container={"resources": {"limits": {PROBE: 1}}})
    try:
        pods.wait("node/node-1", f"jsonpath={{.status.allocatable.{PROBE_PATH}}}=1")
        pods.apply(asking)
        pods.wait("pod/cdi", "jsonpath={.status.phase}=Succeeded")
        assert pods.kubectl("logs", "cdi").strip() == "injected True"
        assert pods.get("pod", "cdi")["spec"]["nodeName"] == "node-1"
    finally:
        plugin.close()
        (folder / "run" / "cdi" / "probe.json").unlink()


# The agents' own program in its own image, on hardware that only this node has.
def test_the_agent_image_sees_the_nodes_devices(pods: Machine) -> None:
    pods.apply(
        pod(
            "inventory",
            "node-2",
            ["rbln-agent", "inventory", "--host-root", "/host", "-o", "json"],
            container={"volumeMounts": [{"name": "sys", "mountPath": "/host/sys"}]},
            volumes=[{"name": "sys", "hostPath": {"path": "/sys"}}],
        )
    )
    pods.wait("pod/inventory", "jsonpath={.status.phase}=Succeeded")
    seen = json.loads(pods.kubectl("logs", "inventory"))
    assert [device["product"] for device in seen["accelerators"]] == ["RBLN-CA25", "RBLN-CA25"]


def simulated_kernel(machine: Machine, node: str) -> Path:
    """The node's root, through which its simulated kernel is asked."""
    init = processes.node_inits(processes.of_cluster(machine.layout.root))[node]
    return Path(f"/proc/{init.pid}/root")


# The module is the node's own, its devices exist in that node alone, and a fault is a fault.
def test_the_simulated_module_loads_fails_and_unloads(cluster: Machine) -> None:
    root = simulated_kernel(cluster, "node-2")
    kernel.set_fault(root, "driver-load-fails", on=True)
    with pytest.raises(kernel.KernelError):
        kernel.ask(root, "load", "3.0.0")
    kernel.set_fault(root, "driver-load-fails", on=False)
    kernel.ask(root, "load", "3.0.0")
    cluster.on_node("node-2", "test", "-c", "/dev/rbln1")
    assert not Path("/dev/rbln1").exists()
    assert not (simulated_kernel(cluster, "node-1") / "sys/module/rebellions").exists()
    kernel.set_fault(root, "module-busy", on=True)
    with pytest.raises(AssertionError, match="in use"):
        cluster.on_node("node-2", "rmmod", "rebellions")
    kernel.set_fault(root, "module-busy", on=False)
    cluster.on_node("node-2", "rmmod", "rebellions")
    cluster.on_node("node-2", "test", "!", "-e", "/dev/rbln1")


def test_up_again_changes_nothing(cluster: Machine) -> None:
    def pids() -> set[int]:
        found = processes.of_cluster(cluster.layout.root)
        return {p.pid for p in found if "shim" not in p.argv[0]}

    before = pids()
    lifecycle.up(cluster.record.spec, to_stderr)
    assert pids() == before


# The bound for two nodes, all processes together.
def test_two_nodes_need_less_than_two_and_a_half_gib(cluster: Machine) -> None:
    seen = lifecycle.status(cluster.record.spec.name)
    assert seen is not None
    assert seen.state == "up"
    assert seen.memory_mib < 2560
