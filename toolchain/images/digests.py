"""Digests of files, read in pieces so that an image's size does not matter."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def file_sha256(path: Path) -> str:
    """`sha256:…` of a file's content."""
    with path.open("rb") as source:
        return "sha256:" + hashlib.file_digest(source, "sha256").hexdigest()


def bytes_sha256(content: bytes) -> str:
    """`sha256:…` of bytes."""
    return "sha256:" + hashlib.sha256(content).hexdigest()
