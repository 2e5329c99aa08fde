"""`rbln-stack plan`: what a stack would make, on which nodes, and what that does to them."""

from __future__ import annotations

import contextlib
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rbln_stack.cli.output import show_json, show_table
from rbln_stack.cli.stack import Config, Nodes, Stack, chosen

if TYPE_CHECKING:
    from rbln_stack.config.root import RootConfig
    from rbln_stack.impact import Impact
    from rbln_stack.plan import StackPlan
    from rbln_stack.planview import PlanView
    from rbln_stack.stackfile import StackConfig

FAILED = 2


class PlanFormat(StrEnum):
    """The forms a plan is shown in."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"


def plan(
    stack: Stack = "",
    config: Config = "",
    nodes: Nodes = "",
    impact: Annotated[
        bool | None,
        typer.Option(
            "--impact/--no-impact",
            help="Look at driver pods and workloads in the cluster; on unless nodes are recorded.",
        ),
    ] = None,
    output: Annotated[
        PlanFormat, typer.Option("-o", "--output", help="How to show the result.")
    ] = PlanFormat.TABLE,
) -> None:
    """Show pools, operands, every accelerator node, and what applying would do to them.

    Nothing is changed, and Pulumi is not needed. The exit code is 2 if the stack cannot be applied.

    Example: rbln-stack plan --stack dev -o json

    Example: rbln-stack plan --config values.yaml --nodes nodes.json -o markdown
    """
    from rbln_stack import planview  # noqa: PLC0415 - slow to load
    from rbln_stack.errors import ConfigError  # noqa: PLC0415

    name = config or stack
    try:
        settings = chosen(stack, config, nodes)
        name = settings.stack
        # Paths in config start from the project's folder, as they do under Pulumi.
        with contextlib.chdir(settings.directory):
            view = make_view(settings, look=impact)
    except ConfigError as error:
        problems = planview.error_problems(error)
        view = planview.PlanView(profile=None, source="", problems=problems)
    if output is PlanFormat.JSON:
        show_json(view.as_json())
    elif output is PlanFormat.MARKDOWN:
        typer.echo(planview.markdown(view, name or "?"), nl=False)
    else:
        _show(view)
    if view.failed:
        raise typer.Exit(FAILED)


def make_view(settings: StackConfig, *, look: bool | None) -> PlanView:
    """Load, discover, plan and compare; a failure on the way keeps what was found before it."""
    from rbln_stack import discovery, plan, planview, pools  # noqa: PLC0415 - slow to load
    from rbln_stack.config.load import load  # noqa: PLC0415
    from rbln_stack.errors import StackError  # noqa: PLC0415
    from rbln_stack.profiles import PROFILES  # noqa: PLC0415

    config = load(settings.values, settings.secrets)
    profile = PROFILES[config.profile]
    workload: str = getattr(config, "workload_type", profile.default_workload)
    try:
        found = discovery.discover(config, profile)
    except StackError as error:
        problems = planview.error_problems(error)
        return planview.PlanView(profile=profile, source=config.discovery.source, problems=problems)
    try:
        made = plan.make_plan(config, found, profile)
    except StackError as error:
        grouping = pools.group(found.nodes, {}, profile.driver_name)
        return planview.PlanView(
            profile=profile,
            source=found.source,
            workload=workload,
            nodes=found.nodes,
            pools=grouping.pools,
            problems=planview.error_problems(error),
        )
    wanted = found.live if look is None else look
    return planview.PlanView(
        profile=profile,
        source=found.source,
        workload=workload,
        nodes=found.nodes,
        pools=made.pools,
        plan=made,
        problems=planview.plan_problems(made),
        impact=_impact(config, made) if wanted else None,
    )


def _impact(config: RootConfig, made: StackPlan) -> Impact:
    from rbln_stack import impact, kube, observed  # noqa: PLC0415 - slow to load

    seen = observed.look(
        kube.access(config.kubeconfig, config.context),
        made.namespace,
        made.profile,
        timeout_s=config.discovery.timeout_seconds,
    )
    return impact.impact(made, seen)


def _show(view: PlanView) -> None:
    typer.echo(f"nodes read from: {view.source or 'nowhere'}")
    shown = view.as_json()
    if shown["pools"]:
        columns = ("pool", "arch", "nodes", "image")
        show_table(
            [row | {"pool": row["name"], "nodes": len(row["nodes"])} for row in shown["pools"]],
            columns,
        )
    if shown["operands"]:
        rows = [row | {"operand": row["name"]} for row in shown["operands"]]
        show_table(rows, ("operand", "enabled", "nodes"))
    odd = [row for row in shown["nodes"] if row["problem"]]
    if odd:
        show_table([row | {"node": row["name"]} for row in odd], ("node", "pool", "problem"))
    if view.impact is not None:
        for line in view.impact.as_lines():
            typer.echo(line)
    for problem in view.problems:
        remedy = f" {problem.remedy}." if problem.remedy else ""
        text = f"{problem.severity}: {problem.subject}: {problem.what}.{remedy}"
        typer.echo(text, err=problem.severity == "error")
