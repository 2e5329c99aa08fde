"""The console program `rbln-stack`: each command is a thin shell over a function elsewhere.

Results go to standard output, progress and errors to standard error. Exit codes: 0 done,
1 not done for a reason that is said in one line, 2 wrong usage.
"""

from __future__ import annotations

import sys

import typer

from rbln_stack.cli import cluster, import_values, plan, render, snapshot, status, tools
from rbln_stack.errors import StackError

app = typer.Typer(
    name="rbln-stack",
    help="Rebellions NPUs (and GPUs) on Kubernetes, by Pulumi.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(cluster.app, name="cluster")
app.command("plan")(plan.plan)
app.command("render")(render.render)
app.command("snapshot")(snapshot.snapshot)
app.command("import-values")(import_values.import_values)
app.command("status")(status.status)
app.command("tools")(tools.tools)


def main() -> None:
    """Run the command line; an expected failure is one line, never a trace."""
    from toolchain.errors import ToolchainError  # noqa: PLC0415 - only this command needs it

    try:
        app()
    except (StackError, ToolchainError) as error:
        sys.stderr.write(f"rbln-stack: {error}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.stderr.write("rbln-stack: interrupted\n")
        sys.exit(130)
