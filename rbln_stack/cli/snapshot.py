"""`rbln-stack snapshot`: record the accelerator nodes for previews without a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TIMEOUT_S = 30.0
STDOUT = "-"


def snapshot(
    kubeconfig: Annotated[str, typer.Option(help="Kubeconfig file; as kubectl if empty.")] = "",
    context: Annotated[str, typer.Option(help="Context in it.")] = "",
    profile: Annotated[str, typer.Option(help="Vendor profile.")] = "rbln",
    file: Annotated[
        str, typer.Option("-f", "--file", help="Where to write; - is standard output.")
    ] = STDOUT,
) -> None:
    """Record the accelerator nodes as `kubectl get nodes -o json` prints them, but less.

    Addresses and annotations stay out, so the file can be committed; equal nodes give equal files.
    Read it with `discovery.source: snapshot` or with --nodes of other commands.

    Example: rbln-stack snapshot -f nodes.json && rbln-stack plan --nodes nodes.json
    """
    from rbln_stack import discovery, kube  # noqa: PLC0415 - slow to load
    from rbln_stack import snapshot as record  # noqa: PLC0415
    from rbln_stack.errors import DiscoveryError  # noqa: PLC0415
    from rbln_stack.profiles import PROFILES  # noqa: PLC0415

    if profile not in PROFILES:
        raise typer.BadParameter(f"'{profile}' is none of {', '.join(sorted(PROFILES))}")
    vendor = PROFILES[profile]
    access = kube.access(kubeconfig or None, context or None)
    with kube.Cluster(access, timeout_s=TIMEOUT_S) as cluster:
        content = record.recorded(
            manifest
            for label in vendor.present_labels
            for manifest in cluster.list("api/v1/nodes", selector=f"{label}=true")
        )
        if not content["items"]:
            # An empty record would later read as a fleet without NFD.
            absence = discovery.from_cluster(cluster, vendor).absence
            raise DiscoveryError([absence] if absence else [])
    text = record.text(content)
    if file == STDOUT:
        typer.echo(text, nl=False)
    else:
        record.write(Path(file), text)
    place = "standard output" if file == STDOUT else file
    typer.echo(f"recorded {len(content['items'])} accelerator nodes to {place}", err=True)
