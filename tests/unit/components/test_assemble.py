from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi
import pytest

from components.assemble import assemble
from rbln_stack import contract
from rbln_stack.config.load import load
from rbln_stack.discovery import Found
from rbln_stack.kube import Access
from rbln_stack.plan import make_plan
from rbln_stack.profiles import RBLN
from tests.unit.components.recording import Recorder, record
from tests.unit.rbln_stack.fleet import BY_CLASS, BY_VENDOR, facts, manifest

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


def test_disabled_driver_leaves_only_the_namespace() -> None:  # S0-53
    recorder = assembled(raw={"driver": {"enabled": False}})
    assert {resource.type for resource in recorder.seen} == {
        "pulumi:providers:kubernetes",
        "rbln:operand:Foundation",
        "kubernetes:core/v1:Namespace",
    }


def test_one_daemon_set_per_pool() -> None:  # S0-02, S0-11, DC-13
    recorder = assembled(facts("b", kernel="6.8.0-49-generic"), facts("a"), facts("a2"))
    assert sorted(resource.name for resource in recorder.kinds("DaemonSet")) == [
        DAEMON_SET,
        "rbln-driver-ubuntu22.04-6.8.0-49-generic",
    ]


def test_workload_waits_for_everything_it_needs() -> None:  # DC-18, DC-20
    recorder = assembled()
    workload = recorder.one("DaemonSet", DAEMON_SET)
    namespace = recorder.one("Namespace", "rbln-system")
    account = recorder.one("ServiceAccount", "rbln-driver")
    binding = recorder.one("ClusterRoleBinding", "rbln-driver")
    probe = recorder.one("ConfigMap", "rbln-driver-startup-probe")
    assert {namespace.urn, account.urn, binding.urn, probe.urn} <= workload.after
    assert account.after == {namespace.urn}
    assert probe.after == {namespace.urn}
    assert recorder.one("ClusterRole", "rbln-driver").urn in binding.after


def test_children_belong_to_their_component_and_use_its_provider() -> None:  # DC-17
    recorder = assembled()
    pools = recorder.one("DriverPools", "rbln-driver")
    assert pools.type == "rbln:operand:DriverPools"
    for kind in ("DaemonSet", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ConfigMap"):
        (resource,) = recorder.kinds(kind)
        assert resource.parent == pools.urn
    (provider,) = recorder.kinds("kubernetes")
    objects = [resource for resource in recorder.seen if resource.type.startswith("kubernetes:")]
    assert len(objects) == 6
    assert {resource.provider for resource in objects} == {f"{provider.urn}::cluster-id"}
    assert recorder.outputs[pools.urn] == {"daemonSets": [DAEMON_SET]}


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


def test_daemon_set_carries_the_contract() -> None:  # S0-07, S0-12, S0-15, S0-17
    inputs = assembled().one("DaemonSet", DAEMON_SET).inputs
    labels = {
        "app.kubernetes.io/component": "rbln-driver",
        "rebellions.ai/driver-node-pool": POOL,
        "rebellions.ai/driver-instance": "rbln-driver",
    }
    assert inputs["metadata"] == {
        "name": DAEMON_SET,
        "namespace": "rbln-system",
        "labels": labels,
        "annotations": {"pulumi.com/skipAwait": "true"},  # D4
    }
    spec = inputs["spec"]
    assert spec["selector"] == {"matchLabels": labels}
    assert spec["updateStrategy"] == {"type": "OnDelete"}
    assert spec["template"]["metadata"]["labels"] == labels
    pod = spec["template"]["spec"]
    assert pod["serviceAccountName"] == "rbln-driver"
    assert "priorityClassName" not in pod  # S0-75
    (container,) = pod["containers"]
    assert container["name"] == "rbln-driver-container"
    assert container["command"] == ["/opt/rebellions/bin/rbln-driver"]
    assert container["args"] == ["init"]
    assert container["securityContext"] == {
        "privileged": True,
        "runAsUser": 0,
        "seLinuxOptions": {"level": "s0"},
    }
    assert container["startupProbe"] == {
        "exec": {"command": ["/bin/sh", "-c", "/usr/local/bin/rbln-startup-probe.sh"]},
        "timeoutSeconds": 120,
        "periodSeconds": 10,
        "failureThreshold": 60,
    }
    assert container["lifecycle"]["preStop"]["exec"]["command"] == [
        "/bin/sh",
        "-c",
        "rm -f /run/rbln/validations/.driver-ctr-ready",
    ]
    assert container["volumeMounts"] == [
        {
            "name": "host-driver",
            "mountPath": "/host/run/rbln/driver",
            "mountPropagation": "Bidirectional",
        },
        {"name": "run-rbln-validations", "mountPath": "/run/rbln/validations"},
        {
            "name": "rbln-driver-startup-probe",
            "mountPath": "/usr/local/bin/rbln-startup-probe.sh",
            "subPath": "startup-probe.sh",
            "readOnly": True,
        },
    ]
    assert pod["volumes"] == [
        {
            "name": "host-driver",
            "hostPath": {"path": "/run/rbln/driver", "type": "DirectoryOrCreate"},
        },
        {
            "name": "run-rbln-validations",
            "hostPath": {"path": "/run/rbln/validations", "type": "DirectoryOrCreate"},
        },
        {
            "name": "rbln-driver-startup-probe",
            "configMap": {"name": "rbln-driver-startup-probe", "defaultMode": 0o755},
        },
    ]


def test_placement_selects_the_pool_minus_opt_outs() -> None:  # D2, S0-04
    pod = assembled().one("DaemonSet", DAEMON_SET).inputs["spec"]["template"]["spec"]
    shared = [
        {"key": contract.OS_ID_LABEL, "operator": "In", "values": ["ubuntu"]},
        {"key": contract.OS_VERSION_LABEL, "operator": "In", "values": ["22.04"]},
        {"key": contract.KERNEL_LABEL, "operator": "In", "values": ["5.15.0-91-generic"]},
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
        {
            "key": "rebellions.ai/npu.deploy.driver",
            "operator": "NotIn",
            "values": ["false", "paused-for-driver-upgrade", "pre-installed"],
        },
        {
            "key": "rebellions.ai/npu.workload.config",
            "operator": "NotIn",
            "values": ["vm-passthrough"],
        },
    ]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    assert pod["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"] == [
        {"matchExpressions": [{"key": key, "operator": "In", "values": ["true"]}, *shared]}
        for key in (BY_CLASS, BY_VENDOR)
    ]
    assert pod["nodeSelector"] == {
        contract.OS_ID_LABEL: "ubuntu",
        contract.OS_VERSION_LABEL: "22.04",
        contract.KERNEL_LABEL: "5.15.0-91-generic",
        "kubernetes.io/arch": "amd64",
    }


def test_config_reaches_the_pod() -> None:  # S0-68…S0-78
    raw = {
        "namespace": "npu",
        "driver": {
            "image": {
                "registry": "localhost",
                "repository": "d",
                "tag": "1",
                "pullPolicy": "Never",
            },
            "imagePullSecrets": ["regcred"],
            "nodeSelector": {"zone": "a"},
            "tolerations": [{"key": "npu", "operator": "Exists", "tolerationSeconds": 3}],
            "labels": {"team": "x"},
            "annotations": {"note": "y"},
            "priorityClassName": "system-node-critical",
            "resources": {"requests": {"cpu": "250m"}},
            "args": ["init", "-v"],
            "env": [
                {"name": "A_B", "value": "1"},
                {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s", "key": "some_key"}}},
            ],
        },
    }
    recorder = assembled(facts("n", ("zone",), labels={"zone": "a"}), raw=raw)
    inputs = recorder.one("DaemonSet", DAEMON_SET).inputs
    template = inputs["spec"]["template"]
    pod = template["spec"]
    (container,) = pod["containers"]
    assert inputs["metadata"]["namespace"] == "npu"
    assert recorder.one("Namespace", "npu").inputs["metadata"] == {"name": "npu"}
    assert template["metadata"]["labels"]["team"] == "x"
    assert template["metadata"]["annotations"] == {"note": "y"}
    assert pod["imagePullSecrets"] == [{"name": "regcred"}]
    assert pod["nodeSelector"]["zone"] == "a"
    assert pod["tolerations"] == [{"key": "npu", "operator": "Exists", "tolerationSeconds": 3}]
    assert pod["priorityClassName"] == "system-node-critical"
    assert (container["image"], container["imagePullPolicy"]) == ("localhost/d:1", "Never")
    assert container["resources"] == {"requests": {"cpu": "250m"}}
    assert container["args"] == ["init", "-v"]
    assert container["env"] == [
        {"name": "A_B", "value": "1"},
        {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s", "key": "some_key"}}},
    ]


def test_rights_of_the_driver() -> None:
    recorder = assembled()
    rules = recorder.one("ClusterRole", "rbln-driver").inputs["rules"]
    assert {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]} in rules
    binding = recorder.one("ClusterRoleBinding", "rbln-driver").inputs
    assert binding["roleRef"]["name"] == "rbln-driver"
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "rbln-driver", "namespace": "rbln-system"}
    ]


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
    assert len(recorder.kinds("DaemonSet")) == 1


def test_program_reports_undeclared_keys_without_trace() -> None:
    with pytest.raises(pulumi.RunError) as caught:
        record(run_program, {"rbln-stack:drivr": "{}"})
    assert str(caught.value) == (
        "the stack config is not valid:\n  - drivr: unknown key. Did you mean driver."
    )
