from __future__ import annotations

import pytest

from rbln_stack import contract, hostpaths
from rbln_stack.profiles import RBLN

CONTAINERD = contract.RUNTIMES["containerd"]
OPERANDS = {
    "driver": hostpaths.driver(RBLN, "ubuntu"),
    "validator": hostpaths.validator(RBLN, "main"),
    "toolkit": hostpaths.toolkit(RBLN, "main", CONTAINERD, "cdi"),
    "device plugin": hostpaths.device_plugin(RBLN, "main"),
    "feature discovery": hostpaths.feature_discovery(RBLN, "main"),
    "daemon": hostpaths.daemon(RBLN, "main"),
    "exporter": hostpaths.exporter(RBLN, "main"),
}


@pytest.mark.parametrize("operand", OPERANDS)
def test_the_root_of_a_node_is_read_only_and_names_are_unique(operand: str) -> None:
    paths = [path for found in OPERANDS[operand].values() for path in found]
    assert all(path.access == "ro" for path in paths if path.path == "/")
    for found in OPERANDS[operand].values():
        assert len({path.mount for path in found}) == len(found)
    by_volume = {path.volume: (path.path, path.kind) for path in paths}
    assert all(by_volume[path.volume] == (path.path, path.kind) for path in paths)


def writable(containers: hostpaths.Containers) -> set[str]:
    return {p.path for found in containers.values() for p in found if p.access == "rw"}


def test_only_one_mode_of_the_toolkit_may_write_the_runtime_s_config() -> None:
    edits = hostpaths.toolkit(RBLN, "main", CONTAINERD, "runtime-config")
    assert writable(edits) - writable(OPERANDS["toolkit"]) == {"/etc/containerd"}


@pytest.mark.parametrize("word", contract.RUNTIMES)
def test_exactly_the_socket_of_one_runtime(word: str) -> None:  # S0-40, S0-41
    runtime = contract.RUNTIMES[word]
    found = hostpaths.toolkit(RBLN, "main", runtime, "cdi")["main"]
    assert [path.path for path in found if path.kind == "Socket"] == [runtime.socket]


def test_driver_allow_list() -> None:  # DC-32, S0-07
    assert writable(OPERANDS["driver"]) == {"/run/rbln/driver", "/run/rbln/validations"}
    (shown,) = [p for p in OPERANDS["driver"][RBLN.driver_container] if p.volume == "host-driver"]
    assert shown.propagation == "Bidirectional"


def test_subscriptions_by_os() -> None:
    def mounted(os_id: str) -> list[str]:
        found = hostpaths.driver(RBLN, os_id)[RBLN.driver_container]
        return [p.mount for p in found if p.volume.startswith("subscription")]

    assert mounted("ubuntu") == []
    assert mounted("rhel") == ["/etc/pki/entitlement", "/etc/rhsm", "/etc/yum.repos.d"]
    assert "/var/run/secrets/rhsm" in mounted("rhcos")
