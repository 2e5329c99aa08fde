"""One frozen record per accelerator vendor; every difference between vendors is a value in here.

Read by config, plan and builders. A new vendor is a new constant, never a branch elsewhere (D7).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rbln_stack import contract
from rbln_stack.states import RBLN_STATES, State

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
    manager_image: ImageDefaults
    agents_image: ImageDefaults
    images: Mapping[str, ImageDefaults] = field(hash=False)
    commands: Mapping[str, tuple[str, ...]] = field(hash=False)
    driver_kind: str
    driver_api: str
    policy_kind: str
    policy_api: str
    policy_name: str
    object_prefix: str
    own_names: frozenset[str]
    states: tuple[State, ...]
    default_requests: Mapping[str, str] = field(hash=False)
    startup_probe_script: str
    toolkit_entrypoint_script: str

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
    def config_hash_annotation(self) -> str:
        """The key on pod templates that changes whenever the pods must be made anew."""
        return f"{self.label_domain}/config-hash"

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

    def object_name(self, operand: str) -> str:
        """What the operand's objects are called; the telemetry daemon has its own name."""
        return operand if operand in self.own_names else f"{self.object_prefix}-{operand}"


def _hub(repository: str, tag: str) -> ImageDefaults:
    return ImageDefaults(registry="docker.io", repository=f"rebellions/{repository}", tag=tag)


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
    manager_image=_hub("rbln-k8s-driver-manager", "latest"),
    # Built from images/agent and imported on the nodes; a registry of one's own is set in config.
    agents_image=ImageDefaults(registry="localhost", repository="rbln-agent", tag="0.1.0"),
    images=MappingProxyType(
        {
            contract.VALIDATOR_OPERAND: _hub("rbln-npu-operator-validator", "latest"),
            contract.TOOLKIT_OPERAND: _hub("rbln-container-toolkit", "latest"),
            contract.DEVICE_PLUGIN_OPERAND: _hub("k8s-device-plugin", "v0.3.7"),
            contract.FEATURE_DISCOVERY_OPERAND: _hub("rbln-npu-feature-discovery", "v0.2.0"),
            contract.DAEMON_OPERAND: ImageDefaults(
                registry="repo.rebellions.ai", repository="rebellions/rbln-daemon", tag="3.0.0"
            ),
            contract.EXPORTER_OPERAND: _hub("rbln-metrics-exporter", "v0.2.3"),
        }
    ),
    # Only where the vendor's image is not simply run as it is.
    commands=MappingProxyType(
        {
            contract.DRIVER_OPERAND: ("driver-manager",),
            contract.VALIDATOR_OPERAND: ("rbln-validator",),
            contract.TOOLKIT_OPERAND: ("/bin/entrypoint.sh",),
            contract.DAEMON_OPERAND: ("/opt/rebellions/bin/rbln_daemon",),
        }
    ),
    driver_kind="RBLNDriver",
    driver_api="rebellions.ai/v1alpha1",
    policy_kind="RBLNClusterPolicy",
    policy_api="rebellions.ai/v1beta1",
    policy_name="rbln-cluster-policy",
    object_prefix="rbln",
    own_names=frozenset({contract.DAEMON_OPERAND}),
    states=RBLN_STATES,
    default_requests=MappingProxyType({"cpu": "250m", "memory": "40Mi"}),
    startup_probe_script="startup-probe.sh",
    toolkit_entrypoint_script="toolkit-entrypoint.sh",
)

PROFILES: Final[Mapping[str, VendorProfile]] = MappingProxyType({RBLN.name: RBLN})
