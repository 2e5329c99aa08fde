"""Writes `rbln_stack/config.schema.json`, by which editors complete and check values files.

    python -m rbln_stack.config.schema [--check]

The file follows from the sections alone (JSON Schema, draft 2020-12). Rules across keys are not in
it; the program itself checks those. With --check nothing is written, and a file that is not as it
should be gives exit code 1.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rbln_stack.config.load import sections_in, spellings
from rbln_stack.config.root import RootConfig
from rbln_stack.config.written import write_or_check

if TYPE_CHECKING:
    from rbln_stack.config.base import Section

PATH: Final = Path(__file__).parents[1] / "config.schema.json"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

Node = dict[str, Any]


def schema() -> Node:
    """The schema of a values file: what stands below `rbln-stack:` in a stack file."""
    made: Node = _tidied(RootConfig.model_json_schema(mode="validation"))
    for section in _all_sections(RootConfig):
        place = made if section is RootConfig else made["$defs"][section.__name__]
        _add_spellings(section, place["properties"])
    return {"$schema": DIALECT, "title": "rbln-stack values", **made}


def text() -> str:
    """The file's content."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _all_sections(start: type[Section]) -> set[type[Section]]:
    found = {start}
    waiting = [start]
    while waiting:
        for field in waiting.pop().model_fields.values():
            new = set(sections_in(field.annotation)) - found
            found |= new
            waiting += new
    return found


def _add_spellings(section: type[Section], properties: Node) -> None:
    for name, field in section.model_fields.items():
        first, *others = spellings(name, field)
        for other in others:
            described = f"Another name of {first}; only one of them may be set."
            properties[other] = {**properties[first], "description": described}


def _tidied(node: Any) -> Any:  # noqa: ANN401 - any part of a schema
    """Without generated titles and defaults of whole sections; maps take matching keys only."""
    if isinstance(node, list):
        return [_tidied(item) for item in node]
    if not isinstance(node, dict):
        return node
    tidy = {key: _tidied(value) for key, value in node.items() if not _noise(key, value)}
    if "patternProperties" in tidy:
        tidy["additionalProperties"] = False
    return tidy


def _noise(key: str, value: object) -> bool:
    # A property may be called like a keyword, but then its value is a schema, not text.
    return (key == "title" and isinstance(value, str)) or (
        key == "default" and (value is None or (isinstance(value, dict) and "type" not in value))
    )


def main(arguments: list[str]) -> int:
    """Write the file, or with --check compare it."""
    return write_or_check(PATH, text(), "rbln_stack.config.schema", arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
