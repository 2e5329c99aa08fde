"""The files that a cluster is made from: certificates, kubeconfigs, plans of its nodes."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from simulator.fleet import load_fleet
from toolchain import debian
from toolchain.cluster import pki, servers
from toolchain.cluster.node_plan import NodePlan
from toolchain.cluster.spec import DOMAIN, node_name
from toolchain.errors import ToolchainError
from toolchain.paths import cache_root

if TYPE_CHECKING:
    from toolchain.cluster.images import Images
    from toolchain.cluster.spec import Layout, Record
    from toolchain.obtain import Tools
    from toolchain.progress import Reporter

# Programs of the system that a node needs, and the Debian packages that hold them.
SYSTEM_PROGRAMS = {"runc": "runc", "nft": "nftables"}
# Programs that every Linux machine has; a container image of one may lack them.
ESSENTIAL = ("ip", "mount", "nsenter", "pivot_root", "umount", "unshare")
NODE_PROGRAMS = ("containerd", "ctr", "kubelet", "kube-proxy", "ptp", "runc", "nft")


def with_system_programs(tools: Tools, root: Path, say: Reporter) -> Tools:
    """Add what is not built but belongs to the system, without installing anything."""
    missing = [name for name in ESSENTIAL if shutil.which(name) is None]
    if missing:
        raise ToolchainError(
            f"real nodes need {', '.join(missing)}, not found on PATH",
            "install util-linux and iproute2, or use --nodes 0 --kwok N",
        )
    found = debian.obtain(SYSTEM_PROGRAMS, root / "system", log=say)
    libraries = found.environment({}).get("LD_LIBRARY_PATH")
    return replace(
        tools,
        programs={**tools.programs, **found.paths},
        environment={"LD_LIBRARY_PATH": libraries} if libraries else {},
    )


def write_files(record: Record, layout: Layout, tools: Tools, archives: Images) -> None:
    """Write everything that the servers and nodes read."""
    layout.pki.mkdir()
    layout.pki.chmod(0o700)
    authority = pki.Authority(f"rbln-stack {record.spec.name}")
    _write_server_keys(record, layout, authority)
    _write_kubeconfigs(record, layout, authority)
    nodes = {}
    if record.real_nodes:
        for number in range(record.spec.nodes):
            name = node_name(number)
            _write_node_keys(record, layout, authority, number)
            path = layout.root / "nodes" / f"{name}.json"
            node_plan(record, layout, number, tools, archives).write(path)
            nodes[name] = servers.node_command(path)
    programs = {name: str(path) for name, path in tools.programs.items()}
    (layout.root / servers.PLAN).write_text(json.dumps({"programs": programs, "nodes": nodes}))


def _write_server_keys(record: Record, layout: Layout, authority: pki.Authority) -> None:
    host = record.addresses.host
    service = ("kubernetes", "kubernetes.default", "kubernetes.default.svc")
    names = (*service, f"kubernetes.default.svc.{DOMAIN}", "localhost", "127.0.0.1", host)
    etcd = pki.Authority(f"rbln-stack {record.spec.name} etcd")
    authority.pair.write(layout.pki, "ca")
    etcd.pair.write(layout.pki, "etcd-ca")
    etcd.issue("etcd", hosts=["localhost", host]).write(layout.pki, "etcd")
    etcd.issue("kube-apiserver").write(layout.pki, "etcd-client")
    authority.issue("kube-apiserver", hosts=[*names, record.addresses.api_service]).write(
        layout.pki, "apiserver"
    )
    authority.issue("kube-apiserver-kubelet-client", ["system:masters"]).write(
        layout.pki, "kubelet-client"
    )
    authority.issue("front-proxy").write(layout.pki, "front-proxy")
    private, public = pki.service_account_keys()
    pki.write_private(layout.pki / "sa.key", private)
    (layout.pki / "sa.pub").write_bytes(public)


def _write_kubeconfigs(record: Record, layout: Layout, authority: pki.Authority) -> None:
    identities = {
        layout.kubeconfig: authority.issue("administrator", ["system:masters"]),
        layout.pki / "kwok.kubeconfig": authority.issue("kwok", ["system:masters"]),
    }
    for component in ("kube-controller-manager", "kube-scheduler"):
        path = layout.pki / f"{component}.kubeconfig"
        identities[path] = authority.issue(f"system:{component}")
    for path, identity in identities.items():
        pki.write_private(path, _kubeconfig(record, authority, identity))


def _kubeconfig(record: Record, authority: pki.Authority, identity: pki.Pair) -> bytes:
    url = servers.api_url(record)
    return pki.kubeconfig(record.spec.name, url, authority.pair.certificate, identity)


def _write_node_keys(record: Record, layout: Layout, authority: pki.Authority, number: int) -> None:
    name, addresses = node_name(number), record.addresses
    folder = layout.node(name)
    keys = folder / "pki"
    keys.mkdir(parents=True)
    (keys / "ca.crt").write_bytes(authority.pair.certificate)
    user = f"system:node:{name}"
    authority.issue(user, ["system:nodes"], [name, addresses.node(number)]).write(keys, "kubelet")
    identities = {
        "kubelet": authority.issue(user, ["system:nodes"]),
        "kube-proxy": authority.issue("system:kube-proxy"),
    }
    for component, identity in identities.items():
        content = _kubeconfig(record, authority, identity)
        pki.write_private(keys / f"{component}.kubeconfig", content)


def node_plan(
    record: Record, layout: Layout, number: int, tools: Tools, archives: Images
) -> NodePlan:
    """Form the plan of a real node."""
    spec, addresses, name = record.spec, record.addresses, node_name(number)
    fleet = load_fleet(Path(spec.fleet) if spec.fleet else None)
    programs = {program: str(tools.program(program)) for program in NODE_PROGRAMS}
    folders = sorted({str(Path(path).parent) for path in programs.values()})
    return NodePlan(
        name=name,
        number=number,
        folder=str(layout.node(name)),
        address=addresses.node(number),
        host_address=addresses.host,
        prefix=addresses.node_network.prefixlen,
        pods=addresses.pods(number),
        service_network=str(addresses.service_network),
        dns=addresses.dns_service,
        switch=addresses.switch,
        link=f"node{number}",
        cgroup=f"{addresses.cgroup}/{name}",
        routes={
            addresses.pods(other): addresses.node(other)
            for other in range(spec.nodes)
            if other != number
        },
        programs=programs,
        binds=[str(cache_root())],
        pause_archive=str(archives.pause),
        pki=str(layout.node(name) / "pki"),
        hardware=fleet.node(number, name).to_json(),
        environment={
            "PATH": ":".join([*folders, "/usr/sbin", "/usr/bin", "/sbin", "/bin"]),
            **tools.environment,
        },
    )
