"""Plain mapping → `RootConfig`, or one error with everything that is wrong.

Called by the program with the stack's config map and by the command line with a parsed file. It
never touches the environment or the disk.
"""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Any, get_args

from pydantic import ValidationError

from rbln_stack.config.base import Section
from rbln_stack.config.root import RootConfig
from rbln_stack.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

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
    """Check the whole tree; raise one `ConfigError` that names every wrong key."""
    problems = [_secret(key) for key in sorted(secret_keys)]
    try:
        config = RootConfig.model_validate(dict(raw))
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True)
        problems += [_problem(detail, secret_keys) for detail in details]
    else:
        if not problems:
            return config
    raise ConfigError(sorted(problems))


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
    loc = tuple(part for part in detail["loc"] if part != "[key]")
    subject = _path(loc)
    if detail["type"] == "extra_forbidden":
        return _unknown_key(loc, subject)
    shown = "(secret)" if loc and loc[0] in secret_keys else _shown(detail["input"])
    if detail["type"] == "missing":
        return Problem(subject, _EXPECTED["missing"], "Set it")
    if detail["type"] == "value_error":
        return Problem(subject, str(detail["ctx"]["error"]), "Correct the section")
    return Problem(subject, f"{shown} is not allowed", f"Allowed: {_allowed(detail)}")


def _allowed(detail: ErrorDetails) -> str:
    context = detail.get("ctx", {})
    if detail["type"] == "literal_error":
        return str(context["expected"])
    if detail["type"] == "string_pattern_mismatch":
        return f"text that matches {context['pattern']}"
    return _EXPECTED.get(detail["type"], detail["msg"])


def _unknown_key(loc: tuple[int | str, ...], subject: str) -> Problem:
    known = sorted(_known_keys(loc[:-1]))
    near = difflib.get_close_matches(str(loc[-1]), known, n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]}" if near else f"Known keys: {', '.join(known)}"
    return Problem(subject, "unknown key", hint)


def _known_keys(loc: tuple[int | str, ...]) -> set[str]:
    """The keys users may write in the section at a place of the tree."""
    section: type[Section] = RootConfig
    for part in loc:
        by_alias = {field.alias: field.annotation for field in section.model_fields.values()}
        if isinstance(part, str) and part in by_alias:
            section = _section_in(by_alias[part]) or section
    return {field.alias or name for name, field in section.model_fields.items()}


def _section_in(annotation: object) -> type[Section] | None:
    """The section class inside `X`, `X | None` or `tuple[X, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    found = (_section_in(argument) for argument in get_args(annotation))
    return next((section for section in found if section is not None), None)


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
