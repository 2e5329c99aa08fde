"""Pod and DaemonSet specs as typed dicts, one function per operand.

Called by the components, by golden tests and by `render`. Builders take plans, hold no defaults of
their own and never change an argument. Pulumi is only a source of types here.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Final, cast

from rbln_stack import contract, placement

if TYPE_CHECKING:
    from pulumi_kubernetes.apps.v1 import DaemonSetSpecArgsDict
    from pulumi_kubernetes.core.v1 import (
        ContainerArgsDict,
        EnvVarArgsDict,
        LifecycleArgsDict,
        PodSpecArgsDict,
        ProbeArgsDict,
        ResourceRequirementsArgsDict,
        SecurityContextArgsDict,
        VolumeArgsDict,
        VolumeMountArgsDict,
    )

    from rbln_stack.plan import DriverPlan, DriverPoolPlan

_HOST_DRIVER: Final = "host-driver"
_VALIDATIONS: Final = "run-rbln-validations"
_PROBE_KEY: Final = "startup-probe.sh"
_PROBE_MOUNT: Final = "/usr/local/bin/rbln-startup-probe.sh"
_EXECUTABLE: Final = 0o755


def driver_labels(driver: DriverPlan, pool: DriverPoolPlan) -> dict[str, str]:
    """What a pool's DaemonSet, its selector and its pods have in common (S0-15)."""
    return {
        contract.COMPONENT_LABEL: driver.name,
        driver.profile.pool_label: pool.pool.name,
        driver.profile.instance_label: driver.name,
    }


def startup_probe_data(driver: DriverPlan) -> dict[str, str]:
    """Content of the ConfigMap with the driver's startup probe."""
    script = resources.files("rbln_stack.scripts") / driver.profile.startup_probe_script
    return {_PROBE_KEY: script.read_text(encoding="utf-8")}


def driver_daemon_set(driver: DriverPlan, pool: DriverPoolPlan) -> DaemonSetSpecArgsDict:
    """The DaemonSet of one pool."""
    labels = driver_labels(driver, pool)
    return {
        "selector": {"match_labels": labels},
        # A new driver must not reach a node before its users have left it.
        "update_strategy": {"type": "OnDelete"},
        "template": {
            "metadata": {
                "labels": {**driver.labels, **labels},
                "annotations": dict(driver.annotations),
            },
            "spec": _driver_pod(driver, pool),
        },
    }


def _driver_pod(driver: DriverPlan, pool: DriverPoolPlan) -> PodSpecArgsDict:
    spec: PodSpecArgsDict = {
        "service_account_name": driver.name,
        "node_selector": dict(pool.node_selector),
        "affinity": placement.pool_affinity(driver.profile, pool.pool),
        "tolerations": placement.toleration_list(driver.tolerations),
        "image_pull_secrets": [{"name": name} for name in driver.pull_secrets],
        "containers": [_driver_container(driver, pool)],
        "volumes": _driver_volumes(driver),
    }
    if not driver.priority_class:
        return spec
    return {**spec, "priority_class_name": driver.priority_class}


def _driver_container(driver: DriverPlan, pool: DriverPoolPlan) -> ContainerArgsDict:
    return {
        "name": driver.profile.driver_container,
        "image": pool.image,
        "image_pull_policy": driver.pull_policy,
        "command": [driver.profile.driver_command],
        "args": list(driver.args),
        "env": [cast("EnvVarArgsDict", variable) for variable in driver.env],
        "resources": cast("ResourceRequirementsArgsDict", driver.resources),
        "security_context": _privileged(),
        "startup_probe": _startup_probe(),
        "lifecycle": _remove_ready_file(driver),
        "volume_mounts": _driver_mounts(driver),
    }


def _privileged() -> SecurityContextArgsDict:
    """Loading kernel modules and mounting for the host need all of it."""
    return {"privileged": True, "run_as_user": 0, "se_linux_options": {"level": "s0"}}


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
    ready = f"{driver.profile.validations_dir}/{contract.DRIVER_CONTAINER_READY}"
    return {"pre_stop": {"exec_": {"command": ["/bin/sh", "-c", f"rm -f {ready}"]}}}


def _driver_mounts(driver: DriverPlan) -> list[VolumeMountArgsDict]:
    profile = driver.profile
    return [
        {
            "name": _HOST_DRIVER,
            "mount_path": f"{contract.HOST_MOUNT}{profile.driver_dir}",
            # The container mounts its own root there, and the host must see that mount.
            "mount_propagation": "Bidirectional",
        },
        {"name": _VALIDATIONS, "mount_path": profile.validations_dir},
        {
            "name": driver.probe_name,
            "mount_path": _PROBE_MOUNT,
            "sub_path": _PROBE_KEY,
            "read_only": True,
        },
    ]


def _driver_volumes(driver: DriverPlan) -> list[VolumeArgsDict]:
    return [
        _host_directory(_HOST_DRIVER, driver.profile.driver_dir),
        _host_directory(_VALIDATIONS, driver.profile.validations_dir),
        {
            "name": driver.probe_name,
            "config_map": {"name": driver.probe_name, "default_mode": _EXECUTABLE},
        },
    ]


def _host_directory(name: str, path: str) -> VolumeArgsDict:
    return {"name": name, "host_path": {"path": path, "type": "DirectoryOrCreate"}}
