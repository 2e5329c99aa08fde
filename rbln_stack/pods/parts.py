"""What pods of all operands are put together from.

Called by the other modules of this package. Builders take plans, hold no defaults of their own and
never change an argument.
"""

from __future__ import annotations

import hashlib
import json
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, cast

from rbln_stack import contract, hostpaths, placement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pulumi_kubernetes.apps.v1 import DaemonSetSpecArgsDict
    from pulumi_kubernetes.core.v1 import (
        AffinityArgsDict,
        ContainerArgsDict,
        EnvVarArgsDict,
        PodSpecArgsDict,
        PodTemplateSpecArgsDict,
        ResourceRequirementsArgsDict,
        SecurityContextArgsDict,
        VolumeArgsDict,
        VolumeMountArgsDict,
    )

    from rbln_stack.operands import ImageUse, OperandPlan, Plain
    from rbln_stack.profiles import VendorProfile

AGENT_PROGRAM: Final = "rbln-agent"
EXECUTABLE: Final = 0o755
# For containers that see the node's /dev: the usual place, /dev/termination-log, would have to be
# made in it, which fails where it is read-only and litters the node where it is not.
TERMINATION_LOG: Final = "/tmp/termination-log"  # noqa: S108 - a mount of the kubelet, not a file


def digest(value: object) -> str:
    """A text that is the same for the same content, in any order of keys, on any machine."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def script(name: str) -> str:
    """The text of a script that goes into a ConfigMap."""
    return (resources.files("rbln_stack.scripts") / name).read_text(encoding="utf-8")


def ready_file(profile: VendorProfile, name: str) -> str:
    """The path of a ready file, alike on the node and in pods."""
    return f"{profile.validations_dir}/{name}"


def stand_in(
    *, wait_for: Sequence[str] = (), publish: Sequence[str] = (), once: bool = False
) -> list[str]:
    """Arguments of the program that stands where an operand's own agent will: one word to change.

    It keeps the order on a node by ready files real until the agents take their places.
    """
    waits = ["--wait-for", *wait_for] if wait_for else []
    publishes = ["--publish", *publish] if publish else []
    return ["stand-in", *waits, *publishes, *(["--once"] if once else [])]


def program(image: ImageUse, vendor: Plain, agent_args: Sequence[str]) -> ContainerArgsDict:
    """Image and command: the vendor's as given, or an agent of ours."""
    chosen: Plain = {"command": [AGENT_PROGRAM], "args": list(agent_args)}
    if image.source == "vendor":
        chosen = vendor
    use = {"image": image.reference, "image_pull_policy": image.pull_policy}
    return cast("ContainerArgsDict", {**use, **chosen})


def privileged() -> SecurityContextArgsDict:
    """Root on the node: for operands that mount, load modules or open devices."""
    return {"privileged": True, "run_as_user": 0}


def confined() -> SecurityContextArgsDict:
    """No rights on the node at all: for controllers."""
    return {
        "run_as_non_root": True,
        "allow_privilege_escalation": False,
        "read_only_root_filesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccomp_profile": {"type": "RuntimeDefault"},
    }


def field_env(name: str, path: str) -> Plain:
    """A variable with a value of the pod's own object."""
    return {"name": name, "value_from": {"field_ref": {"field_path": path}}}


def merged_env(*lists: Iterable[Plain]) -> list[EnvVarArgsDict]:
    """One list of variables; a later one replaces an earlier one of its name."""
    by_name: dict[str, Plain] = {}
    for variables in lists:
        for variable in variables:
            by_name[variable["name"]] = variable
    return [cast("EnvVarArgsDict", variable) for variable in by_name.values()]


def resources_of(plan: OperandPlan) -> ResourceRequirementsArgsDict:
    """Requests and limits of the main container."""
    return cast("ResourceRequirementsArgsDict", plan.resources)


def mounts(paths: Iterable[hostpaths.HostPath]) -> list[VolumeMountArgsDict]:
    """The mounts of one container."""
    return [_mount(path) for path in paths]


def volumes(containers: hostpaths.Containers) -> list[VolumeArgsDict]:
    """The volumes of a pod, each once."""
    by_name = {path.volume: path for paths in containers.values() for path in paths}
    return [_volume(path) for path in by_name.values()]


def config_volume(name: str, mode: int | None = None) -> VolumeArgsDict:
    """A ConfigMap as a volume of its own name."""
    if mode is None:
        return {"name": name, "config_map": {"name": name}}
    return {"name": name, "config_map": {"name": name, "default_mode": mode}}


def waiting_container(
    profile: VendorProfile, image: ImageUse, paths: Iterable[hostpaths.HostPath]
) -> ContainerArgsDict:
    """The init container that holds a pod back until containers can get devices on its node."""
    ready = ready_file(profile, contract.TOOLKIT_READY)
    wait = (
        f"trap 'exit 1' TERM; [ -f {ready} ] || echo waiting for {ready}; "
        f"until [ -f {ready} ]; do sleep 5 & wait $!; done"
    )
    return {
        "name": hostpaths.TOOLKIT_VALIDATION,
        **program(
            image,
            {"command": ["/bin/sh", "-c"], "args": [wait]},
            stand_in(wait_for=[ready], once=True),
        ),
        "security_context": privileged(),
        "volume_mounts": mounts(paths),
    }


def pod(
    plan: OperandPlan,
    affinity: AffinityArgsDict,
    containers: list[ContainerArgsDict],
    volume_list: list[VolumeArgsDict],
) -> PodSpecArgsDict:
    """The pod of an operand without init containers."""
    spec: Plain = {
        "service_account_name": plan.name,
        "affinity": affinity,
        "tolerations": placement.toleration_list(plan.tolerations),
        "containers": containers,
        "volumes": volume_list,
    }
    if plan.pull_secrets:
        spec["image_pull_secrets"] = [{"name": name} for name in plan.pull_secrets]
    if plan.priority_class:
        spec["priority_class_name"] = plan.priority_class
    return cast("PodSpecArgsDict", spec)


def template(
    plan: OperandPlan,
    labels: Mapping[str, str],
    spec: PodSpecArgsDict,
    mounted: Mapping[str, str] | None = None,
) -> PodTemplateSpecArgsDict:
    """The template with a hash over all that the pods are made from.

    A pod does not see a new ConfigMap behind a mounted file; with its text in the hash a change
    makes new pods.
    """
    key = plan.profile.config_hash_annotation
    return {
        "metadata": {
            "labels": {**plan.labels, **plan.object_labels, **labels},
            "annotations": {**plan.annotations, key: digest([spec, dict(mounted or {})])},
        },
        "spec": spec,
    }


def daemon_set(name: str, pod_template: PodTemplateSpecArgsDict) -> DaemonSetSpecArgsDict:
    """A DaemonSet that selects its pods by its name."""
    return {"selector": {"match_labels": app_labels(name)}, "template": pod_template}


def app_labels(name: str) -> dict[str, str]:
    """The label by which a DaemonSet and its Service find their pods."""
    return {contract.APP_LABEL: name}


def _mount(path: hostpaths.HostPath) -> VolumeMountArgsDict:
    mount: dict[str, Any] = {"name": path.volume, "mount_path": path.mount}
    if path.access == "ro":
        mount["read_only"] = True
    if path.propagation != "None":
        mount["mount_propagation"] = path.propagation
    return cast("VolumeMountArgsDict", mount)


def _volume(path: hostpaths.HostPath) -> VolumeArgsDict:
    return {"name": path.volume, "host_path": {"path": path.path, "type": path.kind}}
