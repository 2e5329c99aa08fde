"""Nothing of a cluster stays on the machine, however it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.machine import PROJECT
from tests.support.traces import traces
from toolchain.cluster import lifecycle, processes
from toolchain.cluster.spec import ClusterSpec, Layout
from toolchain.progress import to_stderr

if TYPE_CHECKING:
    from tests.support.machine import Machine

pytestmark = pytest.mark.cluster

NAME = "traces"
SPEC = ClusterSpec(name=NAME, nodes=1)


def process(part: str) -> processes.Process:
    """The cluster's process one of whose first arguments ends so."""
    found = processes.of_cluster(Layout.of(NAME).root)
    return next(
        p
        for p in found
        if any(Path(a).name == part or a.endswith(part) for a in p.argv[:3])
        and (part == "unshare" or Path(p.argv[0]).name != "unshare")
    )


@pytest.mark.parametrize(
    "victim",
    [
        None,
        "toolchain.cluster.servers",
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kube-proxy",
        "unshare",
        "toolchain.cluster.node_init",
        "containerd",
        "kubelet",
        "containerd-shim-runc-v2",
    ],
)
def test_down_leaves_nothing_after_a_kill(victim: str | None) -> None:
    root = Layout.of(NAME).root
    before = traces(root)
    lifecycle.up(SPEC, to_stderr)
    assert traces(root) != before
    if victim is not None:
        os.kill(process(victim).pid, signal.SIGKILL)
    assert lifecycle.down(NAME, to_stderr)
    assert traces(root) == before


@pytest.mark.parametrize("then", ["down", "up"])
def test_an_up_killed_half_way_is_cleaned_by_the_next_command(then: str) -> None:
    root = Layout.of(NAME).root
    before = traces(root)
    command = [sys.executable, "-c", "from rbln_stack.cli.main import main; main()"]
    with subprocess.Popen(
        [*command, "cluster", "up", "--name", NAME, "--nodes", "1"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
    ) as half:
        assert half.stderr is not None
        for line in half.stderr:
            if "control plane started" in line:
                half.kill()
                break
    if then == "up":
        lifecycle.up(SPEC, to_stderr)
        seen = lifecycle.status(NAME)
        assert seen is not None
        assert seen.state == "up"
    assert lifecycle.down(NAME, to_stderr)
    assert traces(root) == before


def test_two_clusters_stand_side_by_side(cluster: Machine) -> None:
    before = lifecycle.status("test")
    second = lifecycle.up(SPEC, to_stderr)
    try:
        first = lifecycle.status("test")
        assert before is not None
        assert first is not None
        assert first.state == "up"
        assert second.index != cluster.record.index
        assert first.api != f"https://{second.addresses.host}:6443"
    finally:
        lifecycle.down(NAME, to_stderr)
    after = lifecycle.status("test")
    assert after is not None
    assert after.state == "up"


def test_a_taken_port_is_named_and_nothing_is_left() -> None:
    import socket  # noqa: PLC0415

    from toolchain.errors import ToolchainError  # noqa: PLC0415

    root = Layout.of(NAME).root
    before = traces(root)
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 16443))  # noqa: S104 - the port must be taken at every address
        taken.listen()
        with pytest.raises(ToolchainError, match=r"port 16443 .* is taken: .* --api-port"):
            lifecycle.up(ClusterSpec(name=NAME, nodes=1, api_port=16443), to_stderr)
    assert traces(root) == before


def test_a_full_disk_is_one_line_and_nothing_is_left(tmp_path: Path) -> None:
    """On a cache of its own that holds 64 MiB; the mount is seen by the command alone."""
    command = (
        f"mount -t tmpfs -o size=64m tmpfs {tmp_path} && exec {sys.executable} -c "
        "'from rbln_stack.cli.main import main; main()' cluster up --name full --nodes 1"
    )
    done = subprocess.run(
        ["unshare", "--mount", "/bin/sh", "-c", command],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("rbln-stack: the cache ")
    assert last.endswith("free some space, or set XDG_CACHE_HOME to a folder on a larger disk")
    assert not Layout.of("full").root.exists()


def test_without_root_the_nodes_are_kwoks_and_it_says_so() -> None:
    """In a user namespace this process is nobody special, and may still read its own files."""
    command = [sys.executable, "-c", "from rbln_stack.cli.main import main; main()", "cluster"]
    apart = ["unshare", "--user", "--map-user=1000", *command]
    done = subprocess.run(
        [*apart, "up", "--name", NAME, "--nodes", "2"],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
    )
    try:
        assert done.returncode == 0, done.stderr
        assert "not root, so its 2 nodes are kwok's" in done.stderr
        assert "2 kwok nodes" in done.stdout
    finally:
        lifecycle.down(NAME, to_stderr)
