"""`rbln-stack status`: every accelerator node with its pool and its driver pod."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from rbln_stack.cli.output import Format, Output, show_json, show_table

COLUMNS = ("node", "os", "kernel", "pool", "driver pod")
TIMEOUT_S = 15.0


def status(
    kubeconfig: Annotated[str, typer.Option(help="Kubeconfig file; as kubectl if empty.")] = "",
    context: Annotated[str, typer.Option(help="Context in it.")] = "",
    profile: Annotated[str, typer.Option(help="Vendor profile.")] = "rbln",
    namespace: Annotated[str, typer.Option(help="The stack's namespace, if not the usual.")] = "",
    output: Output = Format.TABLE,
) -> None:
    """Show each accelerator node: system, kernel, driver pool, driver pod.

    Example: rbln-stack status --kubeconfig "$(rbln-stack cluster kubeconfig)" -o json
    """
    from rbln_stack import contract, discovery, kube, nodestatus, pools  # noqa: PLC0415 - slow to load
    from rbln_stack.profiles import PROFILES  # noqa: PLC0415

    if profile not in PROFILES:
        raise typer.BadParameter(f"'{profile}' is none of {', '.join(sorted(PROFILES))}")
    vendor = PROFILES[profile]
    access = kube.access(kubeconfig or None, context or None)
    with kube.Cluster(access, timeout_s=TIMEOUT_S) as cluster:
        found = discovery.from_cluster(cluster, vendor)
        place = namespace or vendor.default_namespace
        selector = f"{contract.COMPONENT_LABEL}={vendor.driver_name}"
        pods = list(cluster.list(f"api/v1/namespaces/{place}/pods", selector=selector))
    rows = nodestatus.node_statuses(pools.group(found.nodes, {}, vendor.driver_name), pods)
    if output is Format.JSON:
        show_json([asdict(row) for row in rows])
    elif found.absence is not None:
        typer.echo(str(found.absence))
    else:
        show_table([asdict(row) | {"driver pod": row.driver_pod} for row in rows], COLUMNS)
