"""Official releases: download, compare with the published checksum, unpack what is needed."""

from __future__ import annotations

import hashlib
import platform
import tarfile
import tempfile
from typing import IO, TYPE_CHECKING

import httpx

from toolchain.errors import ToolchainError

if TYPE_CHECKING:
    from pathlib import Path

    from toolchain.pins import Release

# Short: on a closed network the build must begin soon. A name that does not resolve fails at once.
CONNECT_TIMEOUT_S = 3.0
READ_TIMEOUT_S = 30.0

_ARCH = {"x86_64": "amd64", "aarch64": "arm64"}
_PULUMI_ARCH = {"x86_64": "x64", "aarch64": "arm64"}


def _filled(template: str) -> str:
    machine = platform.machine()
    return template.format(
        arch=_ARCH.get(machine, machine), pulumi_arch=_PULUMI_ARCH.get(machine, machine)
    )


def published_sum(listing: str, file_name: str) -> str | None:
    """Find a file's sha256 in a checksum list (`<sum>  <name>` lines, or the sum alone)."""
    rows = [line.split() for line in listing.splitlines() if line.strip()]
    for row in rows:
        if len(row) > 1 and row[1].lstrip("*").rsplit("/", 1)[-1] == file_name:
            return row[0].lower()
    if len(rows) == 1 and len(rows[0]) == 1:
        return rows[0][0].lower()
    return None


def fetch(release: Release, entry: Path) -> bool:
    """Fill an entry from a release; False when the release cannot be reached from here.

    Raises:
        ToolchainError: It was reached but is not what its publisher says it is.
    """
    url, sums = _filled(release.url), _filled(release.checksums)
    timeout = httpx.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    digest = hashlib.sha256()
    with tempfile.TemporaryFile(dir=entry) as archive:
        try:
            with httpx.Client(timeout=timeout, follow_redirects=True) as client:
                listing = client.get(sums).raise_for_status().text
                with client.stream("GET", url) as answer:
                    answer.raise_for_status()
                    for chunk in answer.iter_bytes(1 << 20):
                        digest.update(chunk)
                        archive.write(chunk)
        except httpx.HTTPError:
            return False
        expected = published_sum(listing, url.rsplit("/", 1)[-1])
        if expected != digest.hexdigest():
            raise ToolchainError(
                f"{url} does not have the published checksum {expected}",
                "run again; if it stays so, the download is tampered with on its way",
            )
        archive.seek(0)
        _unpack(archive, release.members, entry)
    return True


def _unpack(archive: IO[bytes], members: dict[str, str], entry: Path) -> None:
    with tarfile.open(fileobj=archive, mode="r:*") as tar:
        for member, target in members.items():
            source = tar.extractfile(member)
            if source is None:
                raise ToolchainError(f"the release holds no file {member}", "pin another version")
            path = entry / target
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(source.read())
            path.chmod(0o755)
