"""Up, down and status of a cluster.

`up` either ends with a cluster that works or leaves nothing. Whatever an earlier run left behind,
killed at any point, is found by the record on disk and by the mark on its processes.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator.fleet import FleetError, load_fleet
from simulator.spec import UnknownProfileError, hardware
from toolchain import cache, obtain, pins
from toolchain.cluster import addons, api, cgroups, images, network, processes, servers, setup
from toolchain.cluster.images import Images
from toolchain.cluster.spec import (
    MAX_CLUSTERS,
    Addresses,
    ClusterSpec,
    Layout,
    Record,
    node_name,
)
from toolchain.errors import ToolchainError
from toolchain.paths import PROJECT, cache_root, state_root

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rbln_stack.kube import Cluster
    from toolchain.images.oci import BuiltImage
    from toolchain.obtain import Tools
    from toolchain.progress import Reporter

API_TIMEOUT_S = 60.0
NODES_TIMEOUT_S = 120.0
LABELS_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What `cluster status` shows."""

    name: str
    state: str
    kubeconfig: str
    api: str
    nodes: list[dict[str, Any]]
    kwok: int
    processes: int
    memory_mib: int


@dataclass(frozen=True, slots=True)
class Parts:
    """What a cluster is made of; a control plane alone needs no images."""

    tools: Tools
    images: Images


def up(spec: ClusterSpec, say: Reporter) -> Record:
    """Have the cluster that `spec` asks for; a second call with the same spec changes nothing."""
    spec = _possible(spec, say)
    layout = Layout.of(spec.name)
    with cache.locked(_lock(spec.name)):
        standing = Record.read(layout.record)
        if standing is not None and _healthy(layout, standing):
            return _keep(standing, spec, layout, say)
        if layout.root.exists() or standing is not None:
            say(f"cluster {spec.name}: removing what an earlier run left")
            _remove(layout, standing)
        parts = _have_parts(spec, say)
        record = _claim(spec)
        try:
            _make(record, layout, parts, say)
        except BaseException:
            if layout.logs.exists():
                say(f"cluster {spec.name}: did not come up; its logs are in {_keep_logs(layout)}")
            _remove(layout, record)
            raise
    return record


def _possible(spec: ClusterSpec, say: Reporter) -> ClusterSpec:
    """Check the request, and reduce it to what can be done without root."""
    spec.check()
    try:
        hardware(spec.profile)
        load_fleet(Path(spec.fleet) if spec.fleet else None)
    except (UnknownProfileError, FleetError) as error:
        raise ToolchainError(str(error), "") from error
    if sys.platform != "linux":
        raise ToolchainError(f"the embedded cluster does not run on {sys.platform}", "use Linux")
    if os.geteuid() == 0 or spec.nodes == 0:
        return spec
    say(
        f"cluster {spec.name}: not root, so its {spec.nodes} nodes are kwok's: pods are only "
        "simulated, no container runs, NFD does not run; use sudo for real nodes"
    )
    return replace(spec, nodes=0, kwok=spec.kwok + spec.nodes)


def _keep(standing: Record, spec: ClusterSpec, layout: Layout, say: Reporter) -> Record:
    if standing.spec != spec:
        changed = ", ".join(
            f"{key} {old} instead of {getattr(spec, key)}"
            for key, old in asdict(standing.spec).items()
            if old != getattr(spec, key)
        )
        raise ToolchainError(
            f"cluster {spec.name} is up already, with {changed}",
            f"run `rbln-stack cluster down --name {spec.name}` first, or choose another --name",
        )
    if standing.real_nodes:
        parts = _have_parts(spec, say)
        _load_images(layout, parts.tools, parts.images.operands)
    say(f"cluster {spec.name}: is up")
    return standing


def _have_parts(spec: ClusterSpec, say: Reporter) -> Parts:
    names = pins.CLUSTER if spec.nodes else pins.CONTROL_PLANE
    tools = obtain.obtain((*names, *(("kwok",) if spec.kwok else ())), say)
    if not spec.nodes:
        return Parts(tools, Images())
    with cache.explaining(cache_root()):
        tools = setup.with_system_programs(tools, cache_root(), say)
        return Parts(tools, images.ensure(tools.programs, cache_root(), say))


def have_everything(say: Reporter, *, engine: bool) -> list[dict[str, str]]:
    """Obtain all tools, and the images where this user can make them; tell where each came from."""
    tools = obtain.obtain((*pins.CLUSTER, "kwok", *(pins.ENGINE if engine else ())), say)
    if os.geteuid() == 0:
        _have_parts(ClusterSpec(), say)
    return [
        {"tool": name, "version": pins.BY_NAME[name].version, "origin": origin}
        for name, origin in tools.origins.items()
    ]


def _claim(spec: ClusterSpec) -> Record:
    """Take the first free cluster number of this machine."""
    layout = Layout.of(spec.name)
    for index in range(MAX_CLUSTERS):
        record = Record(spec=spec, index=index, real_nodes=spec.nodes > 0)
        if record.real_nodes:
            free = network.claim(record.addresses)
        else:
            # Without root there is nothing to make; the address itself is the claim.
            free = _is_free(record.addresses.host, servers.ETCD_PORT)
        if free:
            try:
                layout.root.mkdir(parents=True)
                layout.root.chmod(0o711)
                record.write(layout.record)
            except BaseException:
                _remove(layout, record)
                raise
            return record
    raise ToolchainError(
        f"all {MAX_CLUSTERS} cluster numbers of this machine are taken",
        "run `rbln-stack cluster down` for one that nobody needs",
    )


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _make(record: Record, layout: Layout, parts: Parts, say: Reporter) -> None:
    spec, addresses = record.spec, record.addresses
    if record.real_nodes:
        network.connect(addresses, spec.nodes)
    for name, port in servers.ports(record).items():
        if not _is_free(addresses.host, port):
            raise ToolchainError(
                f"port {port} at {addresses.host}, which the {name} needs, is taken",
                "stop the program that listens there"
                + (", or choose another with --api-port" if port == spec.api_port else ""),
            )
    setup.write_files(record, layout, parts.tools, parts.images)
    _start(layout)
    say(f"cluster {spec.name}: control plane started at {servers.api_url(record)}")
    with api.connect(layout.kubeconfig) as cluster:
        _wait_for_api(cluster, layout)
        if record.real_nodes:
            _furnish(cluster, record, layout, parts, say)
        if spec.kwok:
            addons.create_kwok_nodes(cluster, spec)
            _wait_for_nodes(cluster, spec.nodes + spec.kwok)
            say(f"cluster {spec.name}: {spec.kwok} kwok nodes are Ready")
    layout.ready.touch()


def _furnish(cluster: Cluster, record: Record, layout: Layout, parts: Parts, say: Reporter) -> None:
    """Wait for the real nodes and give them images, NFD and the name service."""
    spec, kubectl = record.spec, parts.tools.program("kubectl")
    _wait_for_nodes(cluster, spec.nodes)
    say(f"cluster {spec.name}: {spec.nodes} real nodes are Ready")
    # Before the pods that use them: a kubelet that misses an image asks again much later.
    _load_images(layout, parts.tools, parts.images.system)
    addons.apply_nfd(kubectl, layout, parts.tools.shares["nfd"] / "deployment")
    addons.apply_dns(kubectl, layout, record.addresses.dns_service)
    _load_images(layout, parts.tools, parts.images.operands)
    say(f"cluster {spec.name}: images are on the nodes")
    _wait_for_labels(cluster, spec)
    say(f"cluster {spec.name}: NFD has labelled the nodes")


def _start(layout: Layout) -> None:
    """Start the supervisor, which outlives this command and is no child of it."""
    layout.logs.mkdir(exist_ok=True)
    with (layout.logs / "supervisor.log").open("ab") as log:
        subprocess.run(
            ["setsid", "--fork", sys.executable, "-m", "toolchain.cluster.servers", layout.root],
            cwd=PROJECT,
            env={**os.environ, processes.MARK: str(layout.root)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=True,
        )


def _wait_for_api(cluster: Cluster, layout: Layout) -> None:
    api.wait_until(
        cluster,
        api.NAMESPACES,
        lambda found: "kube-system" in found,
        timeout_s=API_TIMEOUT_S,
        describe=lambda _: f"the API server does not answer: see {layout.logs}/kube-apiserver.log",
    )


def _wait_for_nodes(cluster: Cluster, count: int) -> None:
    def ready(found: api.Objects) -> int:
        return sum(api.is_ready(node) for node in found.values())

    api.wait_until(
        cluster,
        api.NODES,
        lambda found: len(found) >= count and ready(found) >= count,
        timeout_s=NODES_TIMEOUT_S + count * 0.1,
        describe=lambda found: f"{ready(found)} of {count} nodes are Ready, {len(found)} exist",
    )


def _wait_for_labels(cluster: Cluster, spec: ClusterSpec) -> None:
    wanted = addons.present_label(hardware(spec.profile))
    names = [node_name(number) for number in range(spec.nodes)]

    def unlabelled(found: api.Objects) -> list[str]:
        return [
            name
            for name in names
            if wanted not in found.get(name, {}).get("metadata", {}).get("labels", {})
        ]

    api.wait_until(
        cluster,
        api.NODES,
        lambda found: not unlabelled(found),
        timeout_s=LABELS_TIMEOUT_S,
        describe=lambda found: f"NFD has not labelled {', '.join(unlabelled(found))}",
    )


def _load_images(layout: Layout, tools: Tools, archives: Iterable[BuiltImage]) -> None:
    inits = processes.node_inits(processes.of_cluster(layout.root))
    ctr = tools.program("ctr")

    def load(item: tuple[str, processes.Process]) -> None:
        name, process = item
        for archive in archives:
            images.load(archive, name, process.pid, ctr)

    with ThreadPoolExecutor() as pool:
        list(pool.map(load, inits.items()))


def _healthy(layout: Layout, record: Record) -> bool:
    """Tell whether everything that `up` started still stands."""
    found = processes.of_cluster(layout.root)
    names = {Path(p.argv[0]).name for p in found}
    expected = set(servers.commands(record, layout, servers.NAMES))
    return (
        layout.ready.exists()
        and processes.supervisor(found) is not None
        and expected <= names
        and len(processes.node_inits(found)) == record.spec.nodes
        and api.answers(layout.kubeconfig)
    )


def down(name: str, say: Reporter) -> bool:
    """Remove a cluster and all its traces; False when there was none."""
    layout = Layout.of(name)
    with cache.locked(_lock(name)):
        record = Record.read(layout.record)
        if not layout.root.exists() and not processes.of_cluster(layout.root):
            return False
        _remove(layout, record)
        say(f"cluster {name}: removed")
    return True


def _remove(layout: Layout, record: Record | None) -> None:
    processes.end_all(layout.root)
    if record is not None and record.real_nodes:
        cgroups.remove(record.addresses.cgroup)
        network.release(record.addresses)
    shutil.rmtree(layout.root, ignore_errors=True)
    if layout.root.exists():
        raise ToolchainError(f"{layout.root} cannot be removed", "remove it by hand, as root")


def _keep_logs(layout: Layout) -> Path:
    kept = state_root() / "last-failure" / layout.root.name
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(layout.logs, kept)
    for folder in layout.root.glob("nodes/*/log/rbln-stack"):
        shutil.copytree(folder, kept / folder.parent.parent.name)
    return kept


def _lock(name: str) -> Path:
    return state_root() / "clusters" / f".{name}.lock"


def status(name: str) -> Status | None:
    """Look at a cluster; None when there is none."""
    layout = Layout.of(name)
    record = Record.read(layout.record)
    if record is None:
        return None
    found = processes.of_cluster(layout.root)
    inits = processes.node_inits(found)
    return Status(
        name=name,
        state="up" if _healthy(layout, record) else "broken",
        kubeconfig=str(layout.kubeconfig),
        api=servers.api_url(record),
        nodes=[
            {
                "name": node_name(number),
                "address": record.addresses.node(number),
                "running": node_name(number) in inits,
            }
            for number in range(record.spec.nodes)
        ],
        kwok=record.spec.kwok,
        processes=len(found),
        memory_mib=sum(p.rss for p in found) >> 20,
    )


def kubeconfig(name: str) -> Path:
    """Give the path of a cluster's kubeconfig."""
    path = Layout.of(name).kubeconfig
    if not path.exists():
        raise ToolchainError(f"there is no cluster {name}", "make it with `rbln-stack cluster up`")
    return path


__all__ = ["Addresses", "Status", "down", "kubeconfig", "status", "up"]
