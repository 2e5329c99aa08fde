"""One frozen record per accelerator vendor; every difference between vendors is a value in here.

Read by config, plan and builders. A new vendor is a new constant, never a branch elsewhere (D7).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rbln_stack import contract

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageDefaults:
    """The image of an operand when config names none."""

    registry: str
    repository: str
    tag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorProfile:
    """Names, paths and images of one vendor."""

    name: str
    devices: contract.Devices
    label_domain: str
    label_stem: str
    run_dir: str
    default_namespace: str
    default_workload: str
    driver_name: str
    driver_container: str
    driver_command: str
    driver_args: tuple[str, ...]
    driver_image: ImageDefaults
    startup_probe_script: str

    @property
    def present_labels(self) -> tuple[str, str]:
        """Both spellings NFD may use for "an accelerator is in this node"."""
        vendor, pci_class = self.devices.pci_vendor, self.devices.pci_class
        return (
            f"{contract.NFD_PREFIX}pci-{pci_class}_{vendor}.present",
            f"{contract.NFD_PREFIX}pci-{vendor}.present",
        )

    @property
    def workload_label(self) -> str:
        """The key by which an administrator gives a node to containers or to virtual machines."""
        return f"{self.label_domain}/{self.label_stem}.workload.config"

    @property
    def pool_label(self) -> str:
        """The key that tells which pool a driver pod belongs to."""
        return f"{self.label_domain}/driver-node-pool"

    @property
    def instance_label(self) -> str:
        """The key that tells which driver declaration a driver pod belongs to."""
        return f"{self.label_domain}/driver-instance"

    @property
    def driver_dir(self) -> str:
        """Where the driver's user-mode files appear on the host."""
        return f"{self.run_dir}/{contract.DRIVER_DIR}"

    @property
    def validations_dir(self) -> str:
        """Where the ready files of a node are."""
        return f"{self.run_dir}/{contract.VALIDATIONS_DIR}"

    def deploy_label(self, operand: str) -> str:
        """The key by which a node opts out of an operand or pauses it."""
        return f"{self.label_domain}/{self.label_stem}.deploy.{operand}"


RBLN: Final = VendorProfile(
    name="rbln",
    devices=contract.RBLN_DEVICES,
    label_domain="rebellions.ai",
    label_stem="npu",
    run_dir="/run/rbln",
    default_namespace="rbln-system",
    default_workload=contract.WORKLOAD_CONTAINER,
    driver_name="rbln-driver",
    driver_container="rbln-driver-container",
    driver_command="/opt/rebellions/bin/rbln-driver",
    driver_args=("init",),
    driver_image=ImageDefaults(
        registry="harbor.k8s.rebellions.in", repository="rebellions-sw/driver", tag="3.0.0"
    ),
    startup_probe_script="startup-probe.sh",
)

PROFILES: Final[Mapping[str, VendorProfile]] = MappingProxyType({RBLN.name: RBLN})
