"""The supervisor restarts what ends, and takes everything along when it ends itself."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Each program tells its PID through a FIFO and then stays.
SUPERVISED = """
import sys
from pathlib import Path
from toolchain.cluster.supervise import Program, Supervisor
folder = Path(sys.argv[1])
supervisor = Supervisor()
for name in ("one", "two"):
    script = f"echo {name} $$ > {folder}/news; exec sleep 600"
    supervisor.add(Program(name=name, log=folder / f"{name}.log", argv=["/bin/sh", "-c", script]))
supervisor.run()
"""
TIMEOUT_S = 20


@pytest.fixture
def news(tmp_path: Path) -> Iterator[int]:
    os.mkfifo(tmp_path / "news")
    handle = os.open(tmp_path / "news", os.O_RDWR)
    yield handle
    os.close(handle)


def heard(handle: int, count: int) -> dict[str, int]:
    """Wait for so many programs to tell their PID."""
    text = ""
    while text.count("\n") < count:
        ready, _, _ = select.select([handle], [], [], TIMEOUT_S)
        assert ready, f"only {text!r} within {TIMEOUT_S} s"
        text += os.read(handle, 4096).decode()
    return {name: int(pid) for name, pid in (line.split() for line in text.splitlines())}


def gone(pid: int) -> bool:
    """Wait for a process to end."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    ended = bool(select.select([handle], [], [], TIMEOUT_S)[0])
    os.close(handle)
    return ended


@pytest.fixture
def supervisor(tmp_path: Path, news: int) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", SUPERVISED, str(tmp_path)]) as process:
        yield process
        process.kill()


def test_a_killed_program_is_started_again(
    tmp_path: Path, news: int, supervisor: subprocess.Popen[bytes]
) -> None:
    first = heard(news, 2)
    os.kill(first["one"], signal.SIGKILL)
    again = heard(news, 1)
    assert set(again) == {"one"}
    assert again["one"] != first["one"]
    assert "one ended with -9, starting it again" in (tmp_path / "one.log").read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_programs_end_with_their_supervisor(
    news: int, supervisor: subprocess.Popen[bytes], number: signal.Signals
) -> None:
    programs = heard(news, 2)
    supervisor.send_signal(number)
    supervisor.wait(TIMEOUT_S)
    assert all(gone(pid) for pid in programs.values())
