"""One config section per operand, and the section with what all operands share."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from rbln_stack.config.base import (
    Annotations,
    EnvVar,
    Image,
    Labels,
    ObjectName,
    Resources,
    Section,
    Toleration,
)


class DaemonSetsSection(Section):
    """What every operand gets unless its own section says otherwise."""

    tolerations: tuple[Toleration, ...] = ()
    """Taken by each operand whose own list is empty."""
    priority_class_name: str = ""
    """Taken by each operand whose own name is empty."""


class DriverSection(Section):
    """The driver: one DaemonSet per pool of nodes with the same OS, kernel and architecture."""

    enabled: bool = True
    """Whether driver pools are made."""
    image: Image = Image()
    """The driver image."""
    use_precompiled: bool = False
    """Complete the tag with kernel and OS of the pool, for images built per kernel."""
    image_pull_secrets: tuple[ObjectName, ...] = ()
    """Names of pull secrets in the stack's namespace."""
    node_selector: Labels = Field(default_factory=dict)
    """Labels a node must have, besides its accelerator, to be in any pool."""
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
    env: tuple[EnvVar, ...] = ()
    """Environment of the driver container."""

    @model_validator(mode="after")
    def _precompiled_needs_tag(self) -> Self:
        if self.use_precompiled and self.image.tag and self.image.tag.startswith("sha256:"):
            msg = (
                "usePrecompiled completes image.tag with kernel and OS, so image.tag must be a "
                "version and not a digest"
            )
            raise ValueError(msg)
        return self
