"""`rbln-stack cluster`: the embedded cluster."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from rbln_stack.cli.output import Format, Output, show_json, show_table

app = typer.Typer(
    help="A real Kubernetes on this machine, with simulated NPUs.", no_args_is_help=True
)
Name = Annotated[str, typer.Option(help="Name of the cluster.")]


@app.command(
    epilog="Example: sudo rbln-stack cluster up --nodes 2 --kwok 100",
    short_help="Make the cluster.",
)
def up(
    name: Name = "dev",
    nodes: Annotated[int, typer.Option(help="Real nodes: containerd and kubelet each.")] = 2,
    kwok: Annotated[int, typer.Option(help="Simulated nodes beside them, for scale.")] = 0,
    profile: Annotated[str, typer.Option(help="Vendor of the simulated devices.")] = "rbln",
    fleet: Annotated[
        str, typer.Option(help="YAML file with the nodes' products and systems.")
    ] = "",
    api_port: Annotated[int, typer.Option(help="Port of the API server.")] = 6443,
    output: Output = Format.TABLE,
) -> None:
    """Make the cluster, or do nothing if it is up already. Real nodes need root."""
    from toolchain.cluster import lifecycle  # noqa: PLC0415 - slow to load
    from toolchain.cluster.spec import ClusterSpec  # noqa: PLC0415
    from toolchain.progress import to_stderr  # noqa: PLC0415

    spec = ClusterSpec(
        name=name, nodes=nodes, kwok=kwok, profile=profile, fleet=fleet, api_port=api_port
    )
    lifecycle.up(spec, to_stderr)
    _show(name, output)


@app.command(epilog="Example: sudo rbln-stack cluster down", short_help="Remove the cluster.")
def down(name: Name = "dev", output: Output = Format.TABLE) -> None:
    """Remove the cluster and everything that it made on this machine."""
    from toolchain.cluster import lifecycle  # noqa: PLC0415 - slow to load
    from toolchain.progress import to_stderr  # noqa: PLC0415

    removed = lifecycle.down(name, to_stderr)
    if output is Format.JSON:
        show_json({"name": name, "removed": removed})
    elif not removed:
        typer.echo(f"there is no cluster {name}")


@app.command(epilog="Example: rbln-stack cluster status -o json", short_help="Look at the cluster.")
def status(name: Name = "dev", output: Output = Format.TABLE) -> None:
    """Show whether the cluster stands, its nodes and memory. Exit code 1 if it does not."""
    if not _show(name, output):
        raise typer.Exit(1)


@app.command(
    epilog='Example: kubectl --kubeconfig "$(rbln-stack cluster kubeconfig)" get nodes',
    short_help="Print the path of its kubeconfig.",
)
def kubeconfig(name: Name = "dev", output: Output = Format.TABLE) -> None:
    """Print the path of the cluster's kubeconfig; yours in ~/.kube is never written."""
    from toolchain.cluster import lifecycle  # noqa: PLC0415 - slow to load

    path = lifecycle.kubeconfig(name)
    if output is Format.JSON:
        show_json({"kubeconfig": str(path)})
    else:
        typer.echo(path)


@app.command(
    epilog='Example: eval "$(rbln-stack cluster env)" && pulumi preview --stack dev',
    short_help="Print the variables for kubectl and pulumi.",
)
def env(name: Name = "dev", output: Output = Format.TABLE) -> None:
    """Print shell lines with which kubectl and pulumi work on the cluster, apart from your own."""
    from toolchain import engine  # noqa: PLC0415 - slow to load
    from toolchain.cluster import lifecycle  # noqa: PLC0415
    from toolchain.cluster.spec import Layout  # noqa: PLC0415
    from toolchain.progress import to_stderr  # noqa: PLC0415

    lifecycle.kubeconfig(name)
    values = engine.prepare(Layout.of(name), to_stderr)
    if output is Format.JSON:
        show_json(values)
    else:
        typer.echo(engine.exports(values))


def _show(name: str, output: Format) -> bool:
    from toolchain.cluster import lifecycle  # noqa: PLC0415 - slow to load

    seen = lifecycle.status(name)
    if output is Format.JSON:
        show_json(asdict(seen) if seen else {"name": name, "state": "absent"})
    elif seen is None:
        typer.echo(f"there is no cluster {name}: make it with `rbln-stack cluster up`")
    else:
        typer.echo(
            f"cluster {seen.name} is {seen.state}: {seen.api}, {seen.processes} processes, "
            f"{seen.memory_mib} MiB, {seen.kwok} kwok nodes\nkubeconfig: {seen.kubeconfig}"
        )
        show_table(seen.nodes, ["name", "address", "running"])
    return seen is not None and seen.state == "up"
