"""The container toolkit's pod, one shape per container runtime (S0.c)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rbln_stack import contract, hostpaths, placement
from rbln_stack.pods import parts, validator

if TYPE_CHECKING:
    from pulumi_kubernetes.apps.v1 import DaemonSetSpecArgsDict
    from pulumi_kubernetes.core.v1 import (
        ContainerArgsDict,
        PodSpecArgsDict,
        ProbeArgsDict,
        VolumeArgsDict,
        VolumeMountArgsDict,
    )

    from rbln_stack.operands import Plain, RuntimeGroup, ToolkitPlan

_ENTRYPOINT_KEY: Final = "entrypoint.sh"
_GRACE_S: Final = 60
_HEALTH_PORT: Final = 8080


def entrypoint_data(plan: ToolkitPlan) -> dict[str, str]:
    """Content of the ConfigMap with the script that starts the daemon."""
    return {_ENTRYPOINT_KEY: parts.script(plan.profile.toolkit_entrypoint_script)}


def daemon_set(plan: ToolkitPlan, group: RuntimeGroup) -> DaemonSetSpecArgsDict:
    """The DaemonSet for the nodes of one runtime."""
    paths = hostpaths.toolkit(plan.profile, plan.name, group.runtime, plan.mode)
    volumes = [
        *parts.volumes(paths),
        parts.config_volume(plan.entrypoint_name, parts.EXECUTABLE),
        *_scratch_volume(plan),
    ]
    affinity = placement.runtime_affinity(plan, group)
    proof = validator.driver_validation(
        plan.profile, plan.waiting, plan.validation_args, plan.validation_env
    )
    spec: PodSpecArgsDict = {
        **parts.pod(plan, affinity, [_main(plan, group, paths)], volumes),
        "init_containers": [proof],
        # The daemon finds the runtime's process by its socket.
        "host_pid": True,
        "termination_grace_period_seconds": _GRACE_S,
    }
    labels = parts.app_labels(group.name)
    return parts.daemon_set(group.name, parts.template(plan, labels, spec, entrypoint_data(plan)))


def _main(plan: ToolkitPlan, group: RuntimeGroup, paths: hostpaths.Containers) -> ContainerArgsDict:
    profile = plan.profile
    (command,) = profile.commands[contract.TOOLKIT_OPERAND]
    entrypoint: VolumeMountArgsDict = {
        "name": plan.entrypoint_name,
        "mount_path": command,
        "sub_path": _ENTRYPOINT_KEY,
        "read_only": True,
    }
    mounts = [*parts.mounts(paths[plan.name]), entrypoint, *_scratch_mount(plan)]
    container: ContainerArgsDict = {
        "name": plan.name,
        **parts.program(
            plan.image,
            {"command": [command], "args": list(plan.args)},
            parts.stand_in(
                wait_for=[parts.ready_file(profile, contract.DRIVER_READY)],
                publish=[f"{contract.CDI_DIR}/{contract.CDI_SPEC}"],
            ),
        ),
        "env": parts.merged_env(_env(group.runtime), plan.env),
        "resources": parts.resources_of(plan),
        "security_context": parts.privileged(),
        "volume_mounts": mounts,
    }
    if plan.image.source != "vendor":
        return container
    return {
        **container,
        "startup_probe": _probe("/startup", period_s=5, failures=60),
        "readiness_probe": _probe("/ready", period_s=30, failures=3),
        "liveness_probe": _probe("/live", period_s=10, failures=3),
    }


def _env(runtime: contract.Runtime) -> list[Plain]:
    """The runtime is told, never guessed: the daemon refuses nodes with several sockets."""
    config = f"{hostpaths.RUNTIME_CONFIG_MOUNT}/{runtime.config_file}"
    return [
        {"name": "RBLN_CTK_DAEMON_RUNTIME", "value": runtime.name},
        {"name": "RBLN_CTK_DAEMON_SOCKET", "value": runtime.socket},
        {"name": "RBLN_CTK_DAEMON_CONFIG_PATH", "value": config},
    ]


def _scratch_volume(plan: ToolkitPlan) -> list[VolumeArgsDict]:
    """A place for the runtime's config in the mode that leaves the node's own alone.

    The daemon edits a config file in any case and ends if it cannot; below `/host`, its own choice,
    nothing can be written.
    """
    if plan.mode != "cdi":
        return []
    return [{"name": hostpaths.RUNTIME_CONFIG_VOLUME, "empty_dir": {}}]


def _scratch_mount(plan: ToolkitPlan) -> list[VolumeMountArgsDict]:
    if plan.mode != "cdi":
        return []
    name, path = hostpaths.RUNTIME_CONFIG_VOLUME, hostpaths.RUNTIME_CONFIG_MOUNT
    return [{"name": name, "mount_path": path}]


def _probe(path: str, *, period_s: int, failures: int) -> ProbeArgsDict:
    """One of the answers that the daemon's health server gives."""
    return {
        "http_get": {"path": path, "port": _HEALTH_PORT},
        "period_seconds": period_s,
        "failure_threshold": failures,
    }
