"""Turns the new root of a node into a machine with NPUs.

Called once by the node's first process, as root, before the root changes: `<root>/sys` is a
recursive bind of the real one, `<root>/dev` a tmpfs. Links below `root` may be absolute, so they
are never followed here.
"""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from simulator.driver_files import MODULE_TOOLS, FileSpec, host_driver_files, module_tool
from simulator.spec import NodeSpec
from simulator.state import files, initial_state
from simulator.tree import NodeMaker, apply, difference, make_null_device

FEATURES = "etc/kubernetes/node-feature-discovery/features.d"
KERNEL_LABEL = "feature.node.kubernetes.io/kernel-version.full"
REAL_TOOLS = "usr/lib/kmod.real"
OVERLAID = ("sys/module", "sys/class", "sys/bus/pci/devices", "sys/bus/pci/drivers")


class Mounter(Protocol):
    """The mounts that `prepare` needs."""

    def tmpfs(self, target: Path) -> None:
        """Mount an empty file system in memory."""

    def overlay(self, lower: Path, changes: Path, target: Path) -> None:
        """Mount `lower` with the layer `changes/upper` on it; `changes/work` must exist."""

    def bind(self, source: Path, target: Path) -> None:
        """Show a directory at a second place."""

    def detach(self, target: Path) -> None:
        """Take a mount out of the tree; what was mounted from it stays."""


class SystemMounter:
    """Mounts with the programs of the host."""

    def tmpfs(self, target: Path) -> None:
        """See `Mounter`."""
        _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", target)

    def overlay(self, lower: Path, changes: Path, target: Path) -> None:
        """See `Mounter`."""
        layers = f"lowerdir={lower},upperdir={changes / 'upper'},workdir={changes / 'work'}"
        _run("mount", "-t", "overlay", "-o", layers, "overlay", target)

    def bind(self, source: Path, target: Path) -> None:
        """See `Mounter`."""
        _run("mount", "--bind", source, target)

    def detach(self, target: Path) -> None:
        """See `Mounter`."""
        _run("umount", "-l", target)


_SYSTEM = SystemMounter()


def prepare(
    root: Path,
    spec: NodeSpec,
    *,
    mount: Mounter = _SYSTEM,
    make_device: NodeMaker = make_null_device,
) -> None:
    """Give the node its system, kernel version, module tools and NPUs."""
    _write_identity(root, spec)
    _install_tools(root)
    if spec.host_driver is not None:
        _install(root, host_driver_files(spec.host_driver))
    _open_sysfs(root, mount)
    apply(root, difference({}, files(spec, initial_state(spec))), make_device)


def _write_identity(root: Path, spec: NodeSpec) -> None:
    name = spec.os_name.split()[0]
    values = {
        "PRETTY_NAME": spec.os_name,
        "NAME": name,
        "VERSION_ID": spec.os_version,
        "ID": spec.os_id,
    }
    release = "".join(f'{key}="{value}"\n' for key, value in values.items())
    # The kernel is shared by all nodes; this file is how feature discovery learns another.
    feature = f"{KERNEL_LABEL}={spec.kernel}\n"
    _install(
        root,
        {
            "usr/lib/os-release": FileSpec(content=release.encode()),
            "etc/os-release": FileSpec(target="../usr/lib/os-release"),
            f"{FEATURES}/kernel": FileSpec(content=feature.encode()),
        },
    )


def _install_tools(root: Path) -> None:
    """Put the stand-ins in place, each real program where its own name still tells it its task."""
    places = [root / "usr/sbin"]
    if not (root / "sbin").is_symlink() and (root / "sbin").is_dir():
        places.append(root / "sbin")
    for place in places:
        for name in MODULE_TOOLS:
            _keep_real(root, place / name)
            _install(root, {str((place / name).relative_to(root)): module_tool()})


def _keep_real(root: Path, program: Path) -> None:
    # Not beside it as `<name>.real`: kmod is one program that looks at the name it is called by.
    kept = root / REAL_TOOLS / program.name
    if kept.is_symlink() or kept.exists():
        return
    if program.is_symlink():
        target = program.readlink()
        inside = Path("/") / program.parent.relative_to(root) / target
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.symlink_to(inside)
    elif program.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        program.rename(kept)


def _open_sysfs(root: Path, mount: Mounter) -> None:
    """Make the directories of sysfs writable in which a driver shows itself."""
    stage = root / "run" / ".simulator"
    stage.mkdir(parents=True, exist_ok=True)
    mount.tmpfs(stage)
    net, live = root / "sys/class/net", stage / "net"
    live.mkdir()
    if has_net := net.is_dir():
        mount.bind(net, live)
    for path in OVERLAID:
        changes = stage / path.replace("/", "-")
        for part in ("upper", "work"):
            (changes / part).mkdir(parents=True)
        (root / path).mkdir(parents=True, exist_ok=True)
        mount.overlay(root / path, changes, root / path)
    if has_net:
        # Interfaces come and go, but an overlay remembers a name that was once absent.
        mount.bind(live, net)
        mount.detach(live)
    mount.detach(stage)
    stage.rmdir()


def _install(root: Path, entries: Mapping[str, FileSpec]) -> None:
    for name, entry in entries.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if entry.target is not None:
            path.symlink_to(entry.target)
        else:
            path.write_bytes(entry.content)
            path.chmod(entry.mode)


def _run(*command: str | Path) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True)
