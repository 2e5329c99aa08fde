"""The driver pod: the manager clears the node, then the driver installs itself and stays (X-09)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rbln_stack import contract, hostpaths, placement
from rbln_stack.pods import parts

if TYPE_CHECKING:
    from pulumi_kubernetes.apps.v1 import DaemonSetSpecArgsDict
    from pulumi_kubernetes.core.v1 import (
        ContainerArgsDict,
        LifecycleArgsDict,
        PodSpecArgsDict,
        ProbeArgsDict,
        SecurityContextArgsDict,
        VolumeMountArgsDict,
    )

    from rbln_stack.operands import DriverPlan, DriverPoolPlan, Plain

_PROBE_KEY: Final = "startup-probe.sh"
_PROBE_MOUNT: Final = "/usr/local/bin/rbln-startup-probe.sh"


def labels(driver: DriverPlan, pool: DriverPoolPlan) -> dict[str, str]:
    """What a pool's DaemonSet, its selector and its pods have in common (S0-15)."""
    return {
        contract.COMPONENT_LABEL: driver.profile.driver_name,
        driver.profile.pool_label: pool.pool.name,
        driver.profile.instance_label: driver.name,
    }


def startup_probe_data(driver: DriverPlan) -> dict[str, str]:
    """Content of the ConfigMap with the driver's startup probe."""
    return {_PROBE_KEY: parts.script(driver.profile.startup_probe_script)}


def daemon_set(driver: DriverPlan, pool: DriverPoolPlan) -> DaemonSetSpecArgsDict:
    """The DaemonSet of one pool."""
    own = labels(driver, pool)
    return {
        "selector": {"match_labels": own},
        # A new driver must not reach a node before its users have left it.
        "update_strategy": {"type": "OnDelete"},
        "template": parts.template(driver, own, _pod(driver, pool), startup_probe_data(driver)),
    }


def _pod(driver: DriverPlan, pool: DriverPoolPlan) -> PodSpecArgsDict:
    paths = hostpaths.driver(driver.profile, pool.pool.os_id)
    container = _driver(driver, pool, paths)
    spec = parts.pod(
        driver,
        placement.pool_affinity(driver, pool),
        [container],
        [
            *parts.volumes(paths),
            parts.config_volume(driver.probe_name, parts.EXECUTABLE),
        ],
    )
    return {
        **spec,
        "node_selector": dict(pool.node_selector),
        "init_containers": [_manager(driver, paths, parts.digest(container))],
    }


def _manager(
    driver: DriverPlan, paths: hostpaths.Containers, config_digest: str
) -> ContainerArgsDict:
    command = list(driver.profile.commands[contract.DRIVER_OPERAND])
    return {
        "name": hostpaths.DRIVER_MANAGER,
        **parts.program(
            driver.manager,
            {"command": command, "args": ["reconcile-driver-state"]},
            parts.stand_in(once=True),
        ),
        "env": parts.merged_env(_manager_env(config_digest), driver.manager_env),
        "security_context": _privileged(),
        "termination_message_path": parts.TERMINATION_LOG,
        "volume_mounts": parts.mounts(paths[hostpaths.DRIVER_MANAGER]),
    }


def _manager_env(config_digest: str) -> list[Plain]:
    """The manager's settings; the digest tells it whether the driver itself has changed."""
    fixed = {
        "ENABLE_NPU_POD_EVICTION": "true",
        "ENABLE_AUTO_DRAIN": "false",
        "DRAIN_USE_FORCE": "false",
        "DRAIN_POD_SELECTOR_LABEL": "",
        "DRAIN_TIMEOUT_SECONDS": "0s",
        "DRAIN_DELETE_EMPTYDIR_DATA": "false",
    }
    return [
        parts.field_env("NODE_NAME", "spec.nodeName"),
        *({"name": name, "value": value} for name, value in fixed.items()),
        parts.field_env("OPERATOR_NAMESPACE", "metadata.namespace"),
        {"name": "DRIVER_CONFIG_DIGEST", "value": config_digest},
    ]


def _driver(
    driver: DriverPlan, pool: DriverPoolPlan, paths: hostpaths.Containers
) -> ContainerArgsDict:
    profile = driver.profile
    probe: VolumeMountArgsDict = {
        "name": driver.probe_name,
        "mount_path": _PROBE_MOUNT,
        "sub_path": _PROBE_KEY,
        "read_only": True,
    }
    return {
        "name": profile.driver_container,
        "image": pool.image,
        "image_pull_policy": driver.image.pull_policy,
        "command": [profile.driver_command],
        "args": list(driver.args),
        "env": parts.merged_env(driver.env),
        "resources": parts.resources_of(driver),
        "security_context": _privileged(),
        "startup_probe": _startup_probe(),
        "lifecycle": _remove_ready_file(driver),
        "volume_mounts": [*parts.mounts(paths[profile.driver_container]), probe],
    }


def _privileged() -> SecurityContextArgsDict:
    """Loading kernel modules and mounting for the host need all of it."""
    return {**parts.privileged(), "se_linux_options": {"level": "s0"}}


def _startup_probe() -> ProbeArgsDict:
    """Ten minutes for build, firmware and module load (S0-17)."""
    return {
        "exec_": {"command": ["/bin/sh", "-c", _PROBE_MOUNT]},
        "timeout_seconds": 120,
        "period_seconds": 10,
        "failure_threshold": 60,
    }


def _remove_ready_file(driver: DriverPlan) -> LifecycleArgsDict:
    """A driver that stops is no longer ready (S0-10)."""
    ready = parts.ready_file(driver.profile, contract.DRIVER_CONTAINER_READY)
    return {"pre_stop": {"exec_": {"command": ["/bin/sh", "-c", f"rm -f {ready}"]}}}
