"""The base of all config sections and the value types that several sections share.

Fields are named like the Kubernetes objects they end up in, so that a dumped section is the typed
dict a pod builder needs; users write the camelCase aliases.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)
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


_QUANTITY = r"^[0-9.]+[A-Za-z0-9]*$"
Quantity = Annotated[
    str,
    BeforeValidator(_as_text),
    Field(pattern=_QUANTITY),
    WithJsonSchema({"type": ["string", "number"], "pattern": _QUANTITY}),
]
ObjectName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
NamespaceName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
LabelKey = Annotated[
    str, Field(pattern=r"^([a-z0-9][-a-z0-9.]*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
]
LabelValue = Annotated[
    str, Field(pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$", max_length=63)
]
HostPath = Annotated[str, Field(pattern=r"^/[^\s:]*$")]
Port = Annotated[int, Field(ge=1, le=65535)]
Seconds = Annotated[int, Field(ge=0, le=86400)]
Labels = dict[LabelKey, LabelValue]
Annotations = dict[LabelKey, str]


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


def _named_once(variables: tuple[EnvVar, ...]) -> tuple[EnvVar, ...]:
    names = [variable.name for variable in variables]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        msg = f"{', '.join(twice)} is set more than once; keep one"
        raise ValueError(msg)
    return variables


EnvVars = Annotated[tuple[EnvVar, ...], AfterValidator(_named_once)]


class Resources(Section):
    """What a container asks for and may use."""

    requests: dict[str, Quantity] | None = None
    """Amounts the scheduler sets aside."""
    limits: dict[str, Quantity] | None = None
    """Amounts the container may not exceed."""
