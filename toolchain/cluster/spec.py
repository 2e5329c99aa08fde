"""What a cluster is asked to be, and every name, address and path that follows from it. Pure."""

from __future__ import annotations

import ipaddress
import json
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from toolchain.errors import ToolchainError
from toolchain.paths import state_root

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_NAME = "dev"
# 198.18.0.0/15 is set aside for tests of network devices, so no network of the user's is in it.
# Each cluster has a /20 of it: one /24 for the nodes, one for services, one per node for pods.
NETWORKS = ipaddress.ip_network("198.18.0.0/15")
BLOCK_PREFIX = 20
MAX_CLUSTERS = 2 ** (BLOCK_PREFIX - NETWORKS.prefixlen)
MAX_NODES = 13
MAX_KWOK = 20_000
DOMAIN = "cluster.local"
API_PORT = 6443

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """What the user asked for."""

    name: str = DEFAULT_NAME
    nodes: int = 2
    kwok: int = 0
    profile: str = "rbln"
    api_port: int = API_PORT
    fleet: str = ""

    def check(self) -> None:
        """Refuse what cannot be built, before anything is made."""
        if not _NAME.fullmatch(self.name):
            raise ToolchainError(
                f"'{self.name}' is not a cluster name",
                "use 1 to 20 lower-case letters, digits and dashes",
            )
        if not 0 <= self.nodes <= MAX_NODES:
            raise ToolchainError(f"--nodes {self.nodes} is out of range", f"use 1 to {MAX_NODES}")
        if self.nodes == 0 and self.kwok == 0:
            raise ToolchainError(
                "--nodes 0 makes a cluster without a node",
                "use --nodes 1 or more, or add --kwok N for simulated nodes alone",
            )
        if not 0 <= self.kwok <= MAX_KWOK:
            raise ToolchainError(f"--kwok {self.kwok} is out of range", f"use 0 to {MAX_KWOK}")
        if not 0 < self.api_port < 2**16:
            raise ToolchainError(f"--api-port {self.api_port} is no port", "use 1 to 65535")


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of cluster number `index` on this machine."""

    index: int
    real_nodes: bool

    @property
    def block(self) -> ipaddress.IPv4Network:
        """The cluster's own /20."""
        first = int(NETWORKS.network_address) + self.index * 2 ** (32 - BLOCK_PREFIX)
        return ipaddress.IPv4Network((first, BLOCK_PREFIX))

    def _subnet(self, number: int) -> ipaddress.IPv4Network:
        return list(self.block.subnets(new_prefix=24))[number]

    @property
    def node_network(self) -> ipaddress.IPv4Network:
        """The nodes, and the host at .1."""
        return self._subnet(0)

    @property
    def service_network(self) -> ipaddress.IPv4Network:
        """ClusterIPs."""
        return self._subnet(1)

    @property
    def host(self) -> str:
        """Where the control plane listens: on loopback where there are no real nodes."""
        return str(self.node_network[1]) if self.real_nodes else f"127.198.{self.index}.1"

    @property
    def api_service(self) -> str:
        """The ClusterIP of the API server."""
        return str(self.service_network[1])

    @property
    def dns_service(self) -> str:
        """The ClusterIP of the name service."""
        return str(self.service_network[10])

    def node(self, number: int) -> str:
        """The address of the real node `number`, counted from 0."""
        return str(self.node_network[11 + number])

    def pods(self, number: int) -> str:
        """The pod network of the real node `number`."""
        return str(self._subnet(2 + number))

    @property
    def switch(self) -> str:
        """The network namespace of the bridge; deleting it removes every link of the cluster."""
        return f"rbln-stack-{self.index}"

    @property
    def host_link(self) -> str:
        """The host's end of its cable to the bridge (15 characters at most)."""
        return f"rblnstk{self.index}"

    @property
    def cgroup(self) -> str:
        """The cgroup below which all nodes of the cluster are."""
        return f"rbln-stack-{self.index}"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything of one cluster is on disk."""

    root: Path

    @classmethod
    def of(cls, name: str) -> Layout:
        """Find the place of a cluster by its name."""
        return cls(state_root() / "clusters" / name)

    @property
    def record(self) -> Path:
        """What was asked for and what was given; present from the first moment of `up`."""
        return self.root / "cluster.json"

    @property
    def ready(self) -> Path:
        """Present when `up` has ended well."""
        return self.root / "ready"

    @property
    def pki(self) -> Path:
        """Keys and certificates."""
        return self.root / "pki"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.root / "kubeconfig"

    @property
    def logs(self) -> Path:
        """One file per process."""
        return self.root / "logs"

    @property
    def pulumi(self) -> Path:
        """State of the stacks of this cluster: it goes away with the cluster."""
        return self.root / "pulumi"

    def node(self, name: str) -> Path:
        """A real node's folders: overlay, kubelet, containerd."""
        return self.root / "nodes" / name


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The cluster's entry on disk, from which a later command finds everything."""

    spec: ClusterSpec
    index: int
    real_nodes: bool

    @property
    def addresses(self) -> Addresses:
        """The addresses that were given."""
        return Addresses(self.index, self.real_nodes)

    def write(self, path: Path) -> None:
        """Write as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1))

    @classmethod
    def read(cls, path: Path) -> Record | None:
        """Read, or None when there is none or it is torn."""
        try:
            data = json.loads(path.read_text())
            return cls(**(data | {"spec": ClusterSpec(**data["spec"])}))
        except (OSError, ValueError, TypeError, KeyError):
            return None


def node_name(number: int) -> str:
    """Name the real node `number`, counted from 0."""
    return f"node-{number + 1}"


def kwok_name(number: int) -> str:
    """Name the kwok node `number`, counted from 0."""
    return f"kwok-{number:05d}"
