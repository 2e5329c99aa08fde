"""The stack's own custom objects: one per driver declaration, one for the whole stack. Pure.

The only place that writes them (S0-61, S0-62). They declare and carry status; nothing is rendered
from them in the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rbln_stack.operands import Plain, StatusPlan

if TYPE_CHECKING:
    from rbln_stack.config.images import ImageRef
    from rbln_stack.config.operands import ComponentSection
    from rbln_stack.operand_plans import Context
    from rbln_stack.operands import DriverPlan


def driver(plan: DriverPlan) -> Plain:
    """The spec of a driver declaration."""
    return {
        "image": plan.image.reference,
        "imagePullPolicy": plan.image.pull_policy,
        "manager": {
            "image": plan.manager.reference,
            "imagePullPolicy": plan.manager.pull_policy,
        },
        "pools": [entry.pool.name for entry in plan.pools],
    }


def status(context: Context) -> StatusPlan:
    """The declaration of the stack, and whether and how long a run waits for it."""
    config = context.config
    readiness = config.readiness
    require: Plain = {"require": readiness.require if readiness.awaited else "none"}
    if readiness.pools:
        require = {"require": f"{readiness.percent}%", "pools": list(readiness.pools)}
    spec: Plain = {
        "name": config.name,
        "namespace": context.namespace,
        "workloadType": config.workload_type,
        "driver": {"enabled": bool(config.driver_declarations())},
        "validator": {
            "enabled": config.validator.enabled,
            **_image(context, config.validator.image_ref),
        },
        "containerToolkit": _component(context, config.container_toolkit),
        "devicePlugin": {
            **_component(context, config.device_plugin),
            "resourceList": [
                {
                    "resourceName": entry.resource_name,
                    "resourcePrefix": entry.resource_prefix,
                    "productCardNames": list(entry.product_card_names),
                }
                for entry in config.device_plugin.resource_list
            ],
        },
        "npuFeatureDiscovery": _component(context, config.npu_feature_discovery),
        "rblnDaemon": _component(context, config.rbln_daemon),
        "metricsExporter": _component(context, config.metrics_exporter),
        "readiness": require,
    }
    return StatusPlan(
        name=context.profile.policy_name,
        spec=spec,
        gate=readiness.awaited,
        timeout_s=readiness.timeout_seconds,
    )


def _component(context: Context, section: ComponentSection) -> Plain:
    return {"enabled": section.enabled, **_image(context, section.image_ref)}


def _image(context: Context, ref: ImageRef) -> Plain:
    """What really runs, so that a change of it changes the declaration and is waited for."""
    if context.config.source == "agents":
        ref = context.config.agents.image_ref
    version = ref.digest or ref.tag
    return {
        "registry": ref.registry,
        "image": ref.repository,
        "version": version,
        "imagePullPolicy": ref.pull_policy,
    }
