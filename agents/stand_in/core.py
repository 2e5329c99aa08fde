"""What the stand-in writes and whether it may: names and facts in, texts out. No I/O.

This is the place that the real agents take, one operand after the other; each of them must keep
the file names and the contents below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rbln_stack import contract

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_RUN_DIR = "/run/rbln"


def content(name: str) -> str:
    """The text of a published file; ready files that nobody reads are empty."""
    return {contract.DRIVER_READY: _driver_ready(), contract.CDI_SPEC: _cdi_spec()}.get(name, "")


def missing(wanted: Iterable[Path], present: Iterable[Path]) -> tuple[Path, ...]:
    """The files still waited for."""
    there = set(present)
    return tuple(path for path in wanted if path not in there)


def _driver_ready() -> str:
    """Shell variables, as the toolkit sources them (S0-28)."""
    values = {
        "IS_HOST_DRIVER": "false",
        "RBLN_CTK_DAEMON_HOST_ROOT": contract.HOST_MOUNT,
        "RBLN_CTK_DAEMON_DRIVER_ROOT": f"{_RUN_DIR}/{contract.DRIVER_DIR}",
        "RBLN_CTK_DAEMON_CONTAINER_LIBRARY_PATH": "/usr/local/lib/rbln",
    }
    return "".join(f"{key}={value}\n" for key, value in values.items())


def _cdi_spec() -> str:
    """The smallest valid spec: a device must change something, and a variable harms nobody."""
    return (
        "cdiVersion: 0.5.0\n"
        f"kind: {contract.CDI_KIND}\n"
        "devices:\n"
        f"  - name: {contract.CDI_DEVICE}\n"
        "    containerEdits:\n"
        "      env:\n"
        "        - RBLN_STAND_IN=true\n"
    )
