"""`rbln-stack import-values`: a chart's values file as the config of a stack."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path  # noqa: TC003 - typer reads it at run time
from typing import Annotated

import typer

from rbln_stack.cli.output import show_json

PROJECT = "rbln-stack"


class FileFormat(StrEnum):
    """The forms a stack's config can be shown in."""

    YAML = "yaml"
    JSON = "json"


def import_values(
    values: Annotated[Path, typer.Argument(help="Values file of the chart.")],
    profile: Annotated[str, typer.Option(help="Vendor profile.")] = "rbln",
    output: Annotated[
        FileFormat, typer.Option("-o", "--output", help="How to show the result.")
    ] = FileFormat.YAML,
) -> None:
    """Turn the values file of the vendor's Helm chart into the config of a stack.

    The config goes to standard output; keys that a stack has no place for are listed with the
    reason on standard error, and in JSON as leftOut.

    Example: rbln-stack import-values values.yaml > Pulumi.production.yaml
    """
    import yaml  # noqa: PLC0415 - slow to load

    from rbln_stack.chart_values import imported  # noqa: PLC0415
    from rbln_stack.errors import ConfigError, Problem  # noqa: PLC0415
    from rbln_stack.profiles import PROFILES  # noqa: PLC0415

    if profile not in PROFILES:
        raise typer.BadParameter(f"'{profile}' is none of {', '.join(sorted(PROFILES))}")
    try:
        content = yaml.safe_load(values.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        what = error.strerror if isinstance(error, OSError) else "it is not YAML"
        problem = Problem(str(values), f"it cannot be read: {what}", "Give a chart's values file")
        raise ConfigError([problem]) from error
    if not isinstance(content, dict):
        problem = Problem(str(values), "it holds no map of keys", "Give a chart's values file")
        raise ConfigError([problem])
    result = imported(content, profile)
    for entry in result.left_out:
        typer.echo(f"not taken: {entry.key}: {entry.reason}", err=True)
    if output is FileFormat.JSON:
        left = [asdict(entry) for entry in result.left_out]
        show_json({**result.stack_file(PROJECT), "leftOut": left})
    else:
        text = yaml.safe_dump(result.stack_file(PROJECT), sort_keys=False, allow_unicode=True)
        typer.echo(text, nl=False)
