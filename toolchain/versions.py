"""Versions as numbers, read out of whatever a program prints."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolchain.pins import Probe

_NUMBER = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")
PROBE_TIMEOUT_S = 10


def parse(text: str) -> tuple[int, int, int] | None:
    """Read the first version number in a text.

    >>> parse("Kubernetes v1.34.4"), parse("none")
    ((1, 34, 4), None)
    """
    match = _NUMBER.search(text)
    if match is None:
        return None
    major, minor, patch = match.groups()
    return int(major), int(minor), int(patch or 0)


def fits(found: str, oldest: str, below: str) -> bool:
    """Tell whether oldest <= found < below; empty limits accept anything."""
    version, low, high = parse(found), parse(oldest), parse(below)
    if low is None or high is None:
        return True
    return version is not None and low <= version < high


def fitting_on_path(probe: Probe) -> Path | None:
    """Find a program on PATH in a version that fits."""
    found = shutil.which(probe.program)
    if found is None:
        return None
    if not probe.argv:
        return Path(found)
    try:
        answer = subprocess.run(
            [found, *probe.argv],
            capture_output=True,
            text=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = answer.stdout + answer.stderr
    return Path(found) if fits(text, probe.oldest, probe.below) else None
