"""The images of a cluster: which there are, how they come to be, and how they get onto a node."""

from __future__ import annotations

import platform
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulator.driver_files import driver_files
from toolchain import cache
from toolchain.cluster.addons import NFD_IMAGE
from toolchain.cluster.node_plan import PAUSE_IMAGE
from toolchain.errors import ToolchainError
from toolchain.images.base import obtain_base
from toolchain.images.build import build_agent_image
from toolchain.images.oci import FilesLayer, FileSpec, ImageConfig, TarLayer, write_image
from toolchain.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from toolchain.images.oci import BuiltImage, Layer
    from toolchain.progress import Reporter

NFD_USER = "65534:65534"
DRIVER_VERSION = "3.0.0"
DRIVER_IMAGE = f"localhost/rbln-driver-simulated:{DRIVER_VERSION}"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Images:
    """The archives that a node needs; no pod of any kind starts without pause."""

    pause: Path | None = None
    system: tuple[BuiltImage, ...] = ()
    operands: tuple[BuiltImage, ...] = ()


def _config(*entrypoint: str, user: str = "") -> ImageConfig:
    machine = platform.machine()
    return ImageConfig(
        architecture=ARCHITECTURES.get(machine, machine),
        entrypoint=entrypoint,
        user=user,
        env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
    )


def _programs(programs: Mapping[str, Path], *names: str) -> FilesLayer:
    return FilesLayer(
        {f"usr/bin/{name}": FileSpec(source=programs[name], mode=0o755) for name in names}
    )


def ensure(programs: Mapping[str, Path], root: Path, say: Reporter) -> Images:
    """Have all archives in the cache, made anew only where their input changed."""
    folder = root / "images"
    folder.mkdir(parents=True, exist_ok=True)

    def static(name: str, *names: str, user: str = "") -> BuiltImage:
        layer = _programs(programs, *names)
        return _written(folder, name, [layer], _config(f"/usr/bin/{names[0]}", user=user))

    with cache.locked(root / "images.lock"):
        pause = static(PAUSE_IMAGE, "pause")
        system = (
            static("localhost/coredns:1", "coredns"),
            static(NFD_IMAGE, "nfd-master", "nfd-worker", user=NFD_USER),
        )
        operands = (
            build_agent_image(PROJECT, folder, cache_root=root, log=say),
            _written(folder, DRIVER_IMAGE, _driver_layers(root, say), _config()),
        )
    return Images(pause.archive, system, operands)


def _driver_layers(root: Path, say: Reporter) -> list[Layer]:
    files = {
        path.lstrip("/"): FileSpec(link=spec.target)
        if spec.target is not None
        else FileSpec(content=spec.content, mode=spec.mode)
        for path, spec in driver_files(DRIVER_VERSION, platform.machine()).items()
    }
    return [TarLayer(obtain_base(root, log=say).tar), FilesLayer(files)]


def _written(folder: Path, name: str, layers: list[Layer], config: ImageConfig) -> BuiltImage:
    file_name = name.rsplit("/", 1)[-1].replace(":", "-")
    return write_image(folder / f"{file_name}.tar", name=name, layers=layers, config=config)


def load(image: BuiltImage, node: str, pid: int, ctr: Path) -> None:
    """Import an image into a node, unless it has that very image already."""
    inside = ["nsenter", f"--target={pid}", "--mount", "--pid", "--net", "--root", "--wd"]
    command = [*inside, str(ctr), "--namespace=k8s.io", "images"]
    listed = subprocess.run(
        [*command, "list", f"name=={image.name}"], capture_output=True, text=True, check=False
    )
    if image.digest in listed.stdout:
        return
    with image.archive.open("rb") as stream:
        done = subprocess.run(
            [*command, "import", "-"], stdin=stream, capture_output=True, check=False
        )
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip()
        raise ToolchainError(
            f"the image {image.name} could not be imported on {node} ({reason})",
            "check the free disk space, then run the command again",
        )
