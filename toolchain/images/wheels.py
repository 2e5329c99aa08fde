"""Wheels for the Python of a base image, fetched by this machine's pip with its own settings.

Called by the image builder, so that the build itself needs neither network nor the machine's
index, proxy or certificates, and none of these can reach the image.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from toolchain.debian import Log, Runner, run_program
from toolchain.errors import ToolchainError

if TYPE_CHECKING:
    from collections.abc import Sequence

OLDEST_GLIBC_MINOR = 5


def platform_tags(machine: str, glibc_minor: int) -> list[str]:
    """Wheel platforms that a system with this C library takes, the newest first."""
    tags = [f"manylinux_2_{minor}" for minor in range(glibc_minor, OLDEST_GLIBC_MINOR - 1, -1)]
    old = ["manylinux2014", "manylinux2010", "manylinux1", "linux"]
    return [f"{tag}_{machine}" for tag in [*tags, *old]]


def download_argv(
    python: str, platforms: Sequence[str], requirements: Sequence[Path], into: Path
) -> list[str]:
    """The call of pip; `python` is the base's minor version, e.g. `3.11`."""
    abis = [f"cp{python.replace('.', '')}", "abi3", "none"]
    return [
        sys.executable,
        *("-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
        *("--require-hashes", "--no-deps", "--only-binary=:all:"),
        *("--implementation", "cp", "--python-version", python),
        *(f"--abi={abi}" for abi in abis),
        *(f"--platform={tag}" for tag in platforms),
        *(f"--requirement={path}" for path in requirements),
        f"--dest={into}",
    ]


def glibc_minor() -> int:
    """The minor version of this system's C library; the base has the same suite."""
    version = (os.confstr("CS_GNU_LIBC_VERSION") or "").removeprefix("glibc 2.")
    if not version.split(".")[0].isdigit():
        raise ToolchainError(
            "this system's C library is not glibc, so the base's wheels cannot be chosen",
            "build the image where a Python base image can be pulled (images/README.md)",
        )
    return int(version.split(".")[0])


def obtain_wheels(
    cache_root: Path,
    python: str,
    requirements: Sequence[Path],
    *,
    log: Log,
    run: Runner = run_program,
) -> Path:
    """A directory with exactly the wheels of the requirement files; fetched once."""
    platforms = platform_tags(platform.machine(), glibc_minor())
    recipe = hashlib.sha256("\n".join([python, *platforms]).encode())
    for path in requirements:
        recipe.update(path.read_bytes())
    place = cache_root / "images" / f"wheels-{python}-{recipe.hexdigest()[:12]}"
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    log(f"fetching wheels for Python {python}")
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".wheels-") as scratch:
        made = Path(scratch) / "wheels"
        made.mkdir()
        done = run(download_argv(python, platforms, requirements, made), os.environ)
        if done.code:
            files = ", ".join(map(str, requirements))
            raise ToolchainError(
                f"pip failed on {files} for Python {python}; its last lines:\n{done.tail()}\n",
                "check pip's index settings and that each package has a wheel for this Python",
            )
        made.rename(place)
    return place
