"""What runs inside a cluster from the start: NFD, the name service, kwok's nodes."""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from simulator.fleet import load_fleet
from simulator.spec import hardware
from toolchain.cluster.api import NODES
from toolchain.cluster.spec import kwok_name
from toolchain.errors import ToolchainError
from toolchain.pins import CONTAINERD, KUBERNETES, NFD

if TYPE_CHECKING:
    from rbln_stack.kube import Cluster, Manifest
    from simulator.spec import Hardware, NodeSpec
    from toolchain.cluster.spec import ClusterSpec, Layout

NFD_IMAGE = f"registry.k8s.io/nfd/node-feature-discovery:v{NFD}"
NFD_NAMESPACE = "node-feature-discovery"
# Nodes here change in tests, and a look at a simulated PCI tree costs little.
WORKER_CONFIG = "core:\n  sleepInterval: 10s\n"
FEATURE = "feature.node.kubernetes.io"
THREADS = 16
# Beside real nodes, keeps pods that want one away.
KWOK_TAINT = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}


def apply(kubectl: Path, layout: Layout, *argv: str, text: str | None = None) -> None:
    """Apply manifests with the cluster's own kubectl."""
    done = subprocess.run(
        [str(kubectl), f"--kubeconfig={layout.kubeconfig}", "apply", "--server-side", *argv],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ToolchainError(
            f"the cluster's own parts could not be applied ({done.stderr.strip()})",
            f"look at the logs in {layout.logs}",
        )


def apply_nfd(kubectl: Path, layout: Layout, manifests: Path) -> None:
    """Apply NFD's own manifests, without the garbage collector, which is not built here."""
    tree = layout.root / "nfd"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(manifests, tree, copy_function=shutil.copyfile)
    overlay = tree / "overlays" / "default" / "kustomization.yaml"
    overlay.write_text(overlay.read_text().replace("- ../../base/gc\n", ""))
    (tree / "components" / "worker-config" / "nfd-worker.conf.example").write_text(WORKER_CONFIG)
    apply(kubectl, layout, "-k", str(overlay.parent))


def apply_dns(kubectl: Path, layout: Layout, address: str) -> None:
    """Apply the name service."""
    template = Template(Path(__file__).with_name("coredns.yaml").read_text())
    apply(kubectl, layout, "-f", "-", text=template.substitute(address=address))


def present_label(device: Hardware) -> str:
    """The label by which NFD says that a device of this kind is on the node."""
    return f"{FEATURE}/pci-{device.pci_class[:4]}_{device.vendor_id}.present"


def kwok_node(spec: ClusterSpec, number: int) -> Manifest:
    """Form a kwok node with the labels that NFD would give to such a node."""
    fleet = load_fleet(Path(spec.fleet) if spec.fleet else None)
    node = fleet.node(number, kwok_name(number))
    capacity = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node.name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "kubernetes.io/hostname": node.name,
                "type": "kwok",
                present_label(hardware(spec.profile)): "true",
                f"{FEATURE}/system-os_release.ID": node.os_id,
                f"{FEATURE}/system-os_release.VERSION_ID": node.os_version,
                f"{FEATURE}/kernel-version.full": node.kernel,
            },
        },
        "spec": {"taints": [KWOK_TAINT] if spec.nodes else []},
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "nodeInfo": _node_info(node),
        },
    }


def _node_info(node: NodeSpec) -> dict[str, str]:
    """What a kubelet would report of such a node."""
    return {
        "architecture": "amd64",
        "bootID": node.name,
        "containerRuntimeVersion": f"containerd://{CONTAINERD}",
        "kernelVersion": node.kernel,
        "kubeProxyVersion": "",
        "kubeletVersion": f"v{KUBERNETES}",
        "machineID": node.name,
        "operatingSystem": "linux",
        "osImage": node.os_name,
        "systemUUID": node.name,
    }


def create_kwok_nodes(cluster: Cluster, spec: ClusterSpec) -> None:
    """Create kwok's nodes, many at a time."""
    with ThreadPoolExecutor(THREADS) as pool:
        nodes = (kwok_node(spec, number) for number in range(spec.kwok))
        list(pool.map(lambda node: cluster.create(NODES, node), nodes))
