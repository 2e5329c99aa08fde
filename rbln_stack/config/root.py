"""The whole config tree of a stack."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AliasChoices, Field

from rbln_stack.config.base import NamespaceName, Section
from rbln_stack.config.driver import DriverName, DriverSection, DriverSpec, NamedDriver
from rbln_stack.config.nodes import (
    BootstrapSection,
    DiscoverySection,
    ManagedNodesSection,
    MonitoringSection,
    NfdSection,
    ReadinessSection,
)
from rbln_stack.config.operands import (
    AgentsSection,
    ContainerToolkitSection,
    DaemonSetsSection,
    DevicePluginSection,
    DraKubeletPluginSection,
    FeatureDiscoverySection,
    MetricsExporterSection,
    RblnDaemonSection,
    SandboxDevicePluginSection,
    ValidatorSection,
    VfioManagerSection,
)
from rbln_stack.profiles import PROFILES

__all__ = ["DiscoverySection", "RootConfig"]

BaseName = Annotated[str, Field(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=30)]
ReleaseName = Annotated[str, Field(pattern=r"^([a-z]([-a-z0-9]*[a-z0-9])?)?$", max_length=53)]


class RootConfig(Section):
    """Everything below `rbln-stack:` in a stack file."""

    profile: Literal["rbln"] = "rbln"
    """Vendor profile."""
    name: BaseName = "rbln"
    """Base name: the objects of an operand are called `<name>-<operand>`."""
    release_name: ReleaseName = ""
    """Value of the label app.kubernetes.io/instance; empty means the name of the vendor's chart."""
    namespace: NamespaceName | None = None
    """Namespace of all operands, from the vendor profile if left out."""
    kubeconfig: str | None = None
    """Path of a kubeconfig file; left out, KUBECONFIG, ~/.kube/config or the pod's own account."""
    context: str | None = None
    """Context in the kubeconfig; left out, its current one."""
    workload_type: Literal["container", "vm-passthrough"] = "container"
    """What nodes without a workload label are for."""
    source: Literal["vendor", "agents"] = "vendor"
    """Whose programs operands run: the vendor's images, or the agents of this project."""
    agents: AgentsSection = AgentsSection()
    """The agents' image."""
    discovery: DiscoverySection = DiscoverySection()
    """How the accelerator nodes are found."""
    nfd: NfdSection = NfdSection()
    """Node feature discovery."""
    managed_nodes: ManagedNodesSection = ManagedNodesSection()
    """Which accelerator nodes are served."""
    readiness: ReadinessSection = ReadinessSection()
    """When a run counts as done."""
    daemonsets: DaemonSetsSection = DaemonSetsSection()
    """What every operand gets."""
    driver: DriverSection = DriverSection()
    """The driver."""
    drivers: dict[DriverName, DriverSpec] = Field(default_factory=dict)
    """Further drivers by name, each for its own nodes; what one leaves out is as in driver."""
    validator: ValidatorSection = ValidatorSection()
    """The validator."""
    container_toolkit: ContainerToolkitSection = Field(
        default=ContainerToolkitSection(),
        validation_alias=AliasChoices("containerToolkit", "toolkit"),
    )
    """The container toolkit; the name toolkit is taken as well."""
    device_plugin: DevicePluginSection = DevicePluginSection()
    """The device plugin."""
    dra_kubelet_plugin: DraKubeletPluginSection = DraKubeletPluginSection()
    """The DRA plugin."""
    npu_feature_discovery: FeatureDiscoverySection = FeatureDiscoverySection()
    """Feature discovery."""
    rbln_daemon: RblnDaemonSection = RblnDaemonSection()
    """The daemon that others ask about devices."""
    metrics_exporter: MetricsExporterSection = MetricsExporterSection()
    """The metrics exporter."""
    sandbox_device_plugin: SandboxDevicePluginSection = SandboxDevicePluginSection()
    """The device plugin for virtual machines."""
    vfio_manager: VfioManagerSection = VfioManagerSection()
    """The VFIO manager."""
    monitoring: MonitoringSection = MonitoringSection()
    """Dashboards, alert rules and ServiceMonitor."""
    bootstrap: BootstrapSection = BootstrapSection()
    """Settings of the first workloads on a node."""

    def driver_declarations(self) -> tuple[NamedDriver, ...]:
        """The drivers that are switched on, by name; the section `driver` comes first."""
        own = NamedDriver(PROFILES[self.profile].driver_name, self.driver)
        others = (NamedDriver(name, section) for name, section in sorted(self.drivers.items()))
        return tuple(named for named in (own, *others) if named.section.enabled)
