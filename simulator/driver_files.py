"""The files of the stand-in driver image, as one layer on a Debian base.

Called by the image builder, and by `simulator.node` for a node whose driver is installed on the
host. The result depends on the arguments alone.
"""

from dataclasses import dataclass
from pathlib import Path

from simulator.elf import MACHINES, shared_object

LIBRARIES = ("librbln-ccl", "librbln-ml", "librbln-thunk")
MODULE_FILE = "usr/lib/modules/simulated/rebellions.ko"
"""Text in place of a kernel object: what the module tools read is its version."""

MODULE_TOOLS = ("insmod", "lsmod", "modinfo", "modprobe", "rmmod")

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSpec:
    """One file of an image layer: content and mode, or the target of a symbolic link."""

    content: bytes = b""
    mode: int = 0o644
    target: str | None = None


def module_tool() -> FileSpec:
    """Return the program that stands in for all programs of kmod, by the name it is called."""
    return FileSpec(content=(_HERE / "tools" / "module-tool").read_bytes(), mode=0o755)


def host_driver_files(version: str, arch: str = "x86_64") -> dict[str, FileSpec]:
    """Return what an installed driver leaves on a host: module, libraries, `rbln-smi`."""
    if arch not in MACHINES:
        raise ValueError(f"unknown architecture {arch!r}; known: {', '.join(sorted(MACHINES))}")
    module = f"version={version}\nvermagic=simulated SMP mod_unload\n"
    files = {
        MODULE_FILE: FileSpec(content=module.encode()),
        "usr/bin/rbln-smi": _script("rbln-smi", version),
    }
    for name in LIBRARIES:
        files |= _library(f"usr/lib/{arch}-linux-gnu/{name}.so", version, arch)
    return dict(sorted(files.items()))


def driver_files(version: str, arch: str = "x86_64") -> dict[str, FileSpec]:
    """Return the layer, by path in the image without a leading slash."""
    tools = {f"usr/sbin/{name}": module_tool() for name in MODULE_TOOLS}
    program = {"opt/rebellions/bin/rbln-driver": _script("rbln-driver", version)}
    return dict(sorted((host_driver_files(version, arch) | tools | program).items()))


def _script(name: str, version: str) -> FileSpec:
    text = (_HERE / "driver_image" / name).read_text(encoding="utf-8")
    return FileSpec(content=text.replace("@VERSION@", version).encode(), mode=0o755)


def _library(path: str, version: str, arch: str) -> dict[str, FileSpec]:
    name = path.rpartition("/")[2]
    major = version.split(".", maxsplit=1)[0]
    content = shared_object(f"{name}.{major}", f"rbln version: {version}", arch)
    links = {path: f"{name}.{major}"}
    # A version of one number is the SONAME itself.
    if major != version:
        links[f"{path}.{major}"] = f"{name}.{version}"
    return {f"{path}.{version}": FileSpec(content=content)} | {
        link: FileSpec(target=target, mode=0o777) for link, target in links.items()
    }
