"""The cgroups of a cluster: one per node, below one per cluster, in every hierarchy of the machine.

Works on the unified hierarchy (version 2) and on the older one with a folder per controller.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
# Processes of a version 2 cgroup must be in leaves, so a node's own programs get one.
LEAF = "node"
REMOVE_TIMEOUT_S = 10.0


def unified() -> bool:
    """Tell whether the machine has version 2 alone."""
    return (ROOT / "cgroup.controllers").exists()


def hierarchies() -> list[Path]:
    """List the mounted hierarchies."""
    if unified():
        return [ROOT]
    return sorted(
        path
        for path in ROOT.iterdir()
        if path.is_dir() and not path.is_symlink() and (path / "cgroup.procs").exists()
    )


def join(name: str) -> None:
    """Make the cgroup `name` in every hierarchy and put this process into it."""
    for hierarchy in hierarchies():
        folder = hierarchy
        for part in Path(name).parts:
            _delegate(folder)
            folder = folder / part
            folder.mkdir(exist_ok=True)
            _fill_cpuset(folder)
        if unified():
            _delegate(folder)
            folder = folder / LEAF
            folder.mkdir(exist_ok=True)
        (folder / "cgroup.procs").write_text(str(os.getpid()) if unified() else "0")


def _delegate(folder: Path) -> None:
    control = folder / "cgroup.subtree_control"
    if unified() and control.exists():
        wanted = (folder / "cgroup.controllers").read_text().split()
        control.write_text(" ".join(f"+{controller}" for controller in wanted))


def _fill_cpuset(folder: Path) -> None:
    """Copy the parent's processors and memories: an empty cpuset admits no process."""
    if folder.parent.name != "cpuset" and not (folder.parent / "cpuset.cpus").exists():
        return
    for name in ("cpuset.cpus", "cpuset.mems"):
        own = folder / name
        if own.exists() and not unified() and not own.read_text().strip():
            own.write_text((folder.parent / name).read_text().strip())


def members(name: str) -> set[int]:
    """List the processes in a cgroup and below, in any hierarchy."""
    found: set[int] = set()
    for hierarchy in hierarchies():
        for listing in (hierarchy / name).rglob("cgroup.procs"):
            found |= {int(pid) for pid in listing.read_text().split() if pid != "0"}
    return found


def remove(name: str) -> None:
    """End what is left in a cgroup and remove it; it goes away when its last process has."""
    deadline = time.monotonic() + REMOVE_TIMEOUT_S
    while True:
        for pid in members(name):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if _removed(name):
            return
        if time.monotonic() > deadline:
            left = [str(h / name) for h in hierarchies() if (h / name).exists()]
            raise TimeoutError(f"cgroups still in use after {REMOVE_TIMEOUT_S:.0f} s: {left}")
        time.sleep(0.02)  # the kernel gives no event for a dying cgroup of version 1


def _removed(name: str) -> bool:
    done = True
    for hierarchy in hierarchies():
        top = hierarchy / name
        if not top.exists():
            continue
        for folder in sorted((p for p in top.rglob("*") if p.is_dir()), reverse=True):
            done &= _rmdir(folder)
        done &= _rmdir(top)
    return done


def _rmdir(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
