"""`rbln-stack status`: every accelerator node with its pool and its driver pod."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rbln_stack.cli.output import Format, Output, show_json, show_table

if TYPE_CHECKING:
    from rbln_stack.kube import Cluster
    from rbln_stack.nodestatus import NodeStatus
    from rbln_stack.pools import Grouping

COLUMNS = ("node", "os", "kernel", "pool", "driver pod")
TIMEOUT_S = 15.0


def status(
    kubeconfig: Annotated[str, typer.Option(help="Kubeconfig file; as kubectl if empty.")] = "",
    context: Annotated[str, typer.Option(help="Context in it.")] = "",
    profile: Annotated[str, typer.Option(help="Vendor profile.")] = "rbln",
    namespace: Annotated[str, typer.Option(help="The stack's namespace, if not the usual.")] = "",
    wait: Annotated[int, typer.Option(help="Seconds to wait for a driver on every node.")] = 0,
    output: Output = Format.TABLE,
) -> None:
    """Show each accelerator node: system, kernel, driver pool, driver pod.

    With --wait the exit code is 1 if a node has no driver by then.

    Example: rbln-stack status --kubeconfig "$(rbln-stack cluster kubeconfig)" -o json
    """
    from rbln_stack import discovery, kube, pools  # noqa: PLC0415 - slow to load
    from rbln_stack.profiles import PROFILES  # noqa: PLC0415

    if profile not in PROFILES:
        raise typer.BadParameter(f"'{profile}' is none of {', '.join(sorted(PROFILES))}")
    vendor = PROFILES[profile]
    access = kube.access(kubeconfig or None, context or None)
    with kube.Cluster(access, timeout_s=TIMEOUT_S) as cluster:
        found = discovery.from_cluster(cluster, vendor)
        grouping = pools.group(found.nodes, {}, vendor.driver_name)
        place = namespace or vendor.default_namespace
        rows = _rows(cluster, grouping, place, vendor.driver_name, wait)
    if output is Format.JSON:
        show_json([asdict(row) for row in rows])
    elif found.absence is not None:
        typer.echo(str(found.absence))
    else:
        show_table([asdict(row) | {"driver pod": row.driver_pod} for row in rows], COLUMNS)
    if wait and not all(row.driver_ready for row in rows):
        raise typer.Exit(1)


def _rows(
    cluster: Cluster, grouping: Grouping, namespace: str, driver: str, wait: int
) -> list[NodeStatus]:
    """Join nodes and driver pods; with `wait`, follow the pods until all are ready."""
    from rbln_stack import contract, nodestatus  # noqa: PLC0415 - slow to load

    path, selector = f"api/v1/namespaces/{namespace}/pods", f"{contract.COMPONENT_LABEL}={driver}"
    if not wait:
        return nodestatus.node_statuses(grouping, cluster.list(path, selector=selector))
    pods: dict[str, Any] = {}
    rows = nodestatus.node_statuses(grouping, ())
    for event, pod in cluster.watch(path, selector=selector, seconds=wait):
        pods.pop(pod["metadata"]["name"], None)
        if event != "DELETED":
            pods[pod["metadata"]["name"]] = pod
        rows = nodestatus.node_statuses(grouping, pods.values())
        if all(row.driver_ready for row in rows):
            break
    return rows
