"""The validator pod: proves the driver, then the toolkit, then idles; Ready means both hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from rbln_stack import contract, hostpaths, placement
from rbln_stack.pods import parts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulumi_kubernetes.apps.v1 import DaemonSetSpecArgsDict
    from pulumi_kubernetes.core.v1 import ContainerArgsDict, PodSpecArgsDict

    from rbln_stack.operands import ImageUse, Plain, ValidatorPlan
    from rbln_stack.profiles import VendorProfile

_IDLE: Final = (
    "trap 'exit 0' TERM; echo all validations have passed; while :; do sleep 3600 & wait $!; done"
)


def daemon_set(plan: ValidatorPlan) -> DaemonSetSpecArgsDict:
    """The validator's DaemonSet (S0-19…S0-22)."""
    paths = hostpaths.validator(plan.profile, plan.name)
    checks: list[ContainerArgsDict] = [
        {
            **driver_validation(
                plan.profile,
                plan.image,
                plan.args,
                [_temporary(plan), *plan.env, *plan.driver_env],
            ),
            "resources": parts.resources_of(plan),
        },
        _toolkit_validation(plan, paths),
    ]
    spec: PodSpecArgsDict = {
        **parts.pod(
            plan, placement.operand_affinity(plan), [_main(plan, paths)], parts.volumes(paths)
        ),
        "init_containers": checks,
    }
    return parts.daemon_set(plan.name, parts.template(plan, parts.app_labels(plan.name), spec))


def driver_validation(
    profile: VendorProfile, image: ImageUse, args: Iterable[str], env: Iterable[Plain]
) -> ContainerArgsDict:
    """The init container that proves the driver; the toolkit's pod has one of its own."""
    command = list(profile.commands[contract.VALIDATOR_OPERAND])
    return {
        "name": hostpaths.DRIVER_VALIDATION,
        **parts.program(
            image,
            {"command": command, "args": ["driver", "--with-wait", *args]},
            parts.stand_in(
                wait_for=[parts.ready_file(profile, contract.DRIVER_CONTAINER_READY)],
                publish=[parts.ready_file(profile, contract.DRIVER_READY)],
                once=True,
            ),
        ),
        "env": parts.merged_env(env, [_namespace()]),
        "security_context": parts.privileged(),
        "volume_mounts": parts.mounts(hostpaths.driver_validation(profile)),
    }


def _toolkit_validation(plan: ValidatorPlan, paths: hostpaths.Containers) -> ContainerArgsDict:
    """Without `--with-wait`, as upstream: a failed round is seen as a restart of the container."""
    command = list(plan.profile.commands[contract.VALIDATOR_OPERAND])
    return {
        "name": hostpaths.TOOLKIT_VALIDATION,
        **parts.program(
            plan.image,
            {"command": command, "args": ["toolkit", *plan.args]},
            parts.stand_in(
                wait_for=[f"{contract.CDI_DIR}/{contract.CDI_SPEC}"],
                publish=[parts.ready_file(plan.profile, contract.TOOLKIT_READY)],
                once=True,
            ),
        ),
        "env": parts.merged_env([_temporary(plan)], plan.env, plan.toolkit_env, [_namespace()]),
        "resources": parts.resources_of(plan),
        "security_context": parts.privileged(),
        "volume_mounts": parts.mounts(paths[hostpaths.TOOLKIT_VALIDATION]),
    }


def _main(plan: ValidatorPlan, paths: hostpaths.Containers) -> ContainerArgsDict:
    """Idles; when it stops, the node is no longer proved (S0-29)."""
    ready = [
        parts.ready_file(plan.profile, name)
        for name in (contract.DRIVER_READY, contract.TOOLKIT_READY)
    ]
    container: Plain = {
        "name": plan.name,
        **parts.program(
            plan.image,
            {"command": ["/bin/sh", "-c"], "args": [_IDLE]},
            parts.stand_in(publish=ready),
        ),
        "env": parts.merged_env([_temporary(plan)], plan.env, [_namespace()]),
        "resources": parts.resources_of(plan),
        "security_context": parts.privileged(),
        "volume_mounts": parts.mounts(paths[plan.name]),
    }
    if plan.image.source == "vendor":
        removal = f"rm -f {plan.profile.validations_dir}/*-ready"
        container["lifecycle"] = {"pre_stop": {"exec_": {"command": ["/bin/sh", "-c", removal]}}}
    return cast("ContainerArgsDict", container)


def _temporary(plan: ValidatorPlan) -> Plain:
    """Temporary files must be on the file system of the ready files to be renamed into place."""
    return {"name": "TMPDIR", "value": plan.profile.validations_dir}


def _namespace() -> Plain:
    return parts.field_env("OPERATOR_NAMESPACE", "metadata.namespace")
