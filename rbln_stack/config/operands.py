"""One config section per operand besides the driver, and the section with what all share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field

from rbln_stack.config.base import (
    Annotations,
    EnvVars,
    HostPath,
    Labels,
    ObjectName,
    Port,
    Resources,
    Section,
)
from rbln_stack.config.driver import DriverSection
from rbln_stack.config.images import EitherImage, Image
from rbln_stack.config.scheduling import Affinity, Toleration

if TYPE_CHECKING:
    from rbln_stack.config.images import ImageRef
    from rbln_stack.profiles import ImageDefaults

__all__ = [
    "AgentsSection",
    "ComponentSection",
    "ContainerToolkitSection",
    "DaemonSetsSection",
    "DevicePluginSection",
    "DraKubeletPluginSection",
    "DriverSection",
    "FeatureDiscoverySection",
    "MetricsExporterSection",
    "RblnDaemonSection",
    "SandboxDevicePluginSection",
    "ValidatorSection",
    "VfioManagerSection",
]

ResourceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")]
ResourcePrefix = Annotated[str, Field(pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$")]


class DaemonSetsSection(Section):
    """What every operand gets unless its own section says otherwise."""

    labels: Labels = Field(default_factory=dict)
    """Extra labels of all pods; an operand's own label of the same key wins."""
    annotations: Annotations = Field(default_factory=dict)
    """Extra annotations of all pods; an operand's own annotation of the same key wins."""
    affinity: Affinity = Affinity()
    """Taken by each operand whose own affinity is empty."""
    tolerations: tuple[Toleration, ...] = ()
    """Taken by each operand whose own list is empty."""
    priority_class_name: str = ""
    """Taken by each operand whose own name is empty."""


class AgentsSection(Section):
    """The image with the agents of this project, which run where source is agents."""

    image: Image = Image()
    """The agents' image."""
    image_pull_secrets: tuple[ObjectName, ...] = ()
    """Names of pull secrets in the stack's namespace."""

    @property
    def image_ref(self) -> ImageRef:
        """The agents' image."""
        return self.image.image_ref

    def filled(self, default: ImageDefaults) -> Self:
        """With the default image where config names none."""
        return self.model_copy(update={"image": self.image.filled(default)})


class ComponentSection(Section):
    """What every operand besides driver and validator can be told."""

    enabled: bool = True
    """Whether the operand is made."""
    image: Image = Image()
    """Its image."""
    image_pull_secrets: tuple[ObjectName, ...] = ()
    """Names of pull secrets in the stack's namespace."""
    resources: Resources = Resources()
    """Resources of its main container."""
    labels: Labels = Field(default_factory=dict)
    """Extra labels of its pods."""
    annotations: Annotations = Field(default_factory=dict)
    """Extra annotations of its pods."""
    affinity: Affinity = Affinity()
    """Where its pods may or should run, besides the stack's own conditions."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints its pods accept; empty means those of daemonsets."""
    priority_class_name: str = ""
    """Priority class of its pods; empty means that of daemonsets."""

    @property
    def image_ref(self) -> ImageRef:
        """Its image."""
        return self.image.image_ref

    def filled(self, default: ImageDefaults) -> Self:
        """With the vendor's image where config names none."""
        return self.model_copy(update={"image": self.image.filled(default)})


class StepSection(Section):
    """One step of the validation."""

    env: EnvVars = ()
    """Environment of this step alone; a variable here wins over one of the same name above."""


class ValidatorSection(EitherImage):
    """The validator, which proves driver and runtime on each node."""

    enabled: bool = True
    """Whether the validator is made; also with the driver off, to accept one on the host."""
    image_pull_secrets: tuple[ObjectName, ...] = ()
    """Names of pull secrets in the stack's namespace."""
    resources: Resources = Resources()
    """Resources of each validation container."""
    args: tuple[str, ...] = ()
    """Added to the arguments of every step."""
    env: EnvVars = ()
    """Environment of every step."""
    plugin: StepSection = StepSection()
    """Validation of the device plugin."""
    toolkit: StepSection = StepSection()
    """Validation of the container toolkit."""
    driver: StepSection = StepSection()
    """Validation of the driver."""
    vfio_pci: StepSection = Field(default=StepSection(), alias="vfioPCI")
    """Validation of devices for virtual machines."""


class ContainerToolkitSection(ComponentSection):
    """The container toolkit, which lets the container runtime hand out devices."""

    mode: Literal["cdi", "runtime-config"] = "cdi"
    """Write CDI specs only, or change the runtime's own config as well."""
    runtime: Literal["auto", "containerd", "docker", "crio"] = "auto"
    """The container runtime; auto takes what each node reports."""
    args: tuple[str, ...] = ()
    """Arguments of the toolkit's daemon."""
    env: EnvVars = ()
    """Environment of the toolkit container."""


class ResourceEntry(Section):
    """One extended resource and the cards behind it."""

    resource_name: ResourceName
    """Name below the prefix."""
    resource_prefix: ResourcePrefix = ""
    """Domain of the resource; empty means the vendor's."""
    product_card_names: Annotated[tuple[str, ...], Field(min_length=1)]
    """Product names of the cards that are offered under this name."""


class DevicePluginSection(ComponentSection):
    """The device plugin, which offers devices to the kubelet."""

    host_bin_path: HostPath = "/usr/bin"
    """The host's directory with the driver's tools."""
    resource_list: tuple[ResourceEntry, ...] = ()
    """Resources to offer; empty means the vendor's."""


class DraKubeletPluginSection(ComponentSection):
    """The DRA plugin, which offers devices by resource claims."""

    enabled: bool = False
    """Whether the operand is made."""
    driver_name: ObjectName = "npu.rebellions.ai"
    """Name of the DRA driver and of its device class."""
    kubelet_registrar_directory_path: HostPath = "/var/lib/kubelet/plugins_registry"
    """Where the kubelet looks for plugins."""
    kubelet_plugins_directory_path: HostPath = "/var/lib/kubelet/plugins"
    """Where plugins keep their sockets."""
    healthcheck_port: Annotated[int, Field(ge=-1, le=65535)] = 51515
    """Port of the health service; 0 or less means none and no probe."""


class FeatureDiscoverySection(ComponentSection):
    """Feature discovery, which labels nodes with what their devices are."""


class RblnDaemonSection(ComponentSection):
    """The daemon that exporter and feature discovery ask about devices."""

    host_port: Port = 50051
    """Port on the node; the vendor's exporter and feature discovery know the default only."""
    args: tuple[str, ...] = ()
    """Arguments of the daemon."""
    env: EnvVars = ()
    """Environment of the daemon."""


class MetricsExporterSection(ComponentSection):
    """The metrics exporter."""

    port: Port = 9090
    """Port of the metrics."""


class VfioCheckerSection(EitherImage):
    """The container that waits until devices are bound to vfio-pci."""


class SandboxDevicePluginSection(ComponentSection):
    """The device plugin for virtual machines."""

    enabled: bool = False
    """Whether the operand is made."""
    vfio_checker: VfioCheckerSection = VfioCheckerSection()
    """The container that waits for the devices."""
    resource_list: tuple[ResourceEntry, ...] = ()
    """Resources to offer; empty means the vendor's."""


class VfioManagerSection(ComponentSection):
    """The VFIO manager, which gives devices to virtual machines."""

    enabled: bool = False
    """Whether the operand is made."""
