"""What a cluster could leave on a machine: taken before and after, the two must be equal."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.machine import run
from toolchain.cluster import cgroups, processes
from toolchain.paths import state_root


def traces(cluster_root: Path) -> dict[str, list[str]]:
    """List mounts, links, routes, namespaces, cgroups, settings, files and processes."""
    clusters = state_root() / "clusters"
    return {
        "mounts": sorted(Path("/proc/self/mountinfo").read_text().splitlines()),
        "links": sorted(link["ifname"] for link in json.loads(run("ip", "-j", "link"))),
        "routes": sorted(run("ip", "route", "show", "table", "all").splitlines()),
        "namespaces": sorted(run("ip", "netns", "list").split()),
        "cgroups": sorted(
            str(path) for top in cgroups.hierarchies() for path in top.glob("rbln-stack-*")
        ),
        "settings": [Path("/proc/sys/net/ipv4/ip_forward").read_text()],
        "firewall": sorted(Path("/proc/net/ip_tables_names").read_text().split())
        if Path("/proc/net/ip_tables_names").exists()
        else [],
        "files": sorted(str(path) for path in clusters.glob("*") if path == cluster_root),
        "kubeconfig": [str(Path("~/.kube").expanduser().exists())],
        "processes": sorted(
            " ".join(process.argv) for process in processes.of_cluster(cluster_root)
        ),
    }
