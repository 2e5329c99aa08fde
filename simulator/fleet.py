"""The fleet file: which kinds of node the embedded cluster is made of.

Called before any node starts. Everything wrong with a file is reported at once, with the place
and what is allowed there.
"""

from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from simulator.spec import FAULTS, MAX_COUNT, RBLN, Hardware, NodeSpec, hardware

__all__ = ["Fleet", "FleetError", "Hardware", "NodeKind", "NodeSpec", "hardware", "load_fleet"]

DEFAULT_FLEET = Path(__file__).with_name("fleet.yaml")

# These become label values and lines of os-release, where no character may need quoting.
_LabelText = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")]
_PlainText = Annotated[str, Field(pattern=r"^[A-Za-z0-9][-A-Za-z0-9 ._()/+]*$")]


class FleetError(ValueError):
    """A fleet file that cannot be used."""

    def __init__(self, source: Path, problems: list[str]) -> None:
        super().__init__("\n".join(f"{source}: {problem}" for problem in problems))
        self.problems = tuple(problems)


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class NodeKind(_Closed):
    """One entry of the fleet file."""

    profile: str = RBLN.profile
    product: str
    count: int = Field(ge=1, le=MAX_COUNT, strict=True)
    os_id: _LabelText
    os_version: _LabelText
    os_name: _PlainText
    kernel: _LabelText
    faults: frozenset[str] = frozenset()
    host_driver: _LabelText | None = None

    @field_validator("profile")
    @classmethod
    def _profile_is_known(cls, value: str) -> str:
        return hardware(value).profile

    @field_validator("product")
    @classmethod
    def _product_is_known(cls, value: str, info: ValidationInfo) -> str:
        # A refused profile is not in the data and has its own message already.
        profile = info.data.get("profile")
        if profile is not None and value not in (cards := hardware(profile).products):
            raise ValueError(f"unknown card {value!r}; allowed: {', '.join(cards)}")
        return value

    @field_validator("faults")
    @classmethod
    def _faults_are_known(cls, value: frozenset[str]) -> frozenset[str]:
        if unknown := sorted(value - set(FAULTS)):
            raise ValueError(f"unknown fault {', '.join(unknown)}; allowed: {', '.join(FAULTS)}")
        return value


class Fleet(_Closed):
    """The node kinds, in the order in which nodes get them."""

    nodes: tuple[NodeKind, ...] = Field(min_length=1)

    def node(self, index: int, name: str) -> NodeSpec:
        """Return node number `index`; the kinds repeat when there are more nodes than kinds."""
        kind = self.nodes[index % len(self.nodes)]
        return NodeSpec(name=name, **kind.model_dump())


def load_fleet(path: Path | None = None) -> Fleet:
    """Read a fleet file, or the packaged one."""
    source = path or DEFAULT_FLEET
    try:
        raw = yaml.safe_load(source.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise FleetError(source, [f"cannot be read: {error}"]) from error
    try:
        return Fleet.model_validate(raw)
    except ValidationError as error:
        raise FleetError(source, [_problem(item) for item in error.errors()]) from error


def _problem(item: Any) -> str:  # noqa: ANN401 - pydantic's own typed dict has no stable name
    """Form one line: where, what, and what is allowed."""
    where = ".".join(str(part) for part in item["loc"]) or "top level"
    if item["type"] == "extra_forbidden":
        model = Fleet if len(item["loc"]) == 1 else NodeKind
        return f"{where}: unknown key; allowed: {', '.join(model.model_fields)}"
    return f"{where}: {item['msg'].removeprefix('Value error, ')} (found {item['input']!r})"
