"""What the agents' image is made of: the files of its build context and their common key.

Called by the image builder. The context is staged file by file, so that neither byte code nor the
permissions of a checkout reach the image.
"""

from __future__ import annotations

import hashlib
import shutil
import tomllib
from typing import TYPE_CHECKING

from toolchain.errors import ToolchainError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PROGRAM = "images/agent/rbln-agent"
CONTAINERFILE = "images/agent/Containerfile"
PIP = "images/agent/pip.txt"
REQUIREMENTS = "requirements/agent.txt"
ENTRY = "agents/main.py"
PACKAGES = ("agents",)
# All that agents share with the stack: a change elsewhere in it leaves the image as it is.
SHARED = ("rbln_stack/__init__.py", "rbln_stack/contract.py")
# Raised when the builder itself changes what comes out of the same files.
BUILD_REVISION = 1
SINGLE_FILES = (CONTAINERFILE, PROGRAM, PIP, REQUIREMENTS, ENTRY, *SHARED)


def context_files(project: Path) -> dict[str, Path]:
    """Context path → file, sorted."""
    missing = [name for name in SINGLE_FILES if not (project / name).is_file()]
    if missing:
        raise ToolchainError(
            f"{project} lacks {', '.join(missing)}, which the agents' image needs",
            "give the root of a complete checkout",
        )
    found = {name: project / name for name in SINGLE_FILES}
    for package in PACKAGES:
        for path in (project / package).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                found[path.relative_to(project).as_posix()] = path
    return dict(sorted(found.items()))


def input_key(files: Mapping[str, Path], *, base_digest: str, version: str) -> str:
    """One digest for all that decides the image."""
    total = hashlib.sha256(f"{BUILD_REVISION}\n{base_digest}\n{version}\n".encode())
    for name, path in sorted(files.items()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{content} {name}\n".encode())
    return total.hexdigest()


def stage(files: Mapping[str, Path], into: Path) -> None:
    """Copy the context with plain permissions."""
    for name, path in files.items():
        target = into / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        target.chmod(0o755 if name == PROGRAM else 0o644)
    for folder in [into, *(path for path in into.rglob("*") if path.is_dir())]:
        folder.chmod(0o755)


def project_version(project: Path) -> str:
    """The version in the project's own metadata."""
    return str(tomllib.loads((project / "pyproject.toml").read_text())["project"]["version"])
