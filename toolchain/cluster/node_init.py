"""PID 1 of a real node: makes its root, network and devices, then keeps its programs running.

Started inside new mount, UTS, IPC, network and PID namespaces (see servers.node_command). It must
import everything before it changes the root: afterwards the project may be out of sight.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

from simulator import fleet, kernel
from simulator import node as hardware
from toolchain.cluster import cgroups, node_plan
from toolchain.cluster.node_plan import NodePlan
from toolchain.cluster.supervise import Program, Supervisor

LOGS = Path("/var/log/rbln-stack")
DEVICES = {
    "null": (1, 3),
    "zero": (1, 5),
    "full": (1, 7),
    "random": (1, 8),
    "urandom": (1, 9),
    "kmsg": (1, 11),
    "tty": (5, 0),
    "fuse": (10, 229),
    "net/tun": (10, 200),
}
DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
SOCKET_TIMEOUT_S = 60.0
MNT_DETACH = 2


def run(*argv: str, text: str | None = None) -> str:
    """Run a command of the system; its failure ends the node with its message in the log."""
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def main() -> None:
    """Become the node that the plan file describes."""
    plan = NodePlan.read(Path(sys.argv[1]))
    cgroups.join(plan.cgroup)
    spec = fleet.NodeSpec.from_json(plan.hardware)
    run("mount", "--make-rprivate", "/")
    socket.sethostname(plan.name)
    make_network(plan)
    root = make_root(plan)
    hardware.prepare(root, spec)
    place_files(plan, root)
    enter(root)
    serve(plan, spec)


def make_network(plan: NodePlan) -> None:
    """Plug the node into the cluster's bridge and route the other nodes' pods."""
    switch = ("nsenter", f"--net=/run/netns/{plan.switch}", "--")
    # After a node's end its cable may take a moment to go; a new one needs the name now.
    subprocess.run([*switch, "ip", "link", "del", plan.link], capture_output=True, check=False)
    # PID 1 is this process for whoever asks from within this PID namespace.
    peer = ("peer", "name", "eth0", "netns", "1")
    run(*switch, "ip", "link", "add", plan.link, "type", "veth", *peer)
    run(*switch, "ip", "link", "set", plan.link, "master", "br0", "up")
    run("ip", "link", "set", "lo", "up")
    run("ip", "address", "add", f"{plan.address}/{plan.prefix}", "dev", "eth0")
    run("ip", "link", "set", "eth0", "up")
    # No way out of the cluster: a name or an image that is not here fails at once.
    run("ip", "route", "add", plan.service_network, "via", plan.host_address)
    for network, gateway in plan.routes.items():
        run("ip", "route", "add", network, "via", gateway)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def make_root(plan: NodePlan) -> Path:
    """Mount a writable copy of the machine's root with folders and devices of the node's own."""
    folder = Path(plan.folder)
    root = folder / "root"
    # Nothing of /run outlives a reboot; the writable layer and the kubelet's folder do.
    shutil.rmtree(folder / "run", ignore_errors=True)
    for name in ("root", "upper", "work", "run", "kubelet", "containerd", "log"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    layers = f"lowerdir=/,upperdir={folder / 'upper'},workdir={folder / 'work'}"
    run("mount", "-t", "overlay", "-o", layers, "overlay", str(root))
    run("mount", "-t", "proc", "proc", str(root / "proc"))
    run("mount", "--rbind", "/sys", str(root / "sys"))
    make_devices(root / "dev")
    run("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", str(root / "tmp"))
    # An overlay cannot carry another overlay's writable layer, so containerd needs a real folder.
    binds = {
        "run": folder / "run",
        "var/lib/kubelet": folder / "kubelet",
        "var/lib/containerd": folder / "containerd",
        "var/log": folder / "log",
    }
    binds |= {path.lstrip("/"): Path(path) for path in plan.binds}
    for inside, outside in binds.items():
        bind(outside, root / inside)
    for name in ("run/lock", "run/cni-ipam", "run/netns"):
        (root / name).mkdir(parents=True, exist_ok=True)
    return root


def bind(outside: Path, inside: Path) -> None:
    """Show a folder of the machine inside the node."""
    inside.mkdir(parents=True, exist_ok=True)
    run("mount", "--bind", str(outside), str(inside))


def make_devices(dev: Path) -> None:
    """Give the node a /dev of its own, so that its accelerators exist in it alone."""
    run("mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", str(dev))
    for name in ("net", "pts", "shm", "mqueue"):
        (dev / name).mkdir()
    for name, (major, minor) in DEVICES.items():
        os.mknod(dev / name, stat.S_IFCHR | 0o666, os.makedev(major, minor))
        (dev / name).chmod(0o666)
    for name, target in DEVICE_LINKS.items():
        (dev / name).symlink_to(target)
    run("mount", "-t", "devpts", "-o", "newinstance,ptmxmode=0666", "devpts", str(dev / "pts"))
    run("mount", "-t", "tmpfs", "tmpfs", str(dev / "shm"))
    run("mount", "-t", "mqueue", "mqueue", str(dev / "mqueue"))


def place_files(plan: NodePlan, root: Path) -> None:
    """Write the configs of containerd, CNI and kubelet, and the node's certificates."""
    default = json.loads(run(plan.programs["ctr"], "oci", "spec"))
    files = {
        node_plan.CONTAINERD_CONFIG: node_plan.containerd_config(plan),
        node_plan.BASE_SPEC: json.dumps(node_plan.base_spec(default)),
        node_plan.CNI_CONFIG: node_plan.cni_config(plan),
        node_plan.KUBELET_CONFIG: node_plan.kubelet_config(plan),
        "/etc/resolv.conf": "# The node has no way out of the cluster.\n",
        "/etc/hostname": f"{plan.name}\n",
        "/etc/hosts": f"127.0.0.1 localhost\n{plan.address} {plan.name}\n",
    }
    # The machine may have a CNI or containerd of its own: its settings must not leak in.
    for folder in ("etc/cni/net.d", "etc/containerd", "etc/cdi", "etc/kubernetes/pki"):
        shutil.rmtree(root / folder, ignore_errors=True)
    for name, content in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(content)
    shutil.copytree(plan.pki, root / node_plan.PKI.lstrip("/"))
    (root / LOGS.relative_to("/")).mkdir(parents=True, exist_ok=True)


def enter(root: Path) -> None:
    """Make the new root the only one, with mounts that propagate as on any node."""
    os.chdir(root)
    run("pivot_root", ".", ".")
    # The old root now lies over the new one at "."; umount(8) would follow the path to "/".
    if ctypes.CDLL(None, use_errno=True).umount2(b".", MNT_DETACH) != 0:
        sys.exit(f"the old root cannot be detached: {os.strerror(ctypes.get_errno())}")
    os.chdir("/")
    run("mount", "--make-rshared", "/")


def serve(plan: NodePlan, spec: fleet.NodeSpec) -> None:
    """Start the node's programs in order and keep them running."""
    os.environ.update(plan.environment)
    supervisor = Supervisor()

    def add(name: str, argv: list[str]) -> None:
        supervisor.add(Program(name=name, log=LOGS / f"{name}.log", argv=argv))

    supervisor.add(
        Program(name="kernel", log=LOGS / "kernel.log", function=lambda: kernel.serve(spec))
    )
    add("containerd", [plan.programs["containerd"], "--config", node_plan.CONTAINERD_CONFIG])
    wait_for_socket(node_plan.CONTAINERD_SOCKET)
    # No pod starts without it; all other images come from outside (see images.load).
    run(plan.programs["ctr"], "-n", "k8s.io", "images", "import", plan.pause_archive)
    add("kubelet", node_plan.kubelet_command(plan))
    add("kube-proxy", node_plan.proxy_command(plan))
    supervisor.run()


def wait_for_socket(path: str) -> None:
    """Wait until a server accepts; a socket offers no event for that, so it is tried."""
    deadline = time.monotonic() + SOCKET_TIMEOUT_S
    while time.monotonic() < deadline:
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(path)
            except OSError:
                time.sleep(0.02)
            else:
                return
    sys.exit(f"containerd did not answer at {path} within {SOCKET_TIMEOUT_S:.0f} s")


if __name__ == "__main__":
    main()
