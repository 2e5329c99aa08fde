"""Config of how nodes are found, chosen and waited for, and of what watches them."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from rbln_stack.config.base import (
    Annotations,
    HostPath,
    Labels,
    NamespaceName,
    Section,
)
from rbln_stack.config.images import MAP_TAG, TEXT_TAG
from rbln_stack.config.scheduling import Toleration

OptionalLabelKey = Annotated[
    str,
    Field(
        pattern=r"^(([a-z0-9][-a-z0-9.]*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$",
    ),
]


class DiscoverySection(Section):
    """How the accelerator nodes are found."""

    source: Literal["live", "snapshot"] = "live"
    """Read the cluster, or a file with what `kubectl get nodes -o json` printed."""
    snapshot: str | None = None
    """Path of that file, relative to the project directory."""
    on_missing: Literal["fail", "warn"] = "fail"
    """What to do when nodes, NFD or NFD's labels are missing."""
    timeout_seconds: Annotated[float, Field(gt=0, le=600)] = 30
    """Longest wait for one answer of the API server."""

    @model_validator(mode="after")
    def _snapshot_has_path(self) -> Self:
        if self.source == "snapshot" and not self.snapshot:
            msg = "source snapshot needs snapshot, the path of the file"
            raise ValueError(msg)
        if self.source == "live" and self.snapshot:
            msg = "snapshot is only read with source snapshot; set source or remove snapshot"
            raise ValueError(msg)
        return self


class ManagedNodesSection(Section):
    """Which accelerator nodes the stack serves, and the taints that its operands accept there."""

    label_key: OptionalLabelKey = ""
    """Label by which a node is taken in (true) or left out (false); empty means the vendor's."""
    enabled_by_default: bool = True
    """Whether nodes without that label are served."""
    present_label_key: OptionalLabelKey = ""
    """Label that tells of an accelerator; empty means those that NFD writes."""
    node_selector: Labels = Field(default_factory=dict)
    """Labels a node must have to be served at all."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints that every operand accepts, added to its own."""


class RequiredPools(Section):
    """Pools whose nodes must all be ready."""

    pools: Annotated[tuple[str, ...], Field(min_length=1)]
    """Names of the pools."""


def _kind(value: object) -> str:
    return MAP_TAG if isinstance(value, dict | RequiredPools) else TEXT_TAG


Share = Annotated[str, Field(pattern=r"^(all|none|([1-9][0-9]?|100)%)$")]


class ReadinessSection(Section):
    """When a run counts as done."""

    require: Annotated[
        Annotated[Share, Tag(TEXT_TAG)] | Annotated[RequiredPools, Tag(MAP_TAG)],
        Discriminator(_kind),
    ] = "all"
    """Nodes to wait for: all, none, a share such as 95%, or a map with the names of pools."""
    timeout_seconds: Annotated[int, Field(ge=1, le=86400)] = 900
    """Longest wait for them."""

    @property
    def awaited(self) -> bool:
        """Whether the run waits at all."""
        return self.require != "none"

    @property
    def percent(self) -> int:
        """How much of the nodes it waits for must be ready."""
        if isinstance(self.require, RequiredPools) or self.require == "all":
            return 100
        return 0 if self.require == "none" else int(self.require.removesuffix("%"))

    @property
    def pools(self) -> tuple[str, ...]:
        """Pools whose nodes count; none named means the nodes of all pools."""
        return self.require.pools if isinstance(self.require, RequiredPools) else ()


class NfdSection(Section):
    """Node feature discovery."""

    enabled: bool | None = None
    """Whether the stack brings NFD; left out, as the vendor's chart does."""


class ServiceMonitorSection(Section):
    """How the Prometheus operator finds the exporter."""

    enabled: bool = True
    """Whether a ServiceMonitor is made."""
    labels: Labels = Field(default_factory=dict)
    """Its labels, by which a Prometheus chooses it."""
    annotations: Annotations = Field(default_factory=dict)
    """Its annotations."""
    interval_seconds: Annotated[int, Field(ge=1, le=3600)] = 30
    """Pause between two scrapes."""


class MonitoringSection(Section):
    """Dashboards, alert rules and the exporter's ServiceMonitor."""

    enabled: bool = True
    """Whether any of them is made."""
    service_monitor: ServiceMonitorSection = ServiceMonitorSection()
    """The exporter's ServiceMonitor."""
    dashboards: bool = True
    """Whether dashboards are made, as ConfigMaps that Grafana's sidecar loads."""
    alerts: bool = True
    """Whether alert rules are made."""
    namespace: NamespaceName | None = None
    """Namespace of dashboards and rules; left out, the stack's."""


class BootstrapValidatorSection(Section):
    """Further checks of the validator."""

    enable_nvidia_fs_validation: bool = Field(default=False, alias="enableNvidiaFSValidation")
    """Whether the validator checks nvidia-fs."""
    enable_gdr_copy_validation: bool = Field(default=False, alias="enableGDRCopyValidation")
    """Whether the validator checks gdrcopy."""


class BootstrapGfdSection(Section):
    """Feature discovery in the words of the bootstrap module."""

    enabled: bool = True
    """Whether feature discovery is made; its own section can switch it off as well."""
    sleep_interval: Annotated[str, Field(pattern=r"^([0-9]+(ms|s|m|h))+$")] = "60s"
    """Pause between two rounds."""
    features_dir: HostPath = "/etc/kubernetes/node-feature-discovery/features.d"
    """Where feature files are written."""
    fail_on_init_error: bool = True
    """Whether the pod ends when the accelerator library cannot be used, instead of waiting."""
    host_sys_path: HostPath = "/sys"
    """The host's /sys as seen in the pod."""


class BootstrapDcgmExporterSection(Section):
    """The exporter in the words of the bootstrap module."""

    enabled: bool = True
    """Whether the exporter is made; its own section can switch it off as well."""


class BootstrapSection(Section):
    """Settings of the first workloads on a node."""

    validator: BootstrapValidatorSection = BootstrapValidatorSection()
    """Further checks of the validator."""
    gfd: BootstrapGfdSection = BootstrapGfdSection()
    """Feature discovery."""
    dcgm_exporter: BootstrapDcgmExporterSection = BootstrapDcgmExporterSection()
    """The exporter."""
