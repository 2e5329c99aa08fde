from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import yaml

from rbln_stack import discovery, kube
from rbln_stack.config.load import load
from rbln_stack.errors import DiscoveryError
from rbln_stack.profiles import RBLN
from tests.unit.rbln_stack.fleet import BY_CLASS, BY_VENDOR, manifest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REACH = (
    "Check that the cluster runs and that kubeconfig and context name it; to preview without a "
    "cluster set discovery.source to snapshot."
)


class Api:
    """An API server's node list over HTTP: selectors, pages, metadata; remembers what was asked."""

    def __init__(self, nodes: list[dict[str, Any]], page: int = 2) -> None:
        self.nodes = nodes
        self.page = page
        self.driver_sets: list[dict[str, Any]] = []
        self.asked: list[httpx.Request] = []

    def __deepcopy__(self, _: object) -> Api:
        """The client copies its parameters, and with them the transport."""
        return self

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        if request.url.path == "/apis/apps/v1/namespaces/rbln-system/daemonsets":
            return httpx.Response(200, json={"items": self.driver_sets})
        assert request.url.path == "/api/v1/nodes"
        key, _, value = request.url.params.get("labelSelector", "").partition("=")
        chosen = [
            node for node in self.nodes if not key or node["metadata"]["labels"].get(key) == value
        ]
        start = int(request.url.params.get("continue", "0"))
        end = start + self.page
        meta = {"continue": str(end)} if end < len(chosen) else {}
        return httpx.Response(200, json={"metadata": meta, "items": chosen[start:end]})


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(content("http://api.test")))
    return str(path)


def content(server: str, user: dict[str, Any] | None = None, name: str = "one") -> dict[str, Any]:
    return {
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "users": [{"name": name, "user": user or {}}],
    }


def discover(
    kubeconfig: str,
    handler: Callable[[httpx.Request], httpx.Response],
    **settings: Any,
) -> discovery.Found:
    config = load({"kubeconfig": kubeconfig, **settings})
    return discovery.discover(config, RBLN, transport=httpx.MockTransport(handler))


def failure(
    kubeconfig: str,
    handler: Callable[[httpx.Request], httpx.Response],
    **settings: Any,
) -> str:
    with pytest.raises(DiscoveryError) as caught:
        discover(kubeconfig, handler, **settings)
    (problem,) = caught.value.problems
    return str(problem)


def raising(error: Exception) -> Callable[[httpx.Request], httpx.Response]:
    def handler(_: httpx.Request) -> httpx.Response:
        raise error

    return handler


def test_unreachable_cluster(kubeconfig: str) -> None:  # DC-24, X-05
    text = failure(kubeconfig, raising(httpx.ConnectError("connection refused")))
    assert text == (f"API server http://api.test: cannot be reached (connection refused). {REACH}")


def test_slow_cluster(kubeconfig: str) -> None:  # DC-24
    text = failure(
        kubeconfig, raising(httpx.ReadTimeout("late")), discovery={"timeoutSeconds": 2.5}
    )
    assert text == f"API server http://api.test: no answer within 2.5 s. {REACH}"


def test_something_else_answers(kubeconfig: str) -> None:
    text = failure(kubeconfig, lambda _: httpx.Response(200, text="<html>"))
    assert text == f"API server http://api.test: answers, but not like a Kubernetes API. {REACH}"


def test_forbidden_and_only_once(kubeconfig: str) -> None:
    asked: list[int] = []

    def handler(_: httpx.Request) -> httpx.Response:
        asked.append(1)
        return httpx.Response(403, json={"kind": "Status", "message": 'user "u" cannot list'})

    assert failure(kubeconfig, handler) == (
        'API server http://api.test: access to nodes is forbidden: user "u" cannot list. Give this '
        "user a ClusterRole with the verb list on nodes; `kubectl auth can-i list nodes` must say "
        "yes."
    )
    assert asked == [1]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            httpx.Response(401, json={"message": "Unauthorized"}),
            (
                "the credentials are not accepted: Unauthorized. Renew them, or choose "
                "another context."
            ),
        ),
        (
            httpx.Response(502, text="<html>proxy"),
            (
                "asking for nodes failed with status 502: Bad Gateway. Try again; if it "
                "stays, look at the "
                "API server's log."
            ),
        ),
        (
            httpx.Response(500, json=["odd"]),
            (
                "asking for nodes failed with status 500: Internal Server Error. Try "
                "again; if it stays, "
                "look at the API server's log."
            ),
        ),
    ],
)
def test_other_refusals(kubeconfig: str, answer: httpx.Response, text: str) -> None:
    assert failure(kubeconfig, lambda _: answer) == f"API server http://api.test: {text}"


def test_nfd_missing(kubeconfig: str) -> None:  # S0-05
    bare = {"metadata": {"name": "n", "labels": {"kubernetes.io/arch": "amd64"}}}
    found = discover(kubeconfig, Api([bare]))
    assert found.nodes == ()
    assert str(found.absence) == (
        "cluster http://api.test: no node has a feature.node.kubernetes.io/ label, so node feature "
        "discovery (NFD) does not work there. Install NFD and wait until its worker has labelled "
        "the nodes."
    )


def test_no_accelerator_node(kubeconfig: str) -> None:
    api = Api([manifest("n", present=None)])
    found = discover(kubeconfig, api)
    assert str(found.absence) == (
        "cluster http://api.test: NFD works, but no node has the label "
        "feature.node.kubernetes.io/pci-1200_1eff.present or "
        "feature.node.kubernetes.io/pci-1eff.present. Check that a node holds a device of PCI "
        "vendor 1eff and that NFD's deviceClassWhitelist has class 12."
    )
    listed = [request for request in api.asked if request.url.path.endswith("/nodes")]
    assert "PartialObjectMetadataList" in listed[-1].headers["Accept"]
    assert len(listed) == 3


def test_both_spellings_all_pages_each_node_once(kubeconfig: str) -> None:  # DC-22, DC-24
    nodes = [manifest(f"c{i}") for i in range(5)]
    nodes += [manifest("v0", present=BY_VENDOR), manifest("none", present=None)]
    nodes.append(manifest("both", present=BY_VENDOR, labels={BY_CLASS: "true"}))
    api = Api(nodes)
    found = discover(kubeconfig, api)
    assert [node.name for node in found.nodes] == ["both", "c0", "c1", "c2", "c3", "c4", "v0"]
    assert found.live
    assert all("labelSelector" in request.url.params for request in api.asked)
    assert "gzip" in api.asked[0].headers["Accept-Encoding"]


def test_facts_hold_only_what_the_plan_needs(kubeconfig: str) -> None:
    taints = [{"key": "npu", "effect": "NoSchedule"}]
    node = manifest(
        "n",
        taints=taints,
        labels={"zone": "a", "other": "b", "rebellions.ai/npu.deploy.driver": "false"},
    )
    node["spec"]["unschedulable"] = True
    node["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    (facts,) = discover(kubeconfig, Api([node]), driver={"nodeSelector": {"zone": "a"}}).nodes
    assert (facts.os_id, facts.os_version, facts.kernel) == ("ubuntu", "22.04", "5.15.0-91-generic")
    assert (facts.arch, facts.runtime, facts.runtime_version) == ("amd64", "containerd", "2.1.4")
    assert (facts.kubelet_version, facts.ready, facts.unschedulable) == ("v1.34.2", False, True)
    assert [str(taint) for taint in facts.taints] == ["npu:NoSchedule"]
    assert facts.labels["zone"] == "a"
    assert facts.labels["rebellions.ai/npu.deploy.driver"] == "false"
    assert "other" not in facts.labels


UNUSABLE = (
    "Check the config keys kubeconfig and context, or the variable KUBECONFIG; `kubectl get nodes` "
    "must work with them."
)


def test_kubeconfig_that_is_not_there() -> None:
    assert failure("/nowhere/config", Api([])) == (
        f"cluster credentials: cannot be used: there is no file /nowhere/config. {UNUSABLE}"
    )


def test_context_that_is_not_there(kubeconfig: str) -> None:
    assert failure(kubeconfig, Api([]), context="two") == (
        f"cluster credentials: cannot be used: Context 'two' not found. {UNUSABLE}"
    )


@pytest.mark.parametrize("text", ["", "[]", "a: [", "clusters: [{}]"])
def test_kubeconfig_that_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    assert failure(str(path), Api([])).startswith("cluster credentials: cannot be used: ")


def test_no_credentials_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(DiscoveryError, match="and this is no pod with a service account"):
        kube.Cluster(kube.Access(), timeout_s=1, environ={"KUBECONFIG": str(tmp_path / "none")})


def test_kubeconfig_variable_may_list_files(tmp_path: Path) -> None:  # DC-23
    first, second = tmp_path / "a" / "config", tmp_path / "b" / "config"
    for path, text in (
        (first, content("http://first.test", {"tokenFile": "token"})),
        (second, content("http://second.test", name="two")),
    ):
        path.parent.mkdir()
        path.write_text(yaml.safe_dump(text))
    (first.parent / "token").write_text("abc\n")
    api = Api([])
    environ = {"KUBECONFIG": f"{first}:{tmp_path / 'gone'}:{second}"}
    for context, server in ((None, "http://first.test"), ("two", "http://second.test")):
        access = kube.access(None, context)
        transport = httpx.MockTransport(api)
        with kube.Cluster(access, timeout_s=1, environ=environ, transport=transport) as cluster:
            assert cluster.server == server
            assert list(cluster.list("api/v1/nodes")) == []
    assert api.asked[0].headers["Authorization"] == "Bearer abc"
    assert "Authorization" not in api.asked[1].headers


def test_credential_plugin_of_the_current_api_version(tmp_path: Path) -> None:  # DC-23
    plugin = tmp_path / "plugin"
    plugin.write_text(
        "#!/bin/sh\n"
        'case "$KUBERNETES_EXEC_INFO" in *client.authentication.k8s.io/v1\\"*) '
        ";; *) exit 9;; esac\n"
        'echo \'{"status": {"token": "from-plugin"}}\'\n'
    )
    plugin.chmod(0o755)
    run = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "env": None}
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(content("http://api.test", {"exec": run})))
    api = Api([manifest("n")])
    assert len(discover(str(path), api).nodes) == 1
    assert api.asked[0].headers["Authorization"] == "Bearer from-plugin"
    plugin.write_text("#!/bin/sh\nexit 3\n")
    assert failure(str(path), api).startswith("cluster credentials: cannot be used: Exec ")


@pytest.mark.parametrize("dump", [json.dumps, yaml.safe_dump])
def test_snapshot(tmp_path: Path, dump: Callable[[object], str]) -> None:  # DC-28
    path = tmp_path / "nodes"
    items = [manifest("n2"), manifest("n1", present=BY_VENDOR), manifest("cpu", present=None)]
    path.write_text(dump({"kind": "List", "items": items}))
    config = load({"discovery": {"source": "snapshot", "snapshot": str(path)}})
    found = discovery.discover(config, RBLN)
    assert [node.name for node in found.nodes] == ["n1", "n2"]
    assert found.source == f"snapshot {path}"
    assert not found.live


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (None, "there is no such file"),
        ("{", "is neither JSON nor YAML"),
        ("a: [", "is neither JSON nor YAML"),
        ("hello", "does not hold a list of nodes"),
        ('{"kind": "List"}', "does not hold a list of nodes"),
        (
            '{"items": [{"kind": "Pod", "metadata": {"name": "p"}}]}',
            "does not hold a list of nodes",
        ),
        ('{"items": [{"kind": "Node"}]}', "does not hold a list of nodes"),
    ],
)
def test_bad_snapshot(tmp_path: Path, text: str | None, what: str) -> None:
    path = tmp_path / "nodes.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(DiscoveryError) as caught:
        kube.read_snapshot(str(path))
    assert [str(problem) for problem in caught.value.problems] == [
        f"snapshot {path}: {what}. Record it with `kubectl get nodes -o json`."
    ]


def test_empty_snapshot_is_a_finding() -> None:
    found = discovery.from_manifests([], RBLN, source="snapshot x")
    assert found.absence is not None
    assert found.absence.subject == "snapshot x"
