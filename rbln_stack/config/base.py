"""The base of all config sections and the value types that several sections share.

Fields are named like the Kubernetes objects they end up in, so that a dumped section is the typed
dict a pod builder needs; users write the camelCase aliases.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel


class Section(BaseModel):
    """A closed part of the config tree: unknown keys are errors, values never change."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
    )

    def plain(self) -> dict[str, Any]:
        """What was set, with Python key names and without the empty rest."""
        return self.model_dump(exclude_none=True)


def _as_text(value: object) -> object:
    """Quantities are often written as bare numbers; only they may be."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value


PullPolicy = Literal["Always", "IfNotPresent", "Never"]
Quantity = Annotated[str, BeforeValidator(_as_text), Field(pattern=r"^[0-9.]+[A-Za-z0-9]*$")]
ObjectName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
NamespaceName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
LabelKey = Annotated[
    str, Field(pattern=r"^([a-z0-9][-a-z0-9.]*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
]
LabelValue = Annotated[
    str, Field(pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$", max_length=63)
]
Labels = dict[LabelKey, LabelValue]
Annotations = dict[LabelKey, str]


class Toleration(Section):
    """A taint that a pod accepts."""

    key: str | None = None
    """Taint key; left out, every key is accepted."""
    operator: Literal["Exists", "Equal"] | None = None
    """How key and value are compared."""
    value: str | None = None
    """Taint value, for the operator Equal."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Taint effect; left out, every effect is accepted."""
    toleration_seconds: int | None = None
    """How long a NoExecute taint is accepted."""

    @model_validator(mode="after")
    def _key_or_exists(self) -> Self:
        if not self.key and self.operator != "Exists":
            msg = "a toleration without key must have operator Exists, or it accepts nothing"
            raise ValueError(msg)
        return self


class KeyRef(Section):
    """A key of a Secret or ConfigMap."""

    name: ObjectName
    """Name of the object."""
    key: str
    """Key inside of it."""
    optional: bool | None = None
    """Whether the pod may start without it."""


class FieldRef(Section):
    """A field of the pod."""

    field_path: str
    """Path of the field."""
    api_version: str | None = None
    """API version the path is written for."""


class ResourceFieldRef(Section):
    """A resource amount of the container."""

    resource: str
    """For example limits.cpu."""
    container_name: str | None = None
    """Container, if not this one."""
    divisor: Quantity | None = None
    """Unit of the value."""


class EnvSource(Section):
    """Where the value of a variable comes from."""

    secret_key_ref: KeyRef | None = None
    """A key of a Secret."""
    config_map_key_ref: KeyRef | None = None
    """A key of a ConfigMap."""
    field_ref: FieldRef | None = None
    """A field of the pod."""
    resource_field_ref: ResourceFieldRef | None = None
    """A resource amount of the container."""

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if len(self.plain()) != 1:
            msg = (
                "valueFrom needs exactly one of secretKeyRef, configMapKeyRef, fieldRef, "
                "resourceFieldRef"
            )
            raise ValueError(msg)
        return self


class EnvVar(Section):
    """One environment variable of a container."""

    name: Annotated[str, Field(pattern=r"^[-._a-zA-Z][-._a-zA-Z0-9]*$")]
    """Name of the variable."""
    value: str | None = None
    """Its value; numbers must be quoted."""
    value_from: EnvSource | None = None
    """Where its value comes from."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.value is not None and self.value_from is not None:
            msg = f"variable {self.name} has both value and valueFrom; keep one"
            raise ValueError(msg)
        return self


class Resources(Section):
    """What a container asks for and may use."""

    requests: dict[str, Quantity] | None = None
    """Amounts the scheduler sets aside."""
    limits: dict[str, Quantity] | None = None
    """Amounts the container may not exceed."""


class Image(Section):
    """An image in the chart's notation `registry`, `repository`, `tag`, `pullPolicy`."""

    registry: (
        Annotated[str, Field(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9.:/]*[A-Za-z0-9])?$")] | None
    ) = None
    """Registry host, from the vendor profile if left out."""
    repository: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9._/]*[a-z0-9])?$")] | None = None
    """Path below the registry, from the vendor profile if left out."""
    tag: (
        Annotated[str, Field(pattern=r"^([A-Za-z0-9_][-A-Za-z0-9_.]{0,127}|sha256:[0-9a-f]{64})$")]
        | None
    ) = None
    """Version, or a digest `sha256:…`; always a string, so `3.0` must be quoted."""
    pull_policy: PullPolicy = "IfNotPresent"
    """When the kubelet pulls the image."""
