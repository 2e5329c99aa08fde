"""Talk to an embedded cluster's API as its administrator, and wait by watching."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rbln_stack.errors import DiscoveryError
from rbln_stack.kube import Access, Cluster, Manifest
from toolchain.errors import ToolchainError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAMESPACES = "api/v1/namespaces"
NODES = "api/v1/nodes"
TIMEOUT_S = 10.0
Objects = dict[str, Manifest]


def connect(kubeconfig: Path) -> Cluster:
    """Open a connection; proxies of the machine have no part in it."""
    return Cluster(Access(str(kubeconfig)), timeout_s=TIMEOUT_S)


def answers(kubeconfig: Path) -> bool:
    """Ask the API server once whether it serves."""
    try:
        with connect(kubeconfig) as cluster:
            return any(
                item["metadata"]["name"] == "kube-system" for item in cluster.list(NAMESPACES)
            )
    except DiscoveryError:
        return False


def is_ready(node: Manifest) -> bool:
    """Tell whether a node says of itself that it is ready."""
    conditions = node.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def wait_until(
    cluster: Cluster,
    path: str,
    done: Callable[[Objects], bool],
    *,
    timeout_s: float,
    describe: Callable[[Objects], str],
) -> None:
    """Follow all objects of a collection until `done` says so; a time-out tells what was seen."""
    deadline = time.monotonic() + timeout_s
    objects: Objects = {}
    while (left := deadline - time.monotonic()) > 0:
        objects = {}
        try:
            for event, item in cluster.watch(path, seconds=max(1, int(left))):
                objects.pop(item["metadata"]["name"], None)
                if event != "DELETED":
                    objects[item["metadata"]["name"]] = item
                if done(objects):
                    return
        except DiscoveryError:
            time.sleep(0.05)  # the server is starting: there is nothing to watch yet
    raise ToolchainError(f"not reached within {timeout_s:.0f} s", describe(objects))
