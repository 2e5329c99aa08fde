"""What each vendor's chart gives config keys that are left out, besides the profile. Data only.

The table's keys are those of `VendorProfile.name`; images that a profile names are taken from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rbln_stack import contract
from rbln_stack.config.operands import ResourceEntry
from rbln_stack.profiles import RBLN, ImageDefaults

if TYPE_CHECKING:
    from collections.abc import Mapping

# Section of an operand → the word that names it elsewhere.
OPERANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "validator": contract.VALIDATOR_OPERAND,
        "container_toolkit": contract.TOOLKIT_OPERAND,
        "device_plugin": contract.DEVICE_PLUGIN_OPERAND,
        "dra_kubelet_plugin": contract.DRA_OPERAND,
        "npu_feature_discovery": contract.FEATURE_DISCOVERY_OPERAND,
        "rbln_daemon": contract.DAEMON_OPERAND,
        "metrics_exporter": contract.EXPORTER_OPERAND,
        "sandbox_device_plugin": contract.SANDBOX_PLUGIN_OPERAND,
        "vfio_manager": contract.VFIO_OPERAND,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorDefaults:
    """Values of config keys that are left out, for one vendor."""

    release_name: str
    managed_label_stem: str
    nfd_enabled: bool
    driver_types: tuple[str, ...]
    kernel_module_types: tuple[str, ...]
    reboot_image: ImageDefaults
    vfio_checker_image: ImageDefaults
    images: Mapping[str, ImageDefaults] = field(hash=False)
    resources: tuple[ResourceEntry, ...] = field(hash=False)
    sandbox_resources: tuple[ResourceEntry, ...] = field(hash=False)


def _hub(repository: str, tag: str) -> ImageDefaults:
    return ImageDefaults(registry="docker.io", repository=f"rebellions/{repository}", tag=tag)


def _resource(name: str, *cards: str) -> ResourceEntry:
    return ResourceEntry.model_validate(
        {
            "resourceName": name,
            "resourcePrefix": RBLN.label_domain,
            "productCardNames": cards,
        }
    )


RBLN_DEFAULTS: Final = VendorDefaults(
    release_name="rbln-npu-operator",
    managed_label_stem="enabled",
    nfd_enabled=False,
    driver_types=(),
    kernel_module_types=(),
    reboot_image=_hub("rbln-node-reboot", "latest"),
    vfio_checker_image=_hub("rbln-vfio-manager", "latest"),
    images=MappingProxyType(
        {
            contract.DRA_OPERAND: _hub("k8s-dra-driver-npu", "v0.1.0"),
            contract.SANDBOX_PLUGIN_OPERAND: _hub("k8s-device-plugin", "v0.3.7"),
            contract.VFIO_OPERAND: _hub("rbln-vfio-manager", "latest"),
        }
    ),
    resources=(
        _resource("ATOM", "RBLN-CA12", "RBLN-CA22", "RBLN-CA25"),
        _resource("REBEL", "RBLN-CR03"),
    ),
    sandbox_resources=(
        _resource("ATOM_PT", "RBLN-CA12"),
        _resource("ATOM_MAX_PT", "RBLN-CA25"),
        _resource("REBEL_PT", "RBLN-CR03"),
    ),
)

DEFAULTS: Final[Mapping[str, VendorDefaults]] = MappingProxyType({RBLN.name: RBLN_DEFAULTS})
