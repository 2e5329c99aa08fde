"""`rbln-stack tools`: have everything that the embedded cluster and the engine need."""

from __future__ import annotations

from typing import Annotated

import typer

from rbln_stack.cli.output import Format, Output, show_json, show_table


def tools(
    cluster_only: Annotated[
        bool, typer.Option("--cluster-only", help="Leave out the Pulumi engine.")
    ] = False,
    output: Output = Format.TABLE,
) -> None:
    """Obtain all tools and images ahead of time, and show where each came from.

    Every other command obtains what it needs by itself; this one is for a slow network or for CI.

    Example: rbln-stack tools -o json
    """
    from toolchain.cluster import lifecycle  # noqa: PLC0415 - slow to load
    from toolchain.progress import to_stderr  # noqa: PLC0415

    rows = lifecycle.have_everything(to_stderr, engine=not cluster_only)
    if output is Format.JSON:
        show_json(rows)
    else:
        show_table(rows, ["tool", "version", "origin"])
