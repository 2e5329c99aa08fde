"""The startup probe, run by the shell against a directory in place of the node's root."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from rbln_stack import contract
from rbln_stack.config.load import load
from rbln_stack.discovery import Found
from rbln_stack.plan import make_plan
from rbln_stack.pods.driver import startup_probe_data
from rbln_stack.profiles import RBLN
from tests.unit.rbln_stack.fleet import facts

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def script() -> str:
    (driver,) = make_plan(load({}), Found("live", (facts("n"),)), RBLN).drivers
    return startup_probe_data(driver)["startup-probe.sh"]


def probe(script: str, root: Path) -> tuple[int, str]:
    text = script.replace("/run/rbln", f"{root}/run/rbln").replace("/sys/", f"{root}/sys/")
    env = {"PATH": f"{root}/bin:/usr/bin:/bin"}
    done = subprocess.run(
        ["/bin/sh", "-c", text], env=env, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr.strip()


def smi(root: Path, status: int) -> None:
    path = root / "bin/rbln-smi"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\nexit {status}\n")
    path.chmod(0o755)


def test_checks_come_in_order_and_the_file_last(
    script: str, tmp_path: Path
) -> None:  # S0-09, S0-10
    validations = tmp_path / "run/rbln/validations"
    ready = validations / contract.DRIVER_CONTAINER_READY
    validations.mkdir(parents=True)
    ready.touch()  # left by a container that was killed
    assert probe(script, tmp_path) == (1, "kernel module rebellions is not loaded")
    assert not ready.exists()
    refcnt = tmp_path / "sys/module/rebellions/refcnt"
    refcnt.parent.mkdir(parents=True)
    refcnt.touch()
    assert probe(script, tmp_path) == (1, "rbln-smi is not in PATH")
    smi(tmp_path, 5)
    assert probe(script, tmp_path) == (1, "rbln-smi failed")
    assert not ready.exists()
    smi(tmp_path, 0)
    assert probe(script, tmp_path) == (0, "")
    assert [path.name for path in validations.iterdir()] == [ready.name]


def test_directory_is_made(script: str, tmp_path: Path) -> None:
    probe(script, tmp_path)
    assert (tmp_path / "run/rbln/validations").is_dir()


def test_script_names_the_paths_of_the_profile(script: str) -> None:
    assert f"validations={RBLN.validations_dir}\n" in script
    assert f"/{contract.DRIVER_CONTAINER_READY}" in script
    assert f"/sys/module/{RBLN.devices.module}/refcnt" in script
