"""How commands show results: a table for people, JSON for programs."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Format(StrEnum):
    """The forms that every command can answer in."""

    TABLE = "table"
    JSON = "json"


Output = Annotated[Format, typer.Option("-o", "--output", help="How to show the result.")]


def show_json(value: Any) -> None:  # noqa: ANN401 - anything that JSON can hold
    """Print a value as JSON."""
    typer.echo(json.dumps(value, indent=2, default=str))


def show_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Print rows as a table; the keys of `columns` are its headings."""
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - rich is slow to load
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column.upper(), no_wrap=True)
    for row in rows:
        table.add_row(*(str(row.get(column, "")) for column in columns))
    # A fixed width elsewhere than on a terminal: a log must not cut names.
    console = Console()
    Console(width=None if console.is_terminal else 200).print(table)
