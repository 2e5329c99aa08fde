"""Keep a set of programs running: the one parent of a cluster's servers, and PID 1 of a node.

Every program is restarted when it ends. A program dies with its supervisor (parent-death signal),
so that killing the supervisor can leave nothing behind. SIGTERM ends all, last started first.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_PR_SET_PDEATHSIG = 1
# A program that ends at once is not started more often than this.
RESTART_PAUSE_S = 1.0
STOP_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A command with its log, or a function of ours that runs in a process of its own."""

    name: str
    log: Path
    argv: Sequence[str] = ()
    environment: dict[str, str] = field(default_factory=dict)
    function: Callable[[], object] | None = None


def start(program: Program) -> int:
    """Start a program as a child that dies with this process; give its PID."""
    parent = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        # A parent may have had signals ignored (nohup does); Go programs would keep that.
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        _redirect(program.log)
        if program.function is not None:
            program.function()
            os._exit(0)
        os.execvpe(program.argv[0], list(program.argv), {**os.environ, **program.environment})  # noqa: S606
    except BaseException as error:  # noqa: BLE001 - nothing may run on in the child
        os.write(2, f"{program.name}: cannot be started: {error!r}\n".encode())
        os._exit(127)


def _redirect(log: Path) -> None:
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.closerange(3, 256)


class Supervisor:
    """Runs programs until it is told to stop."""

    def __init__(self) -> None:
        self._running: dict[int, Program] = {}
        self._waiting: list[tuple[float, Program]] = []
        self._stopping = False
        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wake = reader
        signal.set_wakeup_fd(writer)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def _stop(self, *_: object) -> None:
        self._stopping = True

    def add(self, program: Program) -> int:
        """Start a program and keep it running from now on."""
        pid = start(program)
        self._running[pid] = program
        return pid

    def run(self) -> NoReturn:
        """Restart what ends until SIGTERM; then end everything and exit."""
        while not self._stopping:
            self._reap()
            now = time.monotonic()
            due = [program for at, program in self._waiting if at <= now]
            self._waiting = [(at, program) for at, program in self._waiting if at > now]
            for program in due:
                self.add(program)
            pause = min((at - now for at, _ in self._waiting), default=None)
            self._sleep(pause)
        self.shut_down()
        os._exit(0)

    def _sleep(self, seconds: float | None) -> None:
        select.select([self._wake], [], [], seconds)
        try:
            while os.read(self._wake, 512):
                pass
        except BlockingIOError:
            return

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            program = self._running.pop(pid, None)
            if program is not None and not self._stopping:
                code = os.waitstatus_to_exitcode(status)
                with program.log.open("a") as log:
                    log.write(f"supervisor: {program.name} ended with {code}, starting it again\n")
                self._waiting.append((time.monotonic() + RESTART_PAUSE_S, program))

    def shut_down(self) -> None:
        """End the programs, last started first, each with a moment to finish."""
        for pid in reversed(list(self._running)):
            _signal(pid, signal.SIGTERM)
            deadline = time.monotonic() + STOP_TIMEOUT_S
            while pid in self._running and time.monotonic() < deadline:
                self._sleep(0.2)
                self._reap()
            if pid in self._running:
                _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
