"""Plain mapping → `RootConfig` with final values, or one error with everything that is wrong.

Called by the program with the stack's config map and by the command line with a parsed file. It
never touches the environment or the disk.
"""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Any, get_args

from pydantic import AliasChoices, ValidationError

from rbln_stack.config import checks
from rbln_stack.config.base import Section
from rbln_stack.config.images import UNION_TAGS
from rbln_stack.config.resolve import resolved
from rbln_stack.config.root import RootConfig
from rbln_stack.errors import ConfigError, Problem
from rbln_stack.profiles import PROFILES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

_SHOWN_CHARACTERS = 60

_EXPECTED = {
    "string_type": "a string is needed; numbers must be quoted",
    "bool_type": "true or false is needed",
    "bool_parsing": "true or false is needed",
    "int_type": "a whole number is needed",
    "int_parsing": "a whole number is needed",
    "float_type": "a number is needed",
    "float_parsing": "a number is needed",
    "tuple_type": "a list is needed",
    "dict_type": "a map is needed",
    "model_type": "a map is needed",
    "model_attributes_type": "a map is needed",
    "missing": "it is required",
}


def stack_values(config_map: Mapping[str, Any], project: str) -> dict[str, Any]:
    """The part of the engine's config map that belongs to the project, with maps and lists parsed.

    The engine hands out every top-level value as text; maps and lists come as JSON.
    """
    values: dict[str, Any] = {}
    for full_key, value in config_map.items():
        namespace, _, key = full_key.partition(":")
        if namespace == project:
            values[key] = _parsed(value)
    return values


def load(raw: Mapping[str, Any], secret_keys: Collection[str] = ()) -> RootConfig:
    """Check the whole tree and fill it up; raise one `ConfigError` that names every wrong key."""
    problems = [_secret(key) for key in sorted(secret_keys)]
    try:
        config = RootConfig.model_validate(dict(raw))
    except ValidationError as error:
        details = _own_faults(error.errors(include_url=False, include_context=True))
        problems += [_problem(detail, secret_keys) for detail in details]
    else:
        profile = PROFILES[config.profile]
        problems += checks.problems(config, profile)
        if not problems:
            return resolved(config, profile)
    raise ConfigError(sorted(problems))


def _own_faults(details: list[ErrorDetails]) -> list[ErrorDetails]:
    """Without lists that count as too short only because their items are wrong."""
    places = [detail["loc"] for detail in details]
    return [
        detail
        for detail in details
        if detail["type"] != "too_short"
        or not any(
            len(loc) > len(detail["loc"]) and loc[: len(detail["loc"])] == detail["loc"]
            for loc in places
        )
    ]


def _parsed(value: object) -> object:
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _secret(key: str) -> Problem:
    return Problem(
        key,
        "it is encrypted, but no key of this stack takes a secret, and its value would end up "
        "readable in the cluster",
        "Put the value into a Kubernetes Secret and name that with valueFrom.secretKeyRef or "
        "imagePullSecrets",
    )


def _problem(detail: ErrorDetails, secret_keys: Collection[str]) -> Problem:
    loc = place(detail)
    subject = _path(loc)
    if detail["type"] == "extra_forbidden":
        return _unknown_key(loc, subject)
    shown = "(secret)" if loc and loc[0] in secret_keys else _shown(detail["input"])
    if detail["type"] == "missing":
        return Problem(subject, _EXPECTED["missing"], "Set it")
    if detail["type"] == "value_error":
        return Problem(subject, str(detail["ctx"]["error"]), "Correct the section")
    return Problem(subject, f"{shown} is not allowed", f"Allowed: {_allowed(detail)}")


def place(detail: ErrorDetails) -> tuple[int | str, ...]:
    """Where a problem is, in keys that the user wrote: without the library's marks for unions."""
    marks = {"[key]", *UNION_TAGS}
    loc = detail["loc"]
    # An unknown key may look like a mark, but it is what the problem is about.
    end = len(loc) - 1 if detail["type"] == "extra_forbidden" else len(loc)
    return (*(part for part in loc[:end] if part not in marks), *loc[end:])


def _allowed(detail: ErrorDetails) -> str:
    context = detail.get("ctx", {})
    if detail["type"] == "literal_error":
        return str(context["expected"])
    if detail["type"] == "string_pattern_mismatch":
        return f"text that matches {context['pattern']}"
    return _EXPECTED.get(detail["type"], detail["msg"])


def _unknown_key(loc: tuple[int | str, ...], subject: str) -> Problem:
    names = [spellings(name, field) for name, field in _fields(loc[:-1]).items()]
    for first, *others in names:
        if loc[-1] in others:
            return Problem(subject, f"it is another name of {first}, and both are set", "Keep one")
    known = sorted(first for first, *_ in names)
    near = difflib.get_close_matches(str(loc[-1]), known, n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]}" if near else f"Known keys: {', '.join(known)}"
    return Problem(subject, "unknown key", hint)


def spellings(name: str, field: FieldInfo) -> tuple[str, ...]:
    """The keys users may write for a field, the preferred one first."""
    if isinstance(field.validation_alias, AliasChoices):
        return tuple(str(choice) for choice in field.validation_alias.choices)
    return (field.alias or name,)


def _fields(loc: tuple[int | str, ...]) -> dict[str, FieldInfo]:
    """The fields of the section at a place of the tree."""
    section: type[Section] = RootConfig
    for part in loc:
        by_key = {
            key: field.annotation
            for name, field in section.model_fields.items()
            for key in spellings(name, field)
        }
        if isinstance(part, str) and part in by_key:
            section = next(iter(sections_in(by_key[part])), section)
    return section.model_fields


def sections_in(annotation: object) -> tuple[type[Section], ...]:
    """The section classes inside of `X`, `X | None`, `tuple[X, ...]`, `dict[str, X]`."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return (annotation,)
    return tuple(section for argument in get_args(annotation) for section in sections_in(argument))


def _path(loc: tuple[int | str, ...]) -> str:
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text or "config"


def _shown(value: object) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
