"""The cache of obtained bundles: whole or absent, checked against its own manifest.

An entry is a folder `<name>-<key>` with bin/, share/ and manifest.json (file -> size, time, sum).
It is made beside its place and renamed, so a half-made entry is never seen.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

from toolchain.errors import ToolchainError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from toolchain.pins import Bundle

MANIFEST = "manifest.json"


def key_of(bundle: Bundle, sources: Iterable[Path], platform: str) -> str:
    """Hash the pins and every source file that goes into a bundle."""
    digest = hashlib.sha256(json.dumps([asdict(bundle), platform], sort_keys=True).encode())
    for source in sorted(sources):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def sha256(path: Path) -> str:
    """Hash a file's content."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_manifest(entry: Path) -> None:
    """Record every regular file of an entry."""
    files = {
        str(path.relative_to(entry)): {
            "size": path.stat().st_size,
            "mtime_ns": path.stat().st_mtime_ns,
            "sha256": sha256(path),
        }
        for path in sorted(entry.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }
    (entry / MANIFEST).write_text(json.dumps(files, indent=1))


def damage(entry: Path) -> str | None:
    """Say what is wrong with an entry, or None if it is whole.

    Content is hashed only where size or time differ from the record: hashing half a gigabyte
    at each start would cost more than the cluster's own start.
    """
    try:
        files = json.loads((entry / MANIFEST).read_text())
    except FileNotFoundError:
        return "its manifest is missing"
    except ValueError:
        return "its manifest is not readable"
    for name, recorded in files.items():
        path = entry / name
        try:
            seen = path.stat()
        except FileNotFoundError:
            return f"{name} is missing"
        if (seen.st_size, seen.st_mtime_ns) == (recorded["size"], recorded["mtime_ns"]):
            continue
        if seen.st_size != recorded["size"] or sha256(path) != recorded["sha256"]:
            return f"{name} is corrupt (its checksum differs from the recorded one)"
    return None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock, so that two runs never make the same thing at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


@contextmanager
def new_entry(target: Path) -> Iterator[Path]:
    """Give a folder to fill; it becomes `target` if the block ends well, else it goes away."""
    target.parent.mkdir(parents=True, exist_ok=True)
    work = target.parent / f"{tempfile.gettempprefix()}-{target.name}-{os.getpid()}"
    shutil.rmtree(work, ignore_errors=True)
    try:
        (work / "bin").mkdir(parents=True)
        yield work
        write_manifest(work)
        shutil.rmtree(target, ignore_errors=True)
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def explaining(folder: Path) -> Iterator[None]:
    """Turn a full or read-only disk into an error that says what to do; let the rest through."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise ToolchainError(
                f"the disk of the cache {folder} is full",
                "free some space, or set XDG_CACHE_HOME to a folder on a larger disk",
            ) from error
        if error.errno in {errno.EACCES, errno.EROFS, errno.EPERM}:
            raise ToolchainError(
                f"the cache {folder} cannot be written ({error.strerror})",
                "set XDG_CACHE_HOME to a folder of your own",
            ) from error
        raise


def require_space(folder: Path, needed: int) -> None:
    """Fail early when a build would fill the disk half-way."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ToolchainError(
            f"the cache {folder} has {free >> 20} MiB free and this build needs {needed >> 20} MiB",
            "free some space, or set XDG_CACHE_HOME to a folder on a larger disk",
        )
