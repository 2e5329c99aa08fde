"""Names, addresses and certificates of a cluster; bad requests get one clear line."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

import pytest
import yaml
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from rbln_stack.cli.main import app
from simulator.spec import UnknownProfileError
from toolchain.cluster import lifecycle, node_plan, pki, servers
from toolchain.cluster.spec import MAX_CLUSTERS, MAX_NODES, Addresses, ClusterSpec, Layout, Record
from toolchain.errors import ToolchainError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            ClusterSpec(nodes=0),
            "--nodes 0 makes a cluster without a node: use --nodes 1 or more, or add --kwok N",
        ),
        (ClusterSpec(nodes=99), f"--nodes 99 is out of range: use 1 to {MAX_NODES}"),
        (ClusterSpec(kwok=-1), "--kwok -1 is out of range: use 0 to 20000"),
        (ClusterSpec(api_port=70000), "--api-port 70000 is no port: use 1 to 65535"),
        (
            ClusterSpec(name="Up_"),
            "'Up_' is not a cluster name: use 1 to 20 lower-case letters, digits and dashes",
        ),
        (ClusterSpec(profile="abc"), "abc"),
        (ClusterSpec(fleet="/nowhere.yaml"), "/nowhere.yaml"),
    ],
)
def test_a_bad_request_is_one_line_and_makes_nothing(
    spec: ClusterSpec, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(ToolchainError) as caught:
        lifecycle.up(spec, lambda _: None)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_profile_names_the_known_ones() -> None:
    assert "rbln" in str(UnknownProfileError("abc"))


@given(
    st.integers(0, MAX_CLUSTERS - 1),
    st.integers(0, MAX_CLUSTERS - 1),
    st.integers(0, MAX_NODES - 1),
)
def test_clusters_never_share_an_address(one: int, other: int, node: int) -> None:
    first, second = Addresses(one, real_nodes=True), Addresses(other, real_nodes=True)
    assert first.block.overlaps(second.block) is (one == other)
    inside = [first.pods(node), str(first.service_network), str(first.node_network)]
    networks = [ipaddress.IPv4Network(network) for network in inside]
    assert all(network.subnet_of(first.block) for network in networks)
    assert not any(a.overlaps(b) for a in networks for b in networks if a is not b)
    assert len(first.host_link) <= 15


def test_without_real_nodes_the_servers_are_on_loopback() -> None:
    host = Addresses(3, real_nodes=False).host
    assert ipaddress.ip_address(host).is_loopback


def test_a_torn_record_counts_as_none(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    record = Record(spec=ClusterSpec(), index=2, real_nodes=True)
    record.write(path)
    assert Record.read(path) == record
    path.write_text(path.read_text()[:40])
    assert Record.read(path) is None


def test_certificates_name_user_groups_and_hosts() -> None:
    authority = pki.Authority("test")
    pair = authority.issue("system:node:a", ["system:nodes"], ["a", "198.18.0.11"])
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    assert certificate.subject.rfc4514_string() == "CN=system:node:a,O=system:nodes"
    issuer = x509.load_pem_x509_certificate(authority.pair.certificate)
    certificate.verify_directly_issued_by(issuer)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["198.18.0.11"]


def test_private_keys_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    pki.Authority("test").pair.write(tmp_path, "ca")
    assert (tmp_path / "ca.key").stat().st_mode & 0o777 == 0o600


def test_a_kubeconfig_verifies_the_server_and_shows_a_certificate() -> None:
    authority = pki.Authority("test")
    content = yaml.safe_load(
        pki.kubeconfig("dev", "https://h:1", authority.pair.certificate, authority.issue("admin"))
    )
    assert set(content["clusters"][0]["cluster"]) == {"server", "certificate-authority-data"}
    assert set(content["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}


def test_servers_use_no_token_file_and_no_anonymous_access(tmp_path: Path) -> None:
    record = Record(spec=ClusterSpec(kwok=1), index=0, real_nodes=True)
    found = servers.commands(record, Layout(tmp_path), servers.NAMES)
    assert list(found) == [
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kwok",
    ]
    flags = " ".join(found["kube-apiserver"])
    assert "--token-auth-file" not in flags
    assert "--anonymous-auth=false" in flags
    assert "--authorization-mode=Node,RBAC" in flags
    assert not any("insecure" in flag for command in found.values() for flag in command)


def test_containers_of_a_node_see_its_own_sysfs() -> None:
    default = {
        "mounts": [
            {"destination": "/proc", "type": "proc", "options": []},
            {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro"]},
        ]
    }
    changed = node_plan.base_spec(default)["mounts"]
    assert changed[0] == default["mounts"][0]
    assert changed[1] == {
        "destination": "/sys",
        "type": "bind",
        "source": "/sys",
        "options": ["rbind", "rslave", "ro"],
    }
    assert default["mounts"][1]["type"] == "sysfs"


@pytest.mark.parametrize(
    "command",
    [
        *("cluster up", "cluster down", "cluster status", "cluster kubeconfig", "cluster env"),
        *("status", "tools", "plan", "render", "snapshot", "import-values"),
    ],
)
def test_every_command_has_help_with_an_example(command: str) -> None:
    shown = CliRunner().invoke(app, [*command.split(), "--help"]).output
    assert "Example:" in shown
    # A snapshot is JSON in any case.
    assert "--output" in shown or command == "snapshot"


def test_status_of_no_cluster_says_how_to_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    result = CliRunner().invoke(app, ["cluster", "status"])
    assert result.exit_code == 1
    assert "make it with `rbln-stack cluster up`" in result.output
    with pytest.raises(ToolchainError, match="there is no cluster dev"):
        lifecycle.kubeconfig("dev")
