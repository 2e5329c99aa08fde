"""The agents' image, built for real: same input, same digest, and nothing left behind."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from toolchain import paths
from toolchain.images.build import build_agent_image

if TYPE_CHECKING:
    from toolchain.images.oci import BuiltImage

pytestmark = pytest.mark.cluster


def mounts_below(folder: Path) -> list[str]:
    return [line for line in Path("/proc/mounts").read_text().splitlines() if str(folder) in line]


def build(out: Path) -> BuiltImage:
    return build_agent_image(paths.PROJECT, out, cache_root=paths.cache_root(), log=print)


def test_two_builds_from_scratch_give_one_digest(tmp_path: Path) -> None:
    first, second = build(tmp_path / "1"), build(tmp_path / "2")
    assert first.digest == second.digest
    assert first.archive.read_bytes() == second.archive.read_bytes()
    assert mounts_below(paths.cache_root() / "images") == []

    before = first.archive.stat().st_mtime_ns
    assert build(tmp_path / "1") == first
    assert first.archive.stat().st_mtime_ns == before

    with tarfile.open(first.archive) as archive:
        index = archive.extractfile("index.json")
        assert index is not None
        entry = json.load(index)["manifests"][0]
    assert entry["digest"] == first.digest
    assert entry["annotations"]["io.containerd.image.name"] == first.name
