"""Builds the agents' image with buildah: no registry, no engine, nothing left behind.

Called by `python -m toolchain.images` and by the embedded cluster. buildah works in storage of
its own that is deleted afterwards, and in a mount namespace of its own, since its overlay driver
would leave mounts on the machine otherwise.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolchain.debian import DebTree, Log, Runner, library_dirs, obtain, run_program
from toolchain.errors import ToolchainError
from toolchain.images.base import Base, debian_architecture, obtain_base
from toolchain.images.context import (
    CONTAINERFILE,
    PIP,
    REQUIREMENTS,
    context_files,
    input_key,
    project_version,
    stage,
)
from toolchain.images.oci import BuiltImage, ImageConfig, TarLayer, pack_layout, write_image
from toolchain.images.wheels import obtain_wheels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

AGENT_IMAGE = "localhost/rbln-agent"
BASE_IMAGE = "localhost/rbln-base:build"
DRIVERS = ("overlay", "vfs")
WHEELS_INSIDE = "/wheels"
LOADER_CACHE = "/etc/ld.so.cache"


# buildah starts itself again without LD_LIBRARY_PATH, so the libraries unpacked with it are
# made known by a cache that only this mount namespace sees.
WITH_LIBRARIES = f'mount --bind "$1" {LOADER_CACHE} && shift && exec "$@"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Buildah:
    """How buildah is called: its program, environment, private directories and storage driver."""

    program: Path
    work: Path
    env: Mapping[str, str]
    driver: str
    loader_cache: Path | None

    def argv(self, *arguments: str) -> list[str]:
        """A call in private storage and in a private mount namespace."""
        shield = ["unshare", "--mount", "--propagation", "private"]
        if self.loader_cache is not None:
            shield += ["sh", "-c", WITH_LIBRARIES, "sh", str(self.loader_cache)]
        return [
            *shield,
            str(self.program),
            *("--root", str(self.work / "storage"), "--runroot", str(self.work / "run")),
            *("--storage-driver", self.driver),
            *("--registries-conf", str(self.work / "registries.conf")),
            *arguments,
        ]


def build_arguments(context: Path, *, name: str, version: str, wheels: Path) -> list[str]:
    """What `buildah build` is asked for; the pinned pip runs out of its own wheel."""
    pip = next(wheels.glob("pip-*.whl")).name
    values = {
        "BASE": BASE_IMAGE,
        "PIP": f"python3 {WHEELS_INSIDE}/{pip}/pip",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": WHEELS_INSIDE,
        "VERSION": version,
    }
    return [
        "build",
        *("--isolation", "chroot", "--pull-never", "--no-cache", "--format", "oci"),
        *("--timestamp", "0", "--signature-policy", str(context.parent / "policy.json")),
        *("--volume", f"{wheels}:{WHEELS_INSIDE}:ro"),
        *(f"--build-arg={key}={value}" for key, value in values.items()),
        *("--file", str(context / CONTAINERFILE), "--tag", name),
        str(context),
    ]


def build_agent_image(
    project: Path, out_dir: Path, *, cache_root: Path, log: Log, run: Runner = run_program
) -> BuiltImage:
    """The archive of the agents' image; made anew only when something it depends on changed."""
    version = project_version(project)
    files = context_files(project)
    base = obtain_base(cache_root, log=log, run=run)
    key = input_key(files, base_digest=base.digest, version=version)
    archive = out_dir / f"rbln-agent-{version}.tar"
    known = remembered(archive, key)
    if known is not None:
        log(f"{known.name} is up to date: {archive}")
        return known
    start = time.monotonic()
    name = f"{AGENT_IMAGE}:{version}"
    requirements = [files[REQUIREMENTS], files[PIP]]
    wheels = obtain_wheels(cache_root, base.python, requirements, log=log, run=run)
    out_dir.mkdir(parents=True, exist_ok=True)
    scratch_parent = cache_root / "images"
    with tempfile.TemporaryDirectory(dir=scratch_parent, prefix=".build-") as scratch:
        work = Path(scratch)
        stage(files, work / "context")
        # A file may have been edited since: the note is about what was built.
        staged = {name: work / "context" / name for name in files}
        key = input_key(staged, base_digest=base.digest, version=version)
        buildah = _prepare(work, cache_root, base, log=log, run=run)
        log(f"building {name}")
        arguments = build_arguments(work / "context", name=name, version=version, wheels=wheels)
        _call(buildah, arguments, run)
        policy = ("--signature-policy", str(work / "policy.json"))
        target = f"oci:{work / 'layout'}:image"
        _call(buildah, ["push", *policy, name, target], run)
        image = pack_layout(work / "layout", archive, name=name)
    remember(image, key)
    log(f"built {name} in {time.monotonic() - start:.0f} s: {archive}")
    return image


def remembered(archive: Path, key: str) -> BuiltImage | None:
    """The image of an earlier run, if it was made of the same input and is still whole."""
    try:
        facts = json.loads(archive.with_suffix(".json").read_text())
        size = archive.stat().st_size
    except (OSError, ValueError):
        return None
    if facts.get("key") != key or facts.get("size_bytes") != size:
        return None
    return BuiltImage(archive, facts["name"], facts["digest"], size)


def remember(image: BuiltImage, key: str) -> None:
    """Note beside the archive what it was made of."""
    facts = {"key": key, "name": image.name, "digest": image.digest, "size_bytes": image.size_bytes}
    image.archive.with_suffix(".json").write_text(json.dumps(facts, indent=1))


def _prepare(work: Path, cache_root: Path, base: Base, *, log: Log, run: Runner) -> Buildah:
    if os.geteuid():
        raise ToolchainError(
            "building an image needs root, for mounts in a namespace of its own",
            "run it as root, or build where a container engine is (images/README.md)",
        )
    tools = obtain({"buildah": "buildah"}, cache_root / "debs/buildah", log=log, run=run)
    env = tools.environment(os.environ) | _settings(work)
    cache = None if tools.tree is None else _loader_cache(work, tools.tree, run)
    archive = work / "base.tar"
    config = ImageConfig(architecture=debian_architecture(platform.machine()), cmd=("/bin/sh",))
    write_image(archive, name=BASE_IMAGE, layers=[TarLayer(base.tar)], config=config)
    pull = ["pull", "--signature-policy", str(work / "policy.json"), f"oci-archive:{archive}"]
    program = tools.paths["buildah"]
    for driver in DRIVERS:
        (work / "storage.conf").write_text(f'[storage]\ndriver = "{driver}"\n')
        buildah = Buildah(program=program, work=work, env=env, driver=driver, loader_cache=cache)
        done = run(buildah.argv(*pull), env)
        if not done.code:
            archive.unlink()
            return buildah
        log(f"buildah cannot use its {driver} storage here: {done.tail(1)}")
        shutil.rmtree(work / "storage", ignore_errors=True)
    raise ToolchainError(
        f"buildah can use none of the storage drivers {', '.join(DRIVERS)} below {work.parent}",
        "give it a cache on a disk that takes overlay mounts, and the right to mount",
    )


def _settings(work: Path) -> dict[str, str]:
    (work / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    (work / "registries.conf").write_text("unqualified-search-registries = []\n")
    (work / "containers.conf").write_text("")
    (work / "tmp").mkdir()
    return {
        "CONTAINERS_CONF": str(work / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(work / "storage.conf"),
        "TMPDIR": str(work / "tmp"),
    }


def _loader_cache(work: Path, tree: DebTree, run: Runner) -> Path:
    cache = work / "ld.so.cache"
    folders = map(str, library_dirs(tree.root))
    path = {
        **os.environ,
        "PATH": os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]),
    }
    done = run(["ldconfig", "-X", "-C", str(cache), *folders], path)
    if done.code or not cache.exists():
        raise ToolchainError(
            f"ldconfig could not list the libraries below {tree.root}: {done.tail(2)}",
            "install buildah by the system's package manager; it is used when on PATH",
        )
    return cache


def _call(buildah: Buildah, arguments: Sequence[str], run: Runner) -> None:
    done = run(buildah.argv(*arguments), buildah.env)
    if done.code:
        raise ToolchainError(
            f"`buildah {arguments[0]}` failed with code {done.code}; its last lines:\n"
            f"{done.tail(20)}\n",
            "mend what these lines name (images/agent/Containerfile, requirements/agent.txt)",
        )
