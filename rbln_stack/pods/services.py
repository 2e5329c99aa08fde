"""Pods of the operands that come after the toolkit: each waits for `toolkit-ready` on its node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rbln_stack import contract, hostpaths, placement
from rbln_stack.pods import parts

if TYPE_CHECKING:
    from pulumi_kubernetes.apps.v1 import DaemonSetSpecArgsDict
    from pulumi_kubernetes.core.v1 import (
        ContainerArgsDict,
        PodSpecArgsDict,
        ServiceSpecArgsDict,
        VolumeArgsDict,
        VolumeMountArgsDict,
    )

    from rbln_stack.operands import (
        DaemonPlan,
        DevicePluginPlan,
        ExporterPlan,
        ImageUse,
        Plain,
        WaitingPlan,
    )

_PLUGIN_CONFIG_KEY: Final = "config.json"
_PLUGIN_CONFIG_MOUNT: Final = "/etc/pcidp"
_DAEMON_PORT: Final = 50051
_DAEMON_PORT_NAME: Final = "rbln-daemon"


def plugin_data(plan: DevicePluginPlan) -> dict[str, str]:
    """Content of the ConfigMap with the device plugin's configuration."""
    return {_PLUGIN_CONFIG_KEY: plan.config}


def device_plugin(plan: DevicePluginPlan) -> DaemonSetSpecArgsDict:
    """The device plugin."""
    paths = hostpaths.device_plugin(plan.profile, plan.name, plan.host_bin)
    config: VolumeMountArgsDict = {"name": plan.config_name, "mount_path": _PLUGIN_CONFIG_MOUNT}
    container: ContainerArgsDict = {
        **_container(plan, paths, {}),
        "termination_message_path": parts.TERMINATION_LOG,
        "volume_mounts": [*parts.mounts(paths[plan.name]), config],
    }
    return _daemon_set(
        plan, container, paths, [parts.config_volume(plan.config_name)], plugin_data(plan)
    )


def feature_discovery(plan: DaemonPlan) -> DaemonSetSpecArgsDict:
    """Feature discovery; asks the telemetry daemon of its node, or sysfs."""
    paths = hostpaths.feature_discovery(plan.profile, plan.name)
    url = f"http://$(NODE_IP):{plan.host_port}"
    container: ContainerArgsDict = {
        **_container(plan, paths, {"args": ["--rbln-daemon-url", url, *plan.args]}),
        "env": parts.merged_env([_node_ip()], plan.env),
    }
    return _daemon_set(plan, container, paths)


def daemon(plan: DaemonPlan) -> DaemonSetSpecArgsDict:
    """The telemetry daemon, which others reach on a port of the host."""
    paths = hostpaths.daemon(plan.profile, plan.name)
    command = list(plan.profile.commands[contract.DAEMON_OPERAND])
    container: ContainerArgsDict = {
        **_container(plan, paths, {"command": command, "args": list(plan.args)}),
        "ports": [
            {
                "name": _DAEMON_PORT_NAME,
                "container_port": _DAEMON_PORT,
                "host_port": plan.host_port,
                "protocol": "TCP",
            }
        ],
    }
    return _daemon_set(plan, container, paths)


def daemon_service(plan: DaemonPlan) -> ServiceSpecArgsDict:
    """The daemon of the caller's own node."""
    return {
        "selector": parts.app_labels(plan.name),
        "internal_traffic_policy": "Local",
        "ports": [
            {"name": _DAEMON_PORT_NAME, "port": _DAEMON_PORT, "target_port": _DAEMON_PORT_NAME}
        ],
    }


def exporter(plan: ExporterPlan) -> DaemonSetSpecArgsDict:
    """The metrics exporter."""
    paths = hostpaths.exporter(plan.profile, plan.name)
    url = f"http://$(NODE_IP):{plan.host_port}"
    container: ContainerArgsDict = {
        **_container(plan, paths, {}),
        "env": parts.merged_env(
            [
                _node_ip(),
                parts.field_env("NODE_NAME", "spec.nodeName"),
                {"name": "RBLN_METRICS_EXPORTER_RBLN_DAEMON_URL", "value": url},
                {"name": "RBLN_METRICS_EXPORTER_PORT", "value": str(plan.port)},
            ],
            plan.env,
        ),
        "ports": [{"name": "http", "container_port": plan.port, "protocol": "TCP"}],
        "security_context": {
            **parts.privileged(),
            "run_as_group": 0,
            "read_only_root_filesystem": False,
        },
    }
    return _daemon_set(plan, container, paths)


def exporter_service(plan: ExporterPlan) -> ServiceSpecArgsDict:
    """Where Prometheus finds the exporter."""
    return {
        "selector": parts.app_labels(plan.name),
        "ports": [{"name": "http", "port": plan.port, "target_port": "http"}],
    }


def scrape_annotations(plan: ExporterPlan) -> dict[str, str]:
    """What a Prometheus without the operator's objects goes by."""
    return {
        "prometheus.io/scrape": "true",
        "prometheus.io/path": "/metrics",
        "prometheus.io/port": str(plan.port),
    }


def _container(plan: WaitingPlan, paths: hostpaths.Containers, vendor: Plain) -> ContainerArgsDict:
    ready = parts.ready_file(plan.profile, contract.TOOLKIT_READY)
    return {
        "name": plan.name,
        **parts.program(plan.image, vendor, parts.stand_in(wait_for=[ready])),
        "env": parts.merged_env(plan.env),
        "resources": parts.resources_of(plan),
        "security_context": parts.privileged(),
        "volume_mounts": parts.mounts(paths[plan.name]),
    }


def _daemon_set(
    plan: WaitingPlan,
    container: ContainerArgsDict,
    paths: hostpaths.Containers,
    more_volumes: list[VolumeArgsDict] | None = None,
    mounted: dict[str, str] | None = None,
) -> DaemonSetSpecArgsDict:
    volumes = [*parts.volumes(paths), *(more_volumes or [])]
    wait = parts.waiting_container(plan.profile, plan.waiting, paths[hostpaths.TOOLKIT_VALIDATION])
    pod = parts.pod(plan, placement.operand_affinity(plan), [container], volumes)
    spec: PodSpecArgsDict = {**pod, "init_containers": [wait]}
    if _stops_at_once(plan.operand, plan.image):
        spec = {**spec, "termination_grace_period_seconds": 0}
    labels = parts.app_labels(plan.name)
    return parts.daemon_set(plan.name, parts.template(plan, labels, spec, mounted))


def _stops_at_once(operand: str, image: ImageUse) -> bool:
    """The vendor's programs, but for the plugin, ignore the signal; ours tidy up."""
    return image.source == "vendor" and operand != contract.DEVICE_PLUGIN_OPERAND


def _node_ip() -> Plain:
    return parts.field_env("NODE_IP", "status.hostIP")
