"""Rules of config that need more than one section, or the vendor. Pure; called by `load` alone."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rbln_stack.config.defaults import DEFAULTS
from rbln_stack.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rbln_stack.config.driver import DriverSpec
    from rbln_stack.config.operands import ResourceEntry
    from rbln_stack.config.root import RootConfig
    from rbln_stack.profiles import VendorProfile


def problems(config: RootConfig, profile: VendorProfile) -> list[Problem]:
    """Everything in a well-formed config that cannot work."""
    found = [*_drivers(config, profile)]
    lists = {
        "devicePlugin": config.device_plugin.resource_list,
        "sandboxDevicePlugin": config.sandbox_device_plugin.resource_list,
    }
    for section, entries in lists.items():
        found += _resources(f"{section}.resourceList", entries, profile)
    return found


def _drivers(config: RootConfig, profile: VendorProfile) -> Iterator[Problem]:
    if profile.driver_name in config.drivers:
        yield Problem(
            f"drivers.{profile.driver_name}",
            "this is the name of the section driver",
            "Choose another name",
        )
    sections: dict[str, DriverSpec] = {"driver": config.driver}
    sections |= {f"drivers.{name}": section for name, section in config.drivers.items()}
    for path, section in sections.items():
        yield from _kinds(path, section, profile)
    active = [path for path, section in sections.items() if section.enabled]
    for path in active if len(active) > 1 else ():
        section = sections[path]
        if not section.node_selector and not section.node_affinity.plain():
            others = ", ".join(other for other in active if other != path)
            yield Problem(
                path,
                f"it claims every node, also those of {others}, and a node takes one driver",
                f"Set {path}.nodeSelector, or {path}.enabled to false",
            )


def _kinds(path: str, section: DriverSpec, profile: VendorProfile) -> Iterator[Problem]:
    """Choices of a driver that not every vendor has (S1-16, S1-17)."""
    defaults = DEFAULTS[profile.name]
    choices = (
        ("driverType", section.driver_type, defaults.driver_types),
        ("kernelModuleType", section.kernel_module_type, defaults.kernel_module_types),
    )
    for key, value, allowed in choices:
        if value is not None and value not in allowed:
            remedy = f"Allowed: {', '.join(allowed)}" if allowed else "Remove it"
            yield Problem(f"{path}.{key}", f"profile {profile.name} has no such choice", remedy)


def _resources(
    path: str, entries: tuple[ResourceEntry, ...], profile: VendorProfile
) -> Iterator[Problem]:
    """Cards must be known, and no device may be offered twice."""
    known = sorted(set(profile.devices.products.values()))
    for index, entry in enumerate(entries):
        for position, card in enumerate(entry.product_card_names):
            if card not in known:
                yield Problem(
                    f"{path}[{index}].productCardNames[{position}]",
                    f'"{card}" is no card of profile {profile.name}',
                    f"Known cards: {', '.join(known)}",
                )
    names = Counter(
        f"{entry.resource_prefix or profile.label_domain}/{entry.resource_name}"
        for entry in entries
    )
    for name in sorted(name for name, count in names.items() if count > 1):
        yield Problem(path, f"{name} is in it more than once", "Join the entries")
    cards = Counter(card for entry in entries for card in entry.product_card_names)
    for card in sorted(card for card, count in cards.items() if count > 1):
        yield Problem(
            path, f"{card} is in it more than once", "Offer each card under one name only"
        )
