from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import yaml

from agents.stand_in import core, shell

if TYPE_CHECKING:
    from pathlib import Path


def test_stale_files_go_before_the_wait_and_nothing_is_published_when_stopped(
    tmp_path: Path,
) -> None:  # S0-29
    stale, stop = tmp_path / "toolkit-ready", threading.Event()
    stale.touch()
    stop.set()
    assert shell.serve([tmp_path / "rbln.yaml"], [stale], stop, once=True) == 1
    assert not stale.exists()


def test_once_publishes_and_leaves_it(tmp_path: Path) -> None:  # S0-23
    ready = tmp_path / "validations/driver-ready"
    assert shell.serve([], [ready], threading.Event(), once=True) == 0
    assert "RBLN_CTK_DAEMON_DRIVER_ROOT=/run/rbln/driver\n" in ready.read_text()
    assert [path.name for path in ready.parent.iterdir()] == ["driver-ready"]


def test_same_content_keeps_its_time(tmp_path: Path) -> None:
    ready = tmp_path / "driver-ready"
    shell.put(ready, core.content(ready.name))
    before = ready.stat()
    shell.put(ready, core.content(ready.name))
    assert (ready.stat().st_mtime_ns, ready.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_spec_is_a_valid_device(tmp_path: Path) -> None:  # S0-39
    spec = yaml.safe_load(core.content("rbln.yaml"))
    assert spec["kind"] == "rebellions.ai/npu"
    assert [device["name"] for device in spec["devices"]] == ["runtime"]
    assert spec["devices"][0]["containerEdits"]


def test_published_files_are_withdrawn_on_sigterm(tmp_path: Path) -> None:  # S0-50
    wanted, ready = tmp_path / "driver-ready", tmp_path / "rbln.yaml"
    command = [sys.executable, "-m", "agents.main", "stand-in"]
    command += ["--wait-for", str(wanted), "--publish", str(ready)]
    with subprocess.Popen(command) as process:
        wanted.touch()
        deadline = time.monotonic() + 20
        while not ready.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert ready.exists()
        process.terminate()
        assert process.wait(20) == 0
    assert not ready.exists()
