"""Pods where they differ from what the vendor's operator makes, and what both must have."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from rbln_stack.config.load import load
from rbln_stack.discovery import Found
from rbln_stack.plan import make_plan
from rbln_stack.pods import driver, node_state, parts, services, toolkit, validator
from rbln_stack.profiles import RBLN
from tests.unit.rbln_stack.fleet import facts

if TYPE_CHECKING:
    from pathlib import Path

VALIDATIONS = "/run/rbln/validations"


def built(raw: dict[str, Any] | None = None, *nodes: Any) -> dict[str, Any]:
    """The DaemonSet specs of a stack by operand."""
    plan: Any = make_plan(load(raw or {}), Found("live", nodes or (facts("n"),)), RBLN)
    by = {one.operand: one for one in plan.workloads}
    specs: dict[str, Any] = {
        "operator-validator": validator.daemon_set,
        "container-toolkit": lambda one: toolkit.daemon_set(one, one.groups[0]),
        "device-plugin": services.device_plugin,
        "npu-feature-discovery": services.feature_discovery,
        "rbln-daemon": services.daemon,
        "metrics-exporter": services.exporter,
        "node-state": node_state.deployment,
    }
    made: dict[str, Any] = {name: specs[name](one) for name, one in by.items()}
    for one in plan.drivers:
        made["driver"] = driver.daemon_set(one, one.pools[0])
    return made


def pod(raw: dict[str, Any] | None, operand: str) -> Any:
    return built(raw)[operand]["template"]["spec"]


def env(container: Any) -> dict[str, Any]:
    return {one["name"]: one.get("value", one.get("value_from")) for one in container["env"]}


def mount(container: Any, path: str) -> Any:
    (found,) = [one for one in container["volume_mounts"] if one["mount_path"] == path]
    return found


def host_paths(spec: Any) -> dict[str, str]:
    return {v["name"]: v["host_path"]["path"] for v in spec["volumes"] if "host_path" in v}


def test_driver_manager_is_the_init_container() -> None:  # X-09, S0-08
    spec = pod(None, "driver")
    (manager,) = spec["init_containers"]
    assert manager["name"] == "k8s-driver-manager"
    assert (manager["command"], manager["args"]) == (["driver-manager"], ["reconcile-driver-state"])
    values = env(manager)
    assert list(values) == [
        "NODE_NAME",
        "ENABLE_NPU_POD_EVICTION",
        "ENABLE_AUTO_DRAIN",
        "DRAIN_USE_FORCE",
        "DRAIN_POD_SELECTOR_LABEL",
        "DRAIN_TIMEOUT_SECONDS",
        "DRAIN_DELETE_EMPTYDIR_DATA",
        "OPERATOR_NAMESPACE",
        "DRIVER_CONFIG_DIGEST",
    ]
    assert mount(manager, "/host") == {
        "name": "host-root",
        "mount_path": "/host",
        "read_only": True,
        "mount_propagation": "HostToContainer",
    }
    assert mount(manager, "/dev")["read_only"] is True
    # With the node's /dev read-only the kubelet could not mount the usual file below it.
    assert manager["termination_message_path"] == "/tmp/termination-log"  # noqa: S108 - as above


def digest(raw: dict[str, Any]) -> tuple[str, str]:
    template = built({"driver": raw})["driver"]["template"]
    (manager,) = template["spec"]["init_containers"]
    hashed = template["metadata"]["annotations"]["rebellions.ai/config-hash"]
    return env(manager)["DRIVER_CONFIG_DIGEST"], hashed


def test_digest_changes_with_the_driver_alone_the_hash_with_everything() -> None:  # §12, §10 no. 6
    base = digest({})
    assert digest({}) == base
    assert all(one != two for one, two in zip(digest({"args": ["x"]}), base, strict=True))
    for change in (
        {"manager": {"version": "v9"}},
        {"tolerations": [{"operator": "Exists"}]},
        {"priorityClassName": "p"},
        {"imagePullSecrets": ["s"]},
        {"manager": {"env": [{"name": "A", "value": "1"}]}},
    ):
        changed = digest(change)
        assert changed[0] == base[0]
        assert changed[1] != base[1]


def test_driver_fields_that_upstream_ignores_are_honoured() -> None:  # S0-73, S0-83, S0-84
    raw = {
        "labels": {"team": "x"},
        "imagePullSecrets": ["a"],
        "manager": {"imagePullSecrets": ["b", "a"], "env": [{"name": "PROC_ROOT", "value": "/p"}]},
    }
    template = built({"driver": raw})["driver"]["template"]
    assert template["metadata"]["labels"]["team"] == "x"
    assert template["spec"]["image_pull_secrets"] == [{"name": "a"}, {"name": "b"}]
    assert env(template["spec"]["init_containers"][0])["PROC_ROOT"] == "/p"


def test_architecture_is_part_of_a_pool() -> None:  # §10 no. 6
    nodes = (facts("a"), facts("b", arch="arm64"))
    plan = make_plan(load({}), Found("live", nodes), RBLN)
    assert len({entry.name for entry in plan.drivers[0].pools}) == 2


@pytest.mark.parametrize("operand", ["device-plugin", "metrics-exporter", "npu-feature-discovery"])
def test_priority_class_reaches_every_pod(operand: str) -> None:  # §10 no. 13
    spec = pod({"daemonsets": {"priorityClassName": "system-node-critical"}}, operand)
    assert spec["priority_class_name"] == "system-node-critical"


def test_plugin_sees_the_kubelet_s_own_directory() -> None:  # §10 no. 4
    spec = pod(None, "device-plugin")
    paths = host_paths(spec)
    assert paths["devicesock"] == "/var/lib/kubelet/device-plugins"
    assert paths["plugins-registry"] == "/var/lib/kubelet/plugins_registry"
    assert {"/run/rbln", "/var/run/cdi"} <= set(paths.values())
    assert mount(spec["containers"][0], "/sys")["read_only"] is True


def test_plugin_config_lists_the_ids_of_the_cards() -> None:  # rbln §7.2
    plan: Any = make_plan(load({}), Found("live", (facts("n"),)), RBLN)
    (plugin,) = [one for one in plan.workloads if one.operand == "device-plugin"]
    shown = json.loads(services.plugin_data(plugin)["config.json"])["resourceList"]
    assert [(one["resourceName"], one["selectors"]["devices"]) for one in shown] == [
        ("ATOM", ["1120", "1121", "1220", "1221", "1250", "1251"]),
        ("REBEL", ["2030", "2031"]),
    ]
    assert list(shown[0]["selectors"]) == ["vendors", "devices", "drivers"]


def test_toolkit_leaves_the_runtime_s_config_alone_by_default() -> None:  # X-14, §10 no. 3
    spec = pod(None, "container-toolkit")
    (main,) = spec["containers"]
    assert mount(main, "/host")["read_only"] is True
    assert "/etc/containerd" not in host_paths(spec).values()
    assert {"name": "runtime-config-dir", "empty_dir": {}} in spec["volumes"]


def test_toolkit_in_the_mode_that_edits_gets_one_writable_directory() -> None:
    spec = pod({"containerToolkit": {"mode": "runtime-config"}}, "container-toolkit")
    (main,) = spec["containers"]
    assert host_paths(spec)["runtime-config-dir"] == "/etc/containerd"
    assert "read_only" not in mount(main, "/runtime/config-dir")
    assert env(main)["RBLN_CTK_DAEMON_CONFIG_PATH"] == "/runtime/config-dir/config.toml"
    assert mount(main, "/host")["read_only"] is True


def test_toolkit_sees_a_driver_that_is_mounted_later_and_is_probed() -> None:  # §10 no. 17
    spec = pod(None, "container-toolkit")
    (main,) = spec["containers"]
    for path in ("/host", "/run/rbln", "/run/rbln/driver"):
        assert mount(main, path)["mount_propagation"] == "HostToContainer"
    assert main["readiness_probe"]["http_get"] == {"path": "/ready", "port": 8080}
    assert spec["host_pid"] is True  # S0-49
    assert env(main)["RBLN_CTK_DAEMON_SOCKET"] == "/run/containerd/containerd.sock"  # S0-41


def test_port_of_the_daemon_is_told_to_those_who_ask_it() -> None:  # rbln §3.7
    specs = built({"rblnDaemon": {"hostPort": 50100}})
    url = "http://$(NODE_IP):50100"
    finder = specs["npu-feature-discovery"]["template"]["spec"]["containers"][0]
    assert finder["args"] == ["--rbln-daemon-url", url]
    exporter = specs["metrics-exporter"]["template"]["spec"]["containers"][0]
    assert env(exporter)["RBLN_METRICS_EXPORTER_RBLN_DAEMON_URL"] == url


def test_feature_discovery_gets_sysfs() -> None:  # rbln §3.6
    assert "/sys" in host_paths(pod(None, "npu-feature-discovery")).values()


def test_validator_steps_come_in_order_and_own_variables_win() -> None:  # S0-21, S0-22, S0-95
    raw = {
        "env": [{"name": "A", "value": "all"}],
        "toolkit": {"env": [{"name": "A", "value": "own"}]},
    }
    spec = pod({"validator": raw}, "operator-validator")
    first, second = spec["init_containers"]
    assert (first["name"], second["name"]) == ("driver-validation", "toolkit-validation")
    assert (first["args"], second["args"]) == (["driver", "--with-wait"], ["toolkit"])
    assert (env(first)["A"], env(second)["A"]) == ("all", "own")
    assert env(first)["TMPDIR"] == VALIDATIONS


@pytest.mark.parametrize("operand", ["operator-validator", "container-toolkit", "device-plugin"])
def test_agents_take_the_vendor_s_place_with_the_same_paths(operand: str) -> None:  # D6
    theirs, ours = pod(None, operand), pod({"source": "agents"}, operand)
    assert host_paths(ours) == host_paths(theirs)
    for container in (*ours["init_containers"], *ours["containers"]):
        assert container["image"] == "localhost/rbln-agent:0.1.0"
        assert container["command"] == ["rbln-agent"]


def test_order_on_a_node_is_by_ready_files() -> None:  # D4, S0-56
    specs = {name: one["template"]["spec"] for name, one in built({"source": "agents"}).items()}
    proof, second = (c["args"] for c in specs["operator-validator"]["init_containers"])
    assert proof == [
        "stand-in",
        *("--wait-for", f"{VALIDATIONS}/.driver-ctr-ready"),
        *("--publish", f"{VALIDATIONS}/driver-ready"),
        "--once",
    ]
    spec = "/var/run/cdi/rbln.yaml"
    ready = f"{VALIDATIONS}/toolkit-ready"
    assert second == ["stand-in", "--wait-for", spec, "--publish", ready, "--once"]
    main = specs["container-toolkit"]["containers"][0]["args"]
    assert main == ["stand-in", "--wait-for", f"{VALIDATIONS}/driver-ready", "--publish", spec]
    for operand in ("device-plugin", "npu-feature-discovery", "rbln-daemon", "metrics-exporter"):
        (wait,) = specs[operand]["init_containers"]
        assert wait["args"] == ["stand-in", "--wait-for", ready, "--once"]
    assert specs["driver"]["init_containers"][0]["args"] == ["stand-in", "--once"]
    driver_image = specs["driver"]["containers"][0]["image"]
    assert driver_image == "harbor.k8s.rebellions.in/rebellions-sw/driver:3.0.0"


def test_requests_are_filled_only_where_nothing_is_said() -> None:  # rbln §3.0
    def resources(raw: dict[str, Any]) -> Any:
        return pod({"devicePlugin": {"resources": raw}}, "device-plugin")["containers"][0][
            "resources"
        ]

    assert resources({}) == {"requests": {"cpu": "250m", "memory": "40Mi"}}
    # A request above its limit would be refused.
    assert resources({"limits": {"cpu": "100m"}})["requests"] == {"memory": "40Mi"}


def test_controller_touches_no_node() -> None:  # D1
    spec = pod(None, "node-state")
    assert "volumes" not in spec
    assert spec["containers"][0]["security_context"] == parts.confined()


def test_entrypoint_waits_exports_and_becomes_the_daemon(tmp_path: Path) -> None:  # S0-35…S0-38
    text = parts.script(RBLN.toolkit_entrypoint_script).replace("/run/rbln", str(tmp_path))
    ready = tmp_path / "validations/driver-ready"
    ready.parent.mkdir()
    ready.write_text("RBLN_CTK_DAEMON_DRIVER_ROOT=/from/proof\n")
    programs = tmp_path / "bin"
    programs.mkdir()
    daemon = programs / "rbln-ctk-daemon"
    daemon.write_text('#!/bin/sh\necho "$RBLN_CTK_DAEMON_DRIVER_ROOT $*"\n')
    daemon.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", text, "entrypoint", "--debug"],
        env={"PATH": f"{programs}:/usr/bin:/bin", "RBLN_CTK_DAEMON_DRIVER_ROOT": "/from/pod"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "/from/proof --debug\n"
