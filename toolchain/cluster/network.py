"""The cluster's network on the host: one namespace with a bridge, and one cable to it.

The bridge is in a namespace of its own, so the machine's firewall and forwarding settings are not
involved, and deleting that namespace takes every link and route of the cluster with it.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from toolchain.errors import ToolchainError

if TYPE_CHECKING:
    from toolchain.cluster.spec import Addresses

NAMESPACES = Path("/run/netns")


def _ip(*argv: str) -> None:
    done = subprocess.run(["ip", *argv], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ToolchainError(
            f"`ip {' '.join(argv)}` failed ({done.stderr.strip()})",
            "real nodes need root and network namespaces; use --nodes 0 --kwok N without them",
        )


def claim(addresses: Addresses) -> bool:
    """Take a cluster number by making its namespace; False when it is taken."""
    done = subprocess.run(
        ["ip", "netns", "add", addresses.switch], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return True
    if (NAMESPACES / addresses.switch).exists():
        return False
    raise ToolchainError(
        f"a network namespace cannot be made ({done.stderr.strip()})",
        "install iproute2 and run as root, or use --nodes 0 --kwok N",
    )


def connect(addresses: Addresses, nodes: int) -> None:
    """Make the bridge, and the host's cable and routes to it."""
    switch, link = addresses.switch, addresses.host_link
    _ip("-n", switch, "link", "add", "br0", "type", "bridge")
    _ip("-n", switch, "link", "set", "br0", "up")
    _ip("link", "add", link, "type", "veth", "peer", "name", "host", "netns", switch)
    _ip("-n", switch, "link", "set", "host", "master", "br0", "up")
    _ip("address", "add", f"{addresses.host}/{addresses.node_network.prefixlen}", "dev", link)
    _ip("link", "set", link, "up")
    for number in range(nodes):
        _ip("route", "add", addresses.pods(number), "via", addresses.node(number))


def release(addresses: Addresses) -> None:
    """Remove the namespace, the bridge, the cables and the routes."""
    # Deleting the host's end at once: a namespace is torn down by the kernel in its own time.
    subprocess.run(["ip", "link", "del", addresses.host_link], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "del", addresses.switch], capture_output=True, check=False)
    if (NAMESPACES / addresses.switch).exists():
        raise ToolchainError(
            f"the network namespace {addresses.switch} cannot be removed",
            f"run as root: ip netns del {addresses.switch}",
        )
