"""`rbln-stack render`: every Kubernetes object of a stack, without an engine."""

from __future__ import annotations

import contextlib
import logging
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rbln_stack.cli.output import show_json
from rbln_stack.cli.stack import Config, Nodes, Stack, chosen

if TYPE_CHECKING:
    from rbln_stack.render import Manifest
    from rbln_stack.stackfile import StackConfig


class RenderFormat(StrEnum):
    """The forms in which objects are written."""

    YAML = "yaml"
    DIR = "dir"
    JSON = "json"


def render(
    stack: Stack = "",
    config: Config = "",
    nodes: Nodes = "",
    folder: Annotated[
        str, typer.Option("--dir", help="Folder for -o dir: one file per object.")
    ] = "",
    output: Annotated[
        RenderFormat, typer.Option("-o", "--output", help="How to write the objects.")
    ] = RenderFormat.YAML,
) -> None:
    """Write every Kubernetes object of the stack, each after those that it needs.

    The same program runs that Pulumi runs; nothing is changed, and with --nodes no cluster is read.

    Example: rbln-stack render --stack dev --nodes nodes.json | kubectl diff -f -

    Example: rbln-stack render --config values.yaml --nodes nodes.json -o dir --dir manifests
    """
    from rbln_stack.render import documents  # noqa: PLC0415 - slow to load

    if (output is RenderFormat.DIR) != bool(folder):
        raise typer.BadParameter("-o dir and --dir belong together")
    objects = rendered(chosen(stack, config, nodes))
    if output is RenderFormat.JSON:
        show_json({"apiVersion": "v1", "kind": "List", "items": objects})
    elif output is RenderFormat.YAML:
        typer.echo(documents(objects), nl=False)
    else:
        write(Path(folder), objects)
        typer.echo(f"wrote {len(objects)} objects to {folder}", err=True)


def rendered(settings: StackConfig) -> list[Manifest]:
    """Run the program with these settings and return its objects."""
    import pulumi  # noqa: PLC0415 - slow to load

    from rbln_stack.cli import rendering  # noqa: PLC0415 - slow to load
    from rbln_stack.errors import StackError  # noqa: PLC0415

    directory = _program_directory(settings.directory)
    # Paths in config start from the project's folder, as they do under Pulumi.
    with contextlib.chdir(settings.directory):
        try:
            recorder = rendering.record(
                lambda: rendering.run_program(directory),
                settings.config_map,
                secrets=settings.secret_keys,
                stack=settings.stack,
                logger=_to_stderr(),
            )
        except pulumi.RunError as error:
            # The program has turned an expected failure into one that the engine understands.
            if isinstance(error.__cause__, StackError):
                raise error.__cause__ from None
            raise
    return recorder.objects()


def write(folder: Path, objects: list[Manifest]) -> None:
    """Put one file per object into the folder; files of an earlier run go, others stay."""
    from rbln_stack.render import HEAD, document, file_names  # noqa: PLC0415 - slow to load

    folder.mkdir(parents=True, exist_ok=True)
    names = file_names(objects)
    for path in sorted(folder.glob("*.yaml")):
        if path.name not in names and path.read_text(encoding="utf-8").startswith(HEAD):
            path.unlink()
    for name, manifest in zip(names, objects, strict=True):
        (folder / name).write_text(f"{HEAD}\n{document(manifest)}", encoding="utf-8")


def _program_directory(project: Path) -> Path:
    """The project's own program, or that of this installation for values kept elsewhere."""
    if (project / "__main__.py").is_file():
        return project
    return Path(__file__).resolve().parents[2]


def _to_stderr() -> logging.Logger:
    """What the program would tell the engine's user, told to this one."""
    logger = logging.getLogger("rbln-stack.render")
    logger.handlers.clear()
    logger.propagate = False
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    logger.addHandler(handler)
    return logger
