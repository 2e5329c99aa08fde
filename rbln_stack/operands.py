"""What the plan says about each operand: frozen records of plain values.

Made by the plan, read by the pod builders and the components. Nothing in here decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from rbln_stack import contract

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rbln_stack.pools import Pool
    from rbln_stack.profiles import VendorProfile

Plain = dict[str, Any]
Source = Literal["vendor", "agents"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageUse:
    """An image, when it is pulled, and whose program is in it."""

    reference: str
    pull_policy: str
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class OperandPlan:
    """What all operands have in common; `operand` is the word in deploy labels."""

    operand: str
    name: str
    namespace: str
    profile: VendorProfile
    image: ImageUse
    default_workload: str
    present_labels: tuple[str, ...]
    awaited: bool
    managed: tuple[Plain, ...] = ()
    pull_secrets: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[Plain, ...] = ()
    resources: Plain = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    affinity: Plain = field(default_factory=dict)
    tolerations: tuple[Plain, ...] = ()
    priority_class: str = ""

    @property
    def object_labels(self) -> dict[str, str]:
        """Labels of every object that belongs to the operand."""
        return stack_labels(self.operand)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatorPlan(OperandPlan):
    """The validator; each check has variables of its own."""

    driver_env: tuple[Plain, ...] = ()
    toolkit_env: tuple[Plain, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingPlan(OperandPlan):
    """An operand whose init container, of another image, waits for a ready file."""

    waiting: ImageUse


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeGroup:
    """The toolkit's nodes of one runtime.

    Nodes carry no label that tells their runtime, so the group of the first runtime takes all but
    `others`, and every other group takes `only`, by host name.
    """

    name: str
    runtime: contract.Runtime
    only: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitPlan(WaitingPlan):
    """The container toolkit: one DaemonSet per runtime in use (X-13)."""

    mode: Literal["cdi", "runtime-config"]
    groups: tuple[RuntimeGroup, ...]
    validation_args: tuple[str, ...] = ()
    validation_env: tuple[Plain, ...] = ()

    @property
    def entrypoint_name(self) -> str:
        """Name of the ConfigMap with the script that starts the daemon."""
        return f"{self.name}-entrypoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePluginPlan(WaitingPlan):
    """The device plugin and what it offers."""

    config: str
    host_bin: str

    @property
    def config_name(self) -> str:
        """Name of the ConfigMap with the plugin's configuration."""
        return f"{self.name}-config"


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonPlan(WaitingPlan):
    """The telemetry daemon, or an operand that asks it: both need its port on the host."""

    host_port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExporterPlan(DaemonPlan):
    """The metrics exporter."""

    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatePlan(OperandPlan):
    """The controller that reports on nodes and on the stack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverPoolPlan:
    """One driver DaemonSet; `excluded_kernels` are set for the one that takes unknown kernels."""

    name: str
    pool: Pool
    image: str
    node_selector: Mapping[str, str]
    excluded_kernels: tuple[str, ...] = ()
    catch_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverPlan(OperandPlan):
    """One driver declaration: what its DaemonSets share, and one entry per DaemonSet."""

    manager: ImageUse
    manager_env: tuple[Plain, ...]
    pools: tuple[DriverPoolPlan, ...]

    @property
    def probe_name(self) -> str:
        """Name of the ConfigMap that holds the startup probe."""
        return f"{self.name}-startup-probe"

    @property
    def object_labels(self) -> dict[str, str]:
        """Labels of every object of the driver; the component's value is the vendor's contract."""
        return stack_labels(self.profile.driver_name)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusPlan:
    """The declaration that carries the stack's status, and what the run waits for."""

    name: str
    spec: Plain
    gate: bool
    timeout_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """An operand as outputs and the command line show it."""

    name: str
    enabled: bool
    image: str
    nodes: tuple[str, ...]


def stack_labels(component: str) -> dict[str, str]:
    """Labels of every object of the stack."""
    return {
        contract.PART_OF_LABEL: contract.STACK,
        contract.MANAGED_BY_LABEL: contract.STACK,
        contract.COMPONENT_LABEL: component,
    }
