"""The stand-in driver image and the libraries in it."""

import ctypes
import os
import platform
import subprocess
from pathlib import Path

import pytest

from simulator.driver_files import LIBRARIES, driver_files
from simulator.elf import MACHINES, SYMBOL, shared_object

HERE = platform.machine()


def write(folder: Path, content: bytes) -> Path:
    path = folder / "librbln-ml.so"
    path.write_bytes(content)
    return path


def test_unknown_architecture_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown architecture 'riscv64'; known: aarch64, x86_64"):
        driver_files("3.0.0", "riscv64")
    with pytest.raises(ValueError, match="known: aarch64, x86_64"):
        shared_object("a", "b", "riscv64")


@pytest.mark.skipif(HERE not in MACHINES, reason="the loader of this machine is for another one")
def test_loader_accepts_the_library(tmp_path: Path) -> None:
    path = write(tmp_path, shared_object("librbln-ml.so.3", "rbln version: 3.0.0", HERE))
    loaded = ctypes.CDLL(str(path))
    place = ctypes.addressof(ctypes.c_char.in_dll(loaded, SYMBOL))
    assert ctypes.string_at(place) == b"rbln version: 3.0.0"
    ran = subprocess.run(
        ["/bin/true"],
        check=False,
        capture_output=True,
        env={**os.environ, "LD_PRELOAD": str(path)},
    )
    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.parametrize("arch", sorted(MACHINES))
def test_library_is_for_its_machine(arch: str) -> None:
    content = shared_object("librbln-ml.so.3", "rbln version: 3.0.0", arch)
    assert content[:5] == b"\x7fELF\x02"
    assert int.from_bytes(content[18:20], "little") == MACHINES[arch]
    assert b"\0librbln-ml.so.3\0" in content


@pytest.mark.parametrize("arch", sorted(MACHINES))
@pytest.mark.parametrize("version", ["3.0.0", "3", "3.1.0-rc1"])
def test_every_library_link_leads_to_a_versioned_file(version: str, arch: str) -> None:
    files = driver_files(version, arch)
    for name in LIBRARIES:
        folder = f"usr/lib/{arch}-linux-gnu"
        path = f"{folder}/{name}.so"
        while (target := files[path].target) is not None:
            path = f"{folder}/{target}"
        assert f"rbln version: {version}\0".encode() in files[path].content
        assert f"{folder}/{name}.so.3" in files


def test_layer_is_the_same_every_time_and_in_order() -> None:
    files = driver_files("3.0.0")
    assert files == driver_files("3.0.0")
    assert list(files) == sorted(files)
    assert not any(path.startswith("/") for path in files)
    assert files["opt/rebellions/bin/rbln-driver"].mode == 0o755
    assert not any(b"@VERSION@" in entry.content for entry in files.values())
