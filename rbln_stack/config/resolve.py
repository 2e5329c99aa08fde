"""Config as written → config with every value final: the vendor's where the user named none.

Called by `load` alone. Pure; it never complains, since `checks` has had its say before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from rbln_stack.config.base import Section
from rbln_stack.config.defaults import DEFAULTS, OPERANDS
from rbln_stack.config.driver import DriverSpec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rbln_stack.config.defaults import VendorDefaults
    from rbln_stack.config.operands import ResourceEntry
    from rbln_stack.config.root import RootConfig
    from rbln_stack.profiles import VendorProfile

SectionT = TypeVar("SectionT", bound=Section)
SpecT = TypeVar("SpecT", bound=DriverSpec)

# A further driver is for nodes of its own, and is not off because the first one is.
_NOT_INHERITED = frozenset({"enabled", "node_selector", "node_affinity", "retain_pools"})


def resolved(config: RootConfig, profile: VendorProfile) -> RootConfig:
    """The same config with the vendor's values in place of empty ones."""
    defaults = DEFAULTS[profile.name]
    images = {**defaults.images, **profile.images}
    changes: dict[str, Any] = {
        name: getattr(config, name).filled(images[operand]) for name, operand in OPERANDS.items()
    }
    changes |= _drivers(config, profile, defaults)
    changes["device_plugin"] = changes["device_plugin"].model_copy(
        update={
            "resource_list": _offered(
                config.device_plugin.resource_list or defaults.resources, profile
            )
        }
    )
    sandbox = config.sandbox_device_plugin
    changes["sandbox_device_plugin"] = changes["sandbox_device_plugin"].model_copy(
        update={
            "resource_list": _offered(sandbox.resource_list or defaults.sandbox_resources, profile),
            "vfio_checker": sandbox.vfio_checker.filled(defaults.vfio_checker_image),
        }
    )
    changes |= _switches(config, defaults, changes)
    label = f"{profile.label_domain}/{profile.label_stem}.{defaults.managed_label_stem}"
    nodes = config.managed_nodes
    return config.model_copy(
        update=changes
        | {
            "release_name": config.release_name or defaults.release_name,
            "namespace": config.namespace or profile.default_namespace,
            "agents": config.agents.filled(profile.agents_image),
            "managed_nodes": nodes.model_copy(update={"label_key": nodes.label_key or label}),
        }
    )


def _drivers(
    config: RootConfig, profile: VendorProfile, defaults: VendorDefaults
) -> dict[str, Any]:
    own = _driver(config.driver, profile)
    reboot = own.upgrade_policy.reboot
    policy = own.upgrade_policy.model_copy(
        update={
            "reboot": reboot.model_copy(
                update={"image": reboot.image.filled(defaults.reboot_image)}
            )
        }
    )
    return {
        "driver": own.model_copy(update={"upgrade_policy": policy}),
        "drivers": {
            name: _driver(_inherited(section, config.driver), profile)
            for name, section in config.drivers.items()
        },
    }


def _driver(section: SpecT, profile: VendorProfile) -> SpecT:
    return section.model_copy(
        update={
            "image": section.image.filled(profile.driver_image),
            "manager": section.manager.filled(profile.manager_image),
            "args": section.args or profile.driver_args,
        }
    )


def _inherited(section: SectionT, base: Section) -> SectionT:
    """What the section leaves out as in `base`; maps merge, lists replace (DC-40)."""
    changes: dict[str, Any] = {}
    for name in type(section).model_fields:
        own, other = getattr(section, name), getattr(base, name)
        if name in _NOT_INHERITED:
            continue
        if name not in section.model_fields_set:
            changes[name] = other
        elif isinstance(own, Section) and isinstance(other, Section):
            changes[name] = _inherited(own, other)
        elif isinstance(own, dict):
            changes[name] = {**other, **own}
    return section.model_copy(update=changes)


def _offered(entries: Iterable[ResourceEntry], profile: VendorProfile) -> tuple[ResourceEntry, ...]:
    return tuple(
        entry.model_copy(update={"resource_prefix": entry.resource_prefix or profile.label_domain})
        for entry in entries
    )


def _switches(
    config: RootConfig, defaults: VendorDefaults, sections: dict[str, Any]
) -> dict[str, Any]:
    """Switches that exist twice: an operand is on if both are (S2-31, S2-44)."""
    twice = {
        "npu_feature_discovery": config.bootstrap.gfd.enabled,
        "metrics_exporter": config.bootstrap.dcgm_exporter.enabled,
    }
    changes: dict[str, Any] = {
        name: sections[name].model_copy(update={"enabled": sections[name].enabled and on})
        for name, on in twice.items()
    }
    nfd = defaults.nfd_enabled if config.nfd.enabled is None else config.nfd.enabled
    return changes | {"nfd": config.nfd.model_copy(update={"enabled": nfd})}
