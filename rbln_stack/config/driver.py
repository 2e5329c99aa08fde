"""The driver's config: image, pools, driver manager, upgrades; one section per declaration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Self

from pydantic import AliasChoices, Field, model_validator

from rbln_stack.config.base import (
    Annotations,
    EnvVars,
    Labels,
    NamespaceName,
    ObjectName,
    Resources,
    Seconds,
    Section,
)
from rbln_stack.config.images import Image, VersionedImage
from rbln_stack.config.scheduling import NodeAffinity, Toleration

if TYPE_CHECKING:
    from rbln_stack.config.images import ImageRef

PodSelector = Annotated[str, Field(pattern=r"^[-A-Za-z0-9_./=!,() ]*$")]


class ManagerSection(VersionedImage):
    """The driver manager, which runs before the driver and clears the node for it."""

    image_pull_secrets: tuple[ObjectName, ...] = ()
    """Names of pull secrets, added to those of the driver."""
    env: EnvVars = ()
    """Environment of the driver manager alone."""


class PodDeletionSection(Section):
    """How pods that hold devices are ended before an upgrade."""

    force: bool = False
    """Whether pods without a controller may be ended."""
    timeout_seconds: Seconds = 300
    """Longest wait for them to end; 0 means no limit."""


class WaitForCompletionSection(Section):
    """Which jobs an upgrade waits for."""

    pod_selector: PodSelector = ""
    """Label selector of pods that must end by themselves first; empty means none."""
    timeout_seconds: Seconds = 0
    """Longest wait for them; 0 means no limit."""


class DrainSection(Section):
    """Whether the whole node is drained before an upgrade."""

    enable: bool = False
    """Whether to drain."""
    force: bool = False
    """Whether pods without a controller may be ended."""
    delete_empty_dir_data: bool = False
    """Whether pods with emptyDir volumes may be ended."""
    pod_selector: PodSelector = ""
    """Label selector of the pods to drain; empty means all."""
    timeout_seconds: Seconds = 300
    """Longest wait for the drain; 0 means no limit."""


class RebootSection(Section):
    """Whether a node is rebooted by an upgrade."""

    enable: bool = False
    """Whether to reboot."""
    reboot_timeout_seconds: Seconds = 0
    """Longest wait for the node to return; 0 means no limit."""
    image: VersionedImage = VersionedImage()
    """Image of the pod that reboots the node."""


class UpgradePolicySection(Section):
    """How a changed driver reaches nodes that run an older one."""

    auto_upgrade: bool = False
    """Whether nodes are upgraded without further ado; off, a driver pod changes when it dies."""
    max_parallel_upgrades: Annotated[int, Field(ge=0)] = 1
    """How many nodes at a time; 0 means no limit."""
    pod_deletion: PodDeletionSection = Field(
        default=PodDeletionSection(),
        validation_alias=AliasChoices("podDeletion", "npuPodDeletion"),
    )
    """How pods that hold devices are ended; the chart's name npuPodDeletion is taken as well."""
    wait_for_completion: WaitForCompletionSection = WaitForCompletionSection()
    """Which jobs to wait for."""
    drain: DrainSection = DrainSection()
    """Whether to drain the node."""
    reboot: RebootSection = RebootSection()
    """Whether to reboot the node."""


class DriverSpec(Section):
    """One driver declaration: a DaemonSet per pool of nodes with the same OS and kernel."""

    enabled: bool = True
    """Whether the declaration and its pools are made."""
    image: Image = Image()
    """The driver image."""
    use_precompiled: bool = False
    """Complete the tag with kernel and OS of the pool, for images built per kernel."""
    driver_type: Literal["gpu", "vgpu", "vgpu-host-manager"] | None = None
    """Kind of driver, for vendors that have several."""
    kernel_module_type: Literal["auto", "open", "proprietary"] | None = None
    """Kind of kernel module, for vendors that have several."""
    catch_all: bool = False
    """Serve nodes whose kernel no pool names yet by one more DaemonSet."""
    empty_pools: Literal["keep", "prune"] = "keep"
    """What becomes of a pool's DaemonSet when its last node is gone."""
    retain_pools: tuple[str, ...] = ()
    """Names of pools that stay in any case."""
    image_pull_secrets: tuple[ObjectName, ...] = ()
    """Names of pull secrets in the stack's namespace."""
    node_selector: Labels = Field(default_factory=dict)
    """Labels a node must have, besides its accelerator, to be in any pool."""
    node_affinity: NodeAffinity = NodeAffinity()
    """Which nodes the driver pods may or should run on, besides those conditions."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints the driver pods accept."""
    labels: Labels = Field(default_factory=dict)
    """Extra labels of the driver pods."""
    annotations: Annotations = Field(default_factory=dict)
    """Extra annotations of the driver pods."""
    priority_class_name: str = ""
    """Priority class of the driver pods; empty leaves it out."""
    resources: Resources = Resources()
    """Resources of the driver container."""
    args: tuple[str, ...] = ()
    """Arguments of the driver container; empty means the vendor's own."""
    env: EnvVars = ()
    """Environment of the driver container."""
    manager: ManagerSection = ManagerSection()
    """The driver manager."""

    @property
    def image_ref(self) -> ImageRef:
        """The driver image; with `use_precompiled` the plan completes its tag."""
        return self.image.image_ref

    @property
    def all_pull_secrets(self) -> tuple[str, ...]:
        """Pull secrets of driver and driver manager, each once (S0-83)."""
        return tuple(dict.fromkeys((*self.image_pull_secrets, *self.manager.image_pull_secrets)))

    @model_validator(mode="after")
    def _precompiled_needs_tag(self) -> Self:
        if self.use_precompiled and "sha256:" in self.image.tag:
            msg = (
                "usePrecompiled completes image.tag with kernel and OS, so image.tag must be a "
                "version and not a digest"
            )
            raise ValueError(msg)
        if self.use_precompiled and self.catch_all:
            msg = (
                "catchAll serves kernels that no pool names, and usePrecompiled needs the name of "
                "each; keep one"
            )
            raise ValueError(msg)
        return self


class DriverSection(DriverSpec):
    """The driver, and how it is upgraded on all nodes."""

    upgrade_policy: UpgradePolicySection = UpgradePolicySection()
    """How a changed driver reaches nodes, for all driver declarations."""


class NamedDriver(NamedTuple):
    """A driver declaration with the name of its object."""

    name: str
    section: DriverSpec


DriverName = NamespaceName
