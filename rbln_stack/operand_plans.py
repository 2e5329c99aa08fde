"""Config sections → operand plans, in the words that the pod builders need. Pure.

Called by the plan alone; after it nobody looks at config.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rbln_stack import contract, placement, runtimes, states
from rbln_stack.operands import (
    DaemonPlan,
    DevicePluginPlan,
    DriverPlan,
    ExporterPlan,
    ImageUse,
    NodeStatePlan,
    OperandPlan,
    Plain,
    Source,
    ToolkitPlan,
    ValidatorPlan,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rbln_stack.config.base import Resources
    from rbln_stack.config.driver import NamedDriver
    from rbln_stack.config.images import ImageRef
    from rbln_stack.config.operands import ComponentSection, ResourceEntry
    from rbln_stack.config.root import RootConfig
    from rbln_stack.nodes import NodeFacts
    from rbln_stack.operands import DriverPoolPlan
    from rbln_stack.profiles import VendorProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What every operand's plan is made from."""

    config: RootConfig
    profile: VendorProfile
    namespace: str
    nodes: tuple[NodeFacts, ...]

    @property
    def agents(self) -> ImageUse:
        """The image of this project's own programs."""
        return _use(self.config.agents.image_ref, "agents")

    @property
    def managed(self) -> tuple[Plain, ...]:
        """Conditions by which nodes are served at all."""
        section = self.config.managed_nodes
        return placement.managed_nodes(
            section.label_key,
            section.node_selector,
            enabled_by_default=section.enabled_by_default,
        )

    @property
    def present_labels(self) -> tuple[str, ...]:
        """Labels that tell of an accelerator, each of them enough."""
        key = self.config.managed_nodes.present_label_key
        return (key,) if key else self.profile.present_labels

    def image(self, ref: ImageRef) -> ImageUse:
        """The vendor's image, or that of the agents in its place."""
        return _use(ref, "vendor") if self.config.source == "vendor" else self.agents

    def secrets(self, own: Iterable[str]) -> tuple[str, ...]:
        """Pull secrets of the image that is really used, each once."""
        more = () if self.config.source == "vendor" else self.config.agents.image_pull_secrets
        return tuple(dict.fromkeys((*own, *more)))

    def name(self, operand: str) -> str:
        """What the operand's objects are called; some keep their name whatever the base name is."""
        named = operand in self.profile.own_names
        return operand if named else f"{self.config.name}-{operand}"

    def base(self, operand: str, name: str) -> dict[str, Any]:
        """What no section can change."""
        return {
            "operand": operand,
            "name": name,
            "namespace": self.namespace,
            "profile": self.profile,
            "default_workload": self.config.workload_type,
            "present_labels": self.present_labels,
            "managed": self.managed,
            "awaited": states.named(self.profile.states, operand).awaited,
        }

    def tolerations(self, own: Iterable[Any] = ()) -> tuple[Plain, ...]:
        """The operand's tolerations, by the one rule for all (X-17)."""
        managed, shared = self.config.managed_nodes.tolerations, self.config.daemonsets.tolerations
        return placement.joined_tolerations(
            [one.plain() for one in managed],
            [one.plain() for one in shared],
            [one.plain() for one in own],
        )

    def requests(self, resources: Resources) -> Plain:
        """Resources with the vendor's requests for what is neither requested nor limited."""
        own = resources.plain()
        limits, requests = own.get("limits", {}), own.get("requests", {})
        missing = {
            key: value
            for key, value in self.profile.default_requests.items()
            if key not in limits and key not in requests
        }
        return {**own, "requests": {**missing, **requests}}

    def component(self, operand: str, section: ComponentSection) -> dict[str, Any]:
        """What all sections of operands have in common, with what they share filled in (S0-108)."""
        shared = self.config.daemonsets
        return {
            **self.base(operand, self.name(operand)),
            "image": self.image(section.image_ref),
            "pull_secrets": self.secrets(section.image_pull_secrets),
            "resources": self.requests(section.resources),
            "labels": {**shared.labels, **section.labels},
            "annotations": {**shared.annotations, **section.annotations},
            "affinity": _lists(section.affinity.plain() or shared.affinity.plain()),
            "tolerations": self.tolerations(section.tolerations),
            "priority_class": section.priority_class_name or shared.priority_class_name,
        }

    def waiting(self, operand: str, section: ComponentSection) -> dict[str, Any]:
        """The same for an operand whose init container runs the validator's image."""
        validator = self.config.validator
        common = self.component(operand, section)
        secrets = self.secrets((*section.image_pull_secrets, *validator.image_pull_secrets))
        return {**common, "pull_secrets": secrets, "waiting": self.image(validator.image_ref)}


def driver(
    context: Context, declared: NamedDriver, pools: tuple[DriverPoolPlan, ...]
) -> DriverPlan:
    """One driver declaration with its pools."""
    section, shared = declared.section, context.config.daemonsets
    node_affinity = section.node_affinity.plain()
    affinity = {"node_affinity": node_affinity} if node_affinity else shared.affinity.plain()
    return DriverPlan(
        **context.base(contract.DRIVER_OPERAND, declared.name),
        # Only the vendor has a driver: where agents run, they run around it.
        image=_use(section.image_ref, "vendor"),
        pull_secrets=context.secrets(section.all_pull_secrets),
        args=section.args,
        env=_plain(section.env),
        resources=context.requests(section.resources),
        labels={**shared.labels, **section.labels},
        annotations={**shared.annotations, **section.annotations},
        affinity=_lists(affinity),
        tolerations=context.tolerations(section.tolerations),
        priority_class=section.priority_class_name or shared.priority_class_name,
        manager=context.image(section.manager.image_ref),
        manager_env=_plain(section.manager.env),
        pools=pools,
    )


def validator(context: Context) -> ValidatorPlan:
    """The validator; what its section cannot say comes from what all operands share."""
    section, shared = context.config.validator, context.config.daemonsets
    operand = contract.VALIDATOR_OPERAND
    return ValidatorPlan(
        **context.base(operand, context.name(operand)),
        image=context.image(section.image_ref),
        pull_secrets=context.secrets(section.image_pull_secrets),
        args=section.args,
        env=_plain(section.env),
        resources=context.requests(section.resources),
        labels=shared.labels,
        annotations=shared.annotations,
        affinity=_lists(shared.affinity.plain()),
        tolerations=context.tolerations(),
        priority_class=shared.priority_class_name,
        driver_env=_plain(section.driver.env),
        toolkit_env=_plain(section.toolkit.env),
    )


def toolkit(context: Context) -> ToolkitPlan:
    """The container toolkit, with its nodes by runtime."""
    section, proof = context.config.container_toolkit, context.config.validator
    common = context.waiting(contract.TOOLKIT_OPERAND, section)
    return ToolkitPlan(
        **common,
        args=section.args,
        env=_plain(section.env),
        mode=section.mode,
        groups=runtimes.groups(
            common["name"], runtimes.users(context.nodes, context), section.runtime
        ),
        validation_args=proof.args,
        validation_env=(*_plain(proof.env), *_plain(proof.driver.env)),
    )


def device_plugin(context: Context) -> DevicePluginPlan:
    """The device plugin with its configuration file."""
    section = context.config.device_plugin
    return DevicePluginPlan(
        **context.waiting(contract.DEVICE_PLUGIN_OPERAND, section),
        config=plugin_config(section.resource_list, context.profile),
        host_bin=section.host_bin_path,
    )


def feature_discovery(context: Context) -> DaemonPlan:
    """Feature discovery, which asks the telemetry daemon."""
    section = context.config.npu_feature_discovery
    return DaemonPlan(
        **context.waiting(contract.FEATURE_DISCOVERY_OPERAND, section),
        host_port=context.config.rbln_daemon.host_port,
    )


def daemon(context: Context) -> DaemonPlan:
    """The telemetry daemon."""
    section = context.config.rbln_daemon
    return DaemonPlan(
        **context.waiting(contract.DAEMON_OPERAND, section),
        args=section.args,
        env=_plain(section.env),
        host_port=section.host_port,
    )


def exporter(context: Context) -> ExporterPlan:
    """The metrics exporter, which asks the telemetry daemon."""
    section = context.config.metrics_exporter
    return ExporterPlan(
        **context.waiting(contract.EXPORTER_OPERAND, section),
        host_port=context.config.rbln_daemon.host_port,
        port=section.port,
    )


def node_state(context: Context) -> NodeStatePlan:
    """The controller, always ours: it writes what a run waits for."""
    shared, operand = context.config.daemonsets, contract.NODE_STATE_OPERAND
    return NodeStatePlan(
        **context.base(operand, context.name(operand)),
        image=context.agents,
        pull_secrets=context.config.agents.image_pull_secrets,
        args=(
            contract.NODE_STATE_OPERAND,
            *("--profile", context.profile.name),
            *("--namespace", context.namespace),
        ),
        resources={"requests": {"cpu": "20m", "memory": "64Mi"}},
        labels=shared.labels,
        annotations=shared.annotations,
        tolerations=context.tolerations(),
        priority_class=shared.priority_class_name,
    )


# Which function plans which state; a state that is not here is not deployed as an operand.
PLANNERS: Mapping[str, Callable[[Context], OperandPlan]] = {
    contract.VALIDATOR_OPERAND: validator,
    contract.TOOLKIT_OPERAND: toolkit,
    contract.DEVICE_PLUGIN_OPERAND: device_plugin,
    contract.FEATURE_DISCOVERY_OPERAND: feature_discovery,
    contract.DAEMON_OPERAND: daemon,
    contract.EXPORTER_OPERAND: exporter,
    contract.NODE_STATE_OPERAND: node_state,
}


def plugin_config(entries: Iterable[ResourceEntry], profile: VendorProfile) -> str:
    """The plugin's configuration: resources by PCI ids, in the order of the cards."""
    ids: dict[str, list[str]] = {}
    for device, product in profile.devices.products.items():
        ids.setdefault(product, []).append(device)
    resources = [
        {
            "resourceName": entry.resource_name,
            "resourcePrefix": entry.resource_prefix,
            "deviceType": "accelerator",
            "selectors": {
                "vendors": [profile.devices.pci_vendor],
                "devices": [one for card in entry.product_card_names for one in ids[card]],
                "drivers": [profile.devices.module],
            },
        }
        for entry in entries
    ]
    return json.dumps({"resourceList": resources}, indent=2)


def _use(ref: ImageRef, source: Source) -> ImageUse:
    return ImageUse(reference=ref.reference, pull_policy=ref.pull_policy, source=source)


def _plain(variables: Iterable[Any]) -> tuple[Plain, ...]:
    return tuple(_lists(variable.plain()) for variable in variables)


def _lists(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The same value with lists in place of tuples, as JSON and the engine know them."""
    if isinstance(value, dict):
        return {key: _lists(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_lists(item) for item in value]
    return value
