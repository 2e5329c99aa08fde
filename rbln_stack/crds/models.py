"""Shapes of the custom resources, from which the definitions (`*.yaml`) are generated.

Read by `generate` and by tests. No agent imports these: agents work on the JSON that the API
server has already checked against them. Fields of the vendor's own definitions that this stack
never writes are not declared; `open_` keeps them instead of dropping them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

if TYPE_CHECKING:
    from pydantic.config import JsonDict

# What a schema says of an object whose unknown fields the API server must not drop.
PRESERVE: Final[JsonDict] = {"x-kubernetes-preserve-unknown-fields": True}

Free = Annotated[dict[str, Any], Field(json_schema_extra=PRESERVE)]
Labels = dict[str, str]
Count = Annotated[int, Field(ge=0)]
Percentage = Annotated[str, Field(pattern=r"^(100|[1-9]?[0-9])%$")]


class Shape(BaseModel):
    """An object with exactly the declared fields."""

    model_config = ConfigDict(
        extra="forbid", alias_generator=to_camel, use_attribute_docstrings=True, frozen=True
    )


class OpenShape(Shape):
    """An object that may hold more than is declared."""

    model_config = ConfigDict(extra="allow", json_schema_extra=PRESERVE)


class Condition(Shape):
    """The common form of a condition."""

    type: str
    """What the condition is about."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    reason: str
    """The cause as one word, for programs."""
    message: str = ""
    """The cause as a sentence, for people."""
    last_transition_time: Annotated[str, Field(json_schema_extra={"format": "date-time"})]
    """When `status` last changed."""
    observed_generation: Count | None = None
    """The generation of the object this was found for."""


Conditions = Annotated[
    list[Condition],
    Field(
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        }
    ),
]


class Component(OpenShape):
    """One operand as the vendor's policy describes it."""

    enabled: bool = True
    """Whether the operand is part of the stack."""
    registry: str | None = None
    """Registry of the image."""
    image: str | None = None
    """Repository of the image."""
    version: str | None = None
    """Tag or digest of the image."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """When the image is pulled."""
    image_pull_secrets: list[str] | None = None
    """Names of pull secrets in the stack's namespace."""
    resources: Free | None = None
    """Requests and limits."""
    labels: Labels | None = None
    """Labels of the DaemonSet."""
    annotations: Labels | None = None
    """Annotations of the DaemonSet."""
    tolerations: list[Free] | None = None
    """Taints the pods bear."""
    priority_class_name: str | None = None
    """Priority of the pods."""


class Resource(OpenShape):
    """One extended resource that a device plugin offers."""

    resource_name: str
    """The name after the slash."""
    resource_prefix: str = "rebellions.ai"
    """The domain before the slash."""
    product_card_names: list[str] | None = None
    """Cards that count as this resource."""


class DevicePlugin(Component):
    """The device plugin."""

    resource_list: list[Resource] | None = None
    """The resources it offers; a node is ready when one of them is allocatable."""


class DriverPolicy(OpenShape):
    """What holds for all drivers of the cluster."""

    enabled: bool = True
    """Whether nodes get a driver from the stack; false where all hosts bring their own."""
    upgrade_policy: Free | None = None
    """How a new driver reaches nodes in use."""


class Readiness(Shape):
    """What has to be ready before the policy is."""

    require: Literal["all", "none"] | Percentage = "all"
    """All covered nodes, a percentage of them, or none: the status lists the rest either way."""
    pools: list[str] | None = None
    """Only nodes of these driver pools count; all nodes when left out."""


class ClusterPolicySpec(OpenShape):
    """What the stack was told; written by the program, read by the node-state agent."""

    name: str | None = None
    """What the names of operands begin with."""
    namespace: str | None = None
    """Where the operands are."""
    workload_type: Literal["container", "vm-passthrough"] | None = None
    """The workload of nodes that carry no workload label."""
    daemonsets: Free | None = None
    """What all DaemonSets share."""
    driver: DriverPolicy | None = None
    """Driver settings for the whole cluster."""
    validator: Component | None = None
    """The validator."""
    container_toolkit: Component | None = None
    """The container toolkit."""
    device_plugin: DevicePlugin | None = None
    """The device plugin."""
    npu_feature_discovery: Component | None = None
    """Feature discovery."""
    rbln_daemon: Component | None = None
    """The telemetry daemon."""
    metrics_exporter: Component | None = None
    """The metrics exporter."""
    readiness: Readiness | None = None
    """When the policy counts as ready."""


class UnreadyNode(Shape):
    """A covered node on which something is missing."""

    name: str
    """The node."""
    pool: str = ""
    """Its driver pool; empty where the host brings the driver."""
    component: str
    """The first operand that is not ready there."""
    reason: str
    """What is missing."""


class UncoveredNode(Shape):
    """An accelerator node that no driver pool takes in."""

    name: str
    """The node."""
    reason: str
    """Why no pool covers it."""


class ComponentState(Shape):
    """How one operand fares over all nodes."""

    name: str
    """The operand."""
    namespace: str = ""
    """Where its DaemonSets are."""
    state: Literal["ready", "notReady"]
    """Whether every DaemonSet of it has settled with all pods ready."""
    message: str = ""
    """What is not ready."""


class DeclarationStatus(OpenShape):
    """What both declarations report."""

    observed_generation: Count | None = None
    """The generation of the declaration this was found for."""
    phase: Literal["Ready", "NotReady"] | None = None
    """The state as `kubectl get` shows it."""
    state: Literal["ready", "notReady"] | None = None
    """The state in the vendor's own spelling."""
    nodes: str | None = None
    """Ready and covered nodes as text."""
    nodes_ready: Count | None = None
    """Covered nodes on which nothing is missing."""
    nodes_total: Count | None = None
    """Accelerator nodes that are covered and have not opted out."""
    first_unready: str | None = None
    """The first operand, in the order of start, that is not ready; empty when all are."""
    unready_nodes: list[UnreadyNode] | None = None
    """Covered nodes on which something is missing, by name; the list is cut at 100."""
    conditions: Conditions | None = None
    """Ready, and what it rests on."""


class ClusterPolicyStatus(DeclarationStatus):
    """Written by the node-state agent."""

    components: list[ComponentState] | None = None
    """The operands in the order of start."""
    uncovered_nodes: list[UncoveredNode] | None = None
    """Accelerator nodes outside of every pool, by name; the list is cut at 100."""


class DriverManager(OpenShape):
    """The image that prepares a node for a new driver."""

    registry: str | None = None
    """Registry of the image."""
    image: str | None = None
    """Repository of the image."""
    version: str | None = None
    """Tag of the image."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """When the image is pulled."""


class DriverSpec(OpenShape):
    """One driver declaration; the program makes its DaemonSets, one per pool."""

    registry: str | None = None
    """Registry of the driver image."""
    image: str | None = None
    """Repository of the driver image."""
    version: str | None = None
    """Version of the driver."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """When the image is pulled."""
    image_pull_secrets: list[str] | None = None
    """Names of pull secrets in the stack's namespace."""
    manager: DriverManager | None = None
    """The driver manager."""
    node_selector: Annotated[
        Labels | None, Field(json_schema_extra={"x-kubernetes-map-type": "atomic"})
    ] = None
    """Nodes that get this driver."""
    tolerations: list[Free] | None = None
    """Taints the driver pods bear."""
    labels: Labels | None = None
    """Labels of the DaemonSets."""
    annotations: Labels | None = None
    """Annotations of the DaemonSets."""
    priority_class_name: str | None = None
    """Priority of the driver pods."""
    resources: Free | None = None
    """Requests and limits of the driver container."""
    env: list[Free] | None = None
    """Environment of the driver container."""


class NodeStateSpec(OpenShape):
    """Nothing is asked of a node; the object is named after it."""

    node_name: str | None = None
    """The node."""


class NodeDevice(OpenShape):
    """One accelerator of a node."""

    address: str
    """PCI address."""
    product: str = ""
    """Product name."""
    state: str = ""
    """State that the driver reports."""


class NodeStateStatus(OpenShape):
    """What is known of one accelerator node."""

    observed_generation: Count | None = None
    """The generation of the object this was found for."""
    phase: Literal["Disabled", "Validating", "ValidatingFailed", "Monitoring", "Ready"] | None = (
        None
    )
    """How far the node has come."""
    ready: bool | None = None
    """Whether the node can be handed to workloads."""
    reason: str | None = None
    """What is missing."""
    pool: str | None = None
    """The driver pool."""
    devices: list[NodeDevice] | None = None
    """The node's accelerators."""
    conditions: Conditions | None = None
    """DriverMissing, ToolkitMissing, MonitoringMissing, GFDReady, ReadyForPooling."""
