"""The processes of a cluster, found by a mark in their environment: no names, no stale PIDs."""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MARK = "RBLN_STACK_CLUSTER"
KILL_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Process:
    """A live process of the cluster."""

    pid: int
    argv: tuple[str, ...]

    @property
    def rss(self) -> int:
        """Its own memory in bytes, shared pages counted by share; 0 when it has just gone."""
        try:
            text = Path(f"/proc/{self.pid}/smaps_rollup").read_text()
        except OSError:
            return 0
        row = next((line for line in text.splitlines() if line.startswith("Pss:")), "Pss: 0 kB")
        return int(row.split()[1]) * 1024


def of_cluster(root: Path) -> list[Process]:
    """List the processes that carry the mark of the cluster in this folder."""
    wanted = f"{MARK}={root}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with suppress(OSError):
            if wanted not in (folder / "environ").read_bytes().split(b"\0"):
                continue
            argv = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
            if argv:  # a zombie has none
                found.append(Process(int(folder.name), tuple(argv)))
    return found


def supervisor(processes: Iterable[Process]) -> Process | None:
    """Pick the parent of all."""
    return next((p for p in processes if "toolchain.cluster.servers" in p.argv), None)


def node_inits(processes: Iterable[Process]) -> dict[str, Process]:
    """Pick PID 1 of each node, by node name."""
    return {
        Path(p.argv[-1]).stem: p
        for p in processes
        if "toolchain.cluster.node_init" in p.argv and Path(p.argv[0]).name != "unshare"
    }


def end_all(root: Path) -> None:
    """End every process of the cluster and wait until they are gone.

    The supervisor goes first, else it would start the others again.
    """
    deadline = time.monotonic() + KILL_TIMEOUT_S
    while found := of_cluster(root):
        top = supervisor(found)
        handles = [handle for p in found if (handle := _open(p.pid)) is not None]
        for process in [top] if top else found:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        for handle in handles:
            # A process handle becomes readable when its process ends.
            select.select([handle], [], [], max(0.0, deadline - time.monotonic()) if top else 2.0)
            os.close(handle)
        if time.monotonic() > deadline:
            left = [f"{p.pid} {' '.join(p.argv[:2])}" for p in of_cluster(root)]
            raise TimeoutError(f"still running after {KILL_TIMEOUT_S:.0f} s: {left}")


def _open(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
