"""Files that are written from the models: write one, or tell whether it is up to date."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_or_check(path: Path, wanted: str, module: str, arguments: list[str]) -> int:
    """Write the file, or with --check compare it; the answer is the exit code."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write(f"usage: python -m {module} [--check]\n")
        return 2
    if not arguments:
        path.write_text(wanted, encoding="utf-8")
        return 0
    if path.is_file() and path.read_text(encoding="utf-8") == wanted:
        return 0
    sys.stderr.write(f"{path} is out of date: run python -m {module}\n")
    return 1
