"""Writes `docs/config.md`, the table of all config keys, from the sections' own sentences.

    python -m rbln_stack.config.reference [--check]

With --check nothing is written, and a file that is not as it should be gives exit code 1.
"""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Union, get_args, get_origin

from rbln_stack.config.base import EnvVar, Resources, Section
from rbln_stack.config.driver import DriverSpec
from rbln_stack.config.images import Image
from rbln_stack.config.load import load, sections_in, spellings
from rbln_stack.config.operands import ResourceEntry
from rbln_stack.config.root import RootConfig
from rbln_stack.config.scheduling import Affinity, NodeAffinity, Toleration
from rbln_stack.config.written import write_or_check

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic.fields import FieldInfo

PATH: Final = Path(__file__).parents[2] / "docs" / "config.md"

# Described once, below the table, because many keys take them.
SHAPES: Final = (Image, EnvVar, Resources, Toleration, ResourceEntry)

_WORDS: Final[Mapping[object, str]] = {
    bool: "true or false",
    str: "text",
    int: "whole number",
    float: "number",
    NodeAffinity: "Kubernetes node affinity",
    Affinity: "Kubernetes affinity",
    DriverSpec: "maps like `driver`, without `upgradePolicy`",
}
_HEAD: Final = """\
# Config

Every key of a stack, below `rbln-stack:` in `Pulumi.<stack>.yaml` or bare in a values file.
Written by `python -m rbln_stack.config.reference`; change the sections in `rbln_stack/config/`.

Defaults are those of profile `rbln`. Maps are merged over the defaults, lists replace them. An
unknown key is an error that names the nearest known one; all errors come at once, before anything
is made. Text that looks like a number (`tag: "3.0"`) must be quoted. Secrets do not belong here:
put them into a Kubernetes Secret and name that. Editors check values files by
`rbln_stack/config.schema.json`.
"""
_TABLE: Final = "| key | type | default | meaning |\n|---|---|---|---|\n"


def text() -> str:
    """The file's content."""
    defaults = load({}).model_dump(by_alias=True, mode="json")
    alone, tables = [], []
    for name, field in RootConfig.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, Section):
            key = spellings(name, field)[0]
            rows = "".join(_rows(section, f"{key}.", defaults[key]))
            tables += [f"## `{key}`\n", f"{section.__doc__}\n", _TABLE + rows]
        else:
            alone.append(_own_row("", name, field, defaults))
    for shape in SHAPES:
        tables += [f"## {shape.__name__}\n", f"{shape.__doc__}\n", _TABLE + "".join(_shape(shape))]
    return "\n".join([_HEAD, "## The stack\n", _TABLE + "".join(alone), *tables])


def _rows(section: type[Section], path: str, defaults: Mapping[str, Any]) -> Iterator[str]:
    """A row per key, with those of the sections below in place of the section itself."""
    for name, field in section.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, Section) and _expanded(inner):
            key = spellings(name, field)[0]
            yield from _rows(inner, f"{path}{key}.", defaults[field.alias or key])
        else:
            yield _own_row(path, name, field, defaults)


def _own_row(path: str, name: str, field: FieldInfo, defaults: Mapping[str, Any]) -> str:
    key = spellings(name, field)[0]
    value = _default(defaults[field.alias or key])
    return _row(f"{path}{key}", _type(field.annotation), value, _said(field))


def _shape(shape: type[Section]) -> Iterator[str]:
    for name, field in shape.model_fields.items():
        key, inner = spellings(name, field)[0], field.annotation
        own = sections_in(inner)
        yield _row(key, _type(inner), "required" if field.is_required() else "", _said(field))
        for below in own:
            if below not in SHAPES:
                prefix = f"{key}[]" if get_origin(_bare(inner)) is tuple else key
                yield from (row.replace("| `", f"| `{prefix}.", 1) for row in _shape(below))


def _said(field: FieldInfo) -> str:
    return field.description or ""


def _expanded(section: type[Section]) -> bool:
    return section is Image or (section not in SHAPES and section not in _WORDS)


def _row(key: str, kind: str, default: str, meaning: str) -> str:
    cells = (f"`{key}`", kind, default, meaning)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _default(value: object) -> str:
    if value is None or value in ("", [], {}):
        return ""
    shown = value if isinstance(value, str) else json.dumps(_without_empty(value))
    return "" if shown in ("{}", "null") else f"`{shown}`"


def _without_empty(value: object) -> object:
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if item is not None}
    return value


def _bare(annotation: Any) -> Any:  # noqa: ANN401 - any type expression
    """The type without `Annotated` and `| None`."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    if get_origin(annotation) in {Union, types.UnionType}:
        members = [item for item in get_args(annotation) if item is not type(None)]
        if len(members) == 1:
            return _bare(members[0])
    return annotation


def _type(annotation: object) -> str:
    inner = _bare(annotation)
    origin, arguments = get_origin(inner), get_args(inner)
    if origin is Literal:
        return " or ".join(f"`{choice}`" for choice in arguments)
    if origin in {Union, types.UnionType}:
        return " or ".join(_type(argument) for argument in arguments)
    if origin in {tuple, dict}:
        many, item = ("list", arguments[0]) if origin is tuple else ("map", arguments[1])
        return f"{many} of {_type(item)}"
    if inner in SHAPES:
        return f"[{inner.__name__}](#{inner.__name__.lower()})"
    return _WORDS.get(inner, "map")


def main(arguments: list[str]) -> int:
    """Write the file, or with --check compare it."""
    return write_or_check(PATH, text(), "rbln_stack.config.reference", arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
