"""Obtain the programs that a command needs: PATH, then official release, then build.

The only entrance for the rest of the project: `obtain(pins.CLUSTER, say)`.
"""

from __future__ import annotations

import json
import platform
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolchain import cache, gobuild, pins, progress, release, versions
from toolchain.errors import ToolchainError
from toolchain.paths import cache_root

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# Two at a time: while one links on a single core or downloads, the other compiles.
AT_ONCE = 2
TIMES = "times.json"


@dataclass(frozen=True, slots=True)
class Tools:
    """Where each program and shared file is."""

    programs: dict[str, Path]
    shares: dict[str, Path]
    origins: dict[str, str]
    environment: dict[str, str] = field(default_factory=dict)
    """What programs that are not built here need to find their libraries."""

    def program(self, name: str) -> Path:
        """Give a program's path; asking for one that was not obtained is a bug."""
        return self.programs[name]


def obtain(
    names: Iterable[str], say: progress.Reporter, *, root: Path | None = None, search: bool = True
) -> Tools:
    """Have every named bundle, from the nearest source; `search=False` skips PATH."""
    root = root or cache_root()
    with cache.explaining(root):
        return _obtain(names, say, root, search=search)


def _obtain(names: Iterable[str], say: progress.Reporter, root: Path, *, search: bool) -> Tools:
    bundles = [pins.BY_NAME[name] for name in names]
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        found = list(
            pool.map(lambda bundle: _obtain_one(bundle, say, root, search=search), bundles)
        )
    tools = Tools({}, {}, {})
    for bundle, (programs, share, origin) in zip(bundles, found, strict=True):
        tools.programs.update(programs)
        tools.origins[bundle.name] = origin
        if share is not None:
            tools.shares[bundle.name] = share
    return tools


def _obtain_one(
    bundle: pins.Bundle, say: progress.Reporter, root: Path, *, search: bool
) -> tuple[dict[str, Path], Path | None, str]:
    if search and bundle.probes:
        found = {probe.program: versions.fitting_on_path(probe) for probe in bundle.probes}
        programs = {name: path for name, path in found.items() if path is not None}
        if len(programs) == len(found):
            return programs, None, "PATH"
    entry = root / "tools" / f"{bundle.name}-{_key(bundle)}"
    with cache.locked(root / "tools" / f"{bundle.name}.lock"):
        _ensure(bundle, entry, say, root)
    programs = {path.name: path for path in (entry / "bin").iterdir()}
    return programs, entry / "share", "cache"


def _key(bundle: pins.Bundle) -> str:
    return cache.key_of(bundle, gobuild.sources(bundle), platform.machine())


def _ensure(bundle: pins.Bundle, entry: Path, say: progress.Reporter, root: Path) -> None:
    if entry.exists():
        wrong = cache.damage(entry)
        if wrong is None:
            return
        say(f"{bundle.name} {bundle.version}: the cached copy is unusable, {wrong}; making it anew")
    start = time.monotonic()
    with cache.new_entry(entry) as work:
        if bundle.release is not None and release.fetch(bundle.release, work):
            how = "downloaded"
        else:
            how = "built"
            _build(bundle, work, say, root)
    took = time.monotonic() - start
    if how == "built":
        _remember(root, bundle.name, took)
    say(f"{bundle.name} {bundle.version}: {how} in {progress.span(took)}")


def _build(bundle: pins.Bundle, work: Path, say: progress.Reporter, root: Path) -> None:
    last = _times(root).get(bundle.name)
    usual = (
        f"took {progress.span(last)} last time"
        if last
        else (f"takes about {progress.span(bundle.typical_s)} on two cores")
    )
    say(f"{bundle.name} {bundle.version}: building from source ({usual})")

    def tick(gone: float) -> None:
        say(f"{bundle.name} {bundle.version}: still building, {progress.span(gone)} ({usual})")

    with progress.ticking(tick):
        go = gobuild.find_go(root / "go")
        gobuild.build(bundle, work, go, root / "logs" / f"{bundle.name}.log")


def _times(root: Path) -> dict[str, float]:
    try:
        content: dict[str, float] = json.loads((root / TIMES).read_text())
    except (OSError, ValueError):
        return {}
    return content


def _remember(root: Path, name: str, took: float) -> None:
    with cache.locked(root / f"{TIMES}.lock"):
        (root / TIMES).write_text(json.dumps(_times(root) | {name: round(took, 1)}))


__all__ = ["ToolchainError", "Tools", "obtain"]
