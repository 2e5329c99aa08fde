"""The shell of the simulated kernel and the node it serves, below a temporary root."""

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.driver_files import MODULE_FILE, driver_files
from simulator.fleet import load_fleet
from simulator.kernel import Kernel, KernelError, ask, open_handles, set_fault
from simulator.node import KERNEL_LABEL, prepare
from simulator.spec import NodeSpec
from simulator.state import CONTROL

SPEC = load_fleet().node(1, "node-1")
BDF = SPEC.npus()[0].bdf


class NoMounts:
    """Leaves the directories as they are, and notes what was asked."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def tmpfs(self, target: Path) -> None:
        self.calls.append(f"tmpfs {target.name}")

    def overlay(self, lower: Path, changes: Path, target: Path) -> None:
        assert lower == target
        assert sorted(path.name for path in changes.iterdir()) == ["upper", "work"]
        self.calls.append(f"overlay {target.name}")
        for part in ("upper", "work"):
            (changes / part).rmdir()
        changes.rmdir()

    def bind(self, source: Path, target: Path) -> None:
        self.calls.append(f"bind {source.name} {target.name}")

    def detach(self, target: Path) -> None:
        self.calls.append(f"detach {target.name}")
        for left in target.iterdir():
            left.rmdir()


def mark_device(path: Path) -> None:
    path.write_text("device", encoding="utf-8")


def make_node(root: Path, spec: NodeSpec) -> NoMounts:
    mounts = NoMounts()
    (root / "sys/class/net").mkdir(parents=True)
    (root / "usr/sbin").mkdir(parents=True)
    prepare(root, spec, mount=mounts, make_device=mark_device)
    return mounts


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Path]:
    """A prepared node whose kernel answers from another thread until the test ends."""
    make_node(tmp_path, SPEC)
    kernel = Kernel(SPEC, tmp_path, mark_device)
    running = True

    def run() -> None:
        while running:
            kernel.step()

    thread = threading.Thread(target=run)
    thread.start()
    yield tmp_path
    running = False
    # Wakes the kernel without waiting for an answer: it may have stopped already.
    (tmp_path / CONTROL).write_text("stop\n", encoding="utf-8")
    thread.join(10)
    kernel.close()


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_node_has_its_own_system_and_kernel(tmp_path: Path) -> None:
    mounts = make_node(tmp_path, SPEC)
    assert (tmp_path / "etc/os-release").readlink() == Path("../usr/lib/os-release")
    release = text(tmp_path / "etc/os-release").splitlines()
    assert {'ID="ubuntu"', 'VERSION_ID="24.04"', 'NAME="Ubuntu"'} < set(release)
    features = tmp_path / "etc/kubernetes/node-feature-discovery/features.d/kernel"
    assert text(features) == f"{KERNEL_LABEL}=6.8.0-45-generic\n"
    assert [call for call in mounts.calls if call.startswith("overlay")] == [
        "overlay module",
        "overlay class",
        "overlay devices",
        "overlay drivers",
    ]
    assert mounts.calls[-1] == "detach .simulator"
    assert not (tmp_path / "run/.simulator").exists()


def test_real_module_programs_keep_their_names(tmp_path: Path) -> None:
    (tmp_path / "usr/sbin").mkdir(parents=True)
    (tmp_path / "usr/sbin/modprobe").symlink_to("../bin/kmod")
    (tmp_path / "usr/sbin/rmmod").write_text("real", encoding="utf-8")
    (tmp_path / "sbin").symlink_to("/usr/sbin")
    mounts = NoMounts()
    prepare(tmp_path, SPEC, mount=mounts, make_device=mark_device)
    kept = tmp_path / "usr/lib/kmod.real"
    assert (kept / "modprobe").readlink() == Path("/usr/sbin/../bin/kmod")
    assert text(kept / "rmmod") == "real"
    assert os.access(tmp_path / "usr/sbin/modprobe", os.X_OK)
    assert not (tmp_path / "usr/sbin/modprobe").is_symlink()
    assert not any(call.startswith("bind") for call in mounts.calls)


def test_node_with_an_installed_driver_boots_with_it(tmp_path: Path) -> None:
    values = json.loads(SPEC.to_json()) | {"host_driver": "2.1.0"}
    make_node(tmp_path, NodeSpec.from_json(json.dumps(values)))
    assert text(tmp_path / "sys/module/rebellions/version") == "2.1.0\n"
    assert (tmp_path / MODULE_FILE).exists()
    assert (tmp_path / "usr/bin/rbln-smi").exists()


def test_load_and_unload_move_the_devices(node: Path) -> None:
    ask(node, "load", "3.0.0")
    assert text(node / "sys/module/rebellions/refcnt") == "0\n"
    assert (node / "dev/rbln0").exists()
    assert text(node / f"sys/bus/pci/drivers/rebellions/{BDF}/vendor") == "0x1eff\n"
    assert text(node / "sys/class/rebellions/rbln0/device/device") == "0x1250\n"
    with pytest.raises(KernelError, match="EEXIST"):
        ask(node, "load", "3.0.0")
    ask(node, "unload")
    assert not (node / "sys/module/rebellions").exists()
    assert not list((node / "dev").glob("rbln*"))
    assert not list((node / "sys/module/.simulated/replies").iterdir())


def test_faults_switch_while_the_node_runs(node: Path) -> None:
    set_fault(node, "driver-load-fails", on=True)
    assert (node / "sys/module/.simulated/faults/driver-load-fails").exists()
    with pytest.raises(KernelError, match="ENODEV"):
        ask(node, "load", "3.0.0")
    set_fault(node, "driver-load-fails", on=False)
    ask(node, "load", "3.0.0")
    set_fault(node, "device-unhealthy", on=True)
    assert text(node / "sys/class/rebellions/rbln0/status") == "3\n"
    assert text(node / "sys/class/rebellions/rbln1/status") == "0\n"


def test_writes_to_driver_files_rebind_a_device(node: Path) -> None:
    drivers = node / "sys/bus/pci/drivers"
    ask(node, "load", "3.0.0")
    (drivers / "rebellions/unbind").write_text(BDF, encoding="utf-8")
    device = node / f"sys/bus/pci/devices/{BDF}"
    (device / "driver_override").write_text("vfio-pci\n", encoding="utf-8")
    (drivers / "vfio-pci/bind").write_text(f"{BDF}\n", encoding="utf-8")
    # Such writes have no answer; that of a later request says that they were taken.
    set_fault(node, "smi-hangs", on=False)
    assert (device / "driver").readlink() == Path("../../drivers/vfio-pci")
    assert (node / "dev/vfio/10").exists()


def test_open_device_files_are_counted_by_name(tmp_path: Path) -> None:
    handles = tmp_path / "7/fd"
    handles.mkdir(parents=True)
    (handles / "0").symlink_to("/dev/null")
    (handles / "3").symlink_to("/dev/rbln0")
    (handles / "4").symlink_to("/rbln1")
    (tmp_path / "8").mkdir()
    assert open_handles(tmp_path, {"rbln0", "rbln1"}) == 2


def in_node(node: Path, name: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run a script of the image with the node's root in place of `/`."""
    content = driver_files("3.0.0")[name].content.decode()
    for folder in ("/sys", "/usr/lib", "/host"):
        content = content.replace(f"={folder}", f"={node}{folder}").replace(
            f' "{folder}', f' "{node}{folder}'
        )
    script = node / name.rpartition("/")[2]
    script.write_text(content, encoding="utf-8")
    return subprocess.run(
        ["/bin/sh", str(script), *args], check=False, capture_output=True, text=True, timeout=20
    )


def test_module_tools_load_list_and_unload(node: Path) -> None:
    assert "not found" in in_node(node, "usr/sbin/modprobe", "rebellions").stderr
    assert in_node(node, "usr/sbin/modinfo", "-F", "version", "rebellions").returncode == 1
    module = node / MODULE_FILE
    module.parent.mkdir(parents=True)
    module.write_bytes(driver_files("3.0.0")[MODULE_FILE].content)
    assert in_node(node, "usr/sbin/modinfo", "-F", "version", "rebellions").stdout == "3.0.0\n"
    assert in_node(node, "usr/sbin/modprobe", "rebellions").returncode == 0
    assert text(node / "sys/module/rebellions/version") == "3.0.0\n"
    again = in_node(node, "usr/sbin/insmod", str(module))
    assert (again.returncode, "loaded already" in again.stderr) == (1, True)
    assert "rebellions" in in_node(node, "usr/sbin/lsmod").stdout
    set_fault(node, "module-busy", on=True)
    busy = in_node(node, "usr/sbin/rmmod", "rebellions")
    assert (busy.returncode, "in use" in busy.stderr) == (1, True)
    set_fault(node, "module-busy", on=False)
    assert in_node(node, "usr/sbin/rmmod", "rebellions").returncode == 0
    assert in_node(node, "usr/sbin/modprobe", "-r", "rebellions").returncode == 0
    assert "not currently loaded" in in_node(node, "usr/sbin/rmmod", "rebellions").stderr


def test_smi_shows_devices_only_with_a_driver(node: Path) -> None:
    bare = in_node(node, "usr/bin/rbln-smi", "-j")
    assert (bare.returncode, bare.stdout) == (1, "")
    ask(node, "load", "3.0.0")
    set_fault(node, "device-unhealthy", on=True)
    shown = json.loads(in_node(node, "usr/bin/rbln-smi", "-j", "-g").stdout)
    assert shown["KMD_version"] == "3.0.0"
    first, second = shown["devices"]
    assert (first["status"], second["status"]) == ("fault", "normal")
    assert first["group_id"] == "0"
    assert (second["device"], second["name"]) == ("rbln1", "RBLN-CA25")
    assert first["pci"] == {
        "dev": "0x1250",
        "bus_id": BDF,
        "numa_node": "0",
        "link_speed": "32.0GT/s",
        "link_width": "16",
    }
    assert "rbln1" in in_node(node, "usr/bin/rbln-smi").stdout
