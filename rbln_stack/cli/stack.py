"""Which stack a command works on: the options that `plan` and `render` share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rbln_stack.stackfile import StackConfig

Stack = Annotated[
    str, typer.Option(help="Stack of this project; the only one, or PULUMI_STACK, if empty.")
]
Config = Annotated[
    str, typer.Option(help="A stack file, or bare values as in a chart's values file.")
]
Nodes = Annotated[
    str, typer.Option(help="A recorded node list in place of what config says; see snapshot.")
]


def chosen(stack: str, config: str, nodes: str) -> StackConfig:
    """The config the options name; what cannot be read here is said on standard error."""
    from rbln_stack import stackfile  # noqa: PLC0415 - slow to load

    if stack and config:
        raise typer.BadParameter("--stack and --config name two configs; give one")
    here = Path.cwd()
    found = (
        stackfile.read_file(here / config, here) if config else stackfile.read_stack(stack, here)
    )
    for notice in found.notices:
        typer.echo(str(notice), err=True)
    return found.with_nodes(here / nodes) if nodes else found
