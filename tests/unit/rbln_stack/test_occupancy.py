from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest
import yaml

from rbln_stack import kube, occupancy
from rbln_stack.errors import DiscoveryError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CRD = "rblndrivers.rebellions.ai"


def problems(tmp_path: Path, answers: Callable[[str], httpx.Response]) -> list[tuple[str, str]]:
    path = tmp_path / "config"
    entry = {"name": "one", "cluster": {"server": "http://api.test"}}
    context = {"name": "one", "context": {"cluster": "one"}}
    path.write_text(
        yaml.safe_dump({"current-context": "one", "clusters": [entry], "contexts": [context]})
    )
    transport = httpx.MockTransport(lambda request: answers(request.url.path.rpartition("/")[2]))
    with kube.Cluster(kube.Access(str(path)), timeout_s=1, transport=transport) as cluster:
        found = occupancy.judge(occupancy.observe(cluster))
    return [(problem.severity, str(problem)) for problem in found]


def listing(**kinds: list[dict[str, Any]]) -> Callable[[str], httpx.Response]:
    return lambda kind: httpx.Response(200, json={"items": kinds.get(kind, [])})


def deployment(image: str, labels: dict[str, str] | None = None) -> dict[str, Any]:
    return {
        "metadata": {"name": "manager", "namespace": "npu", "labels": labels or {}},
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}},
    }


def definition(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": CRD, **metadata}}


@pytest.mark.parametrize(
    ("image", "labels", "sign"),
    [
        ("docker.io/rebellions/rbln-npu-operator:v0.3.0", {}, "image"),
        ("reg.test:5000/mirror/rebellions/rbln-npu-operator@sha256:0", {}, "image"),
        ("other:1", {"app.kubernetes.io/name": "rbln-npu-operator"}, "label"),
        ("other:1", {"helm.sh/chart": "rbln-npu-operator-0.0.1"}, "label"),
    ],
)
def test_operator_is_named(tmp_path: Path, image: str, labels: dict[str, str], sign: str) -> None:
    ((severity, text),) = problems(tmp_path, listing(deployments=[deployment(image, labels)]))
    assert severity == "error"
    assert text.startswith("deployment npu/manager: the vendor's operator runs in this cluster (")
    assert f"({sign} " in text
    assert "docs/migration.md" in text


@pytest.mark.parametrize(
    "image",
    ["rebellions/rbln-npu-operator-validator:1", "my-rebellions/rbln-npu-operator:1", "", "a:1"],
)
def test_other_deployments_are_not_it(tmp_path: Path, image: str) -> None:
    assert problems(tmp_path, listing(deployments=[deployment(image)])) == []


@pytest.mark.parametrize(
    ("metadata", "owner"),
    [
        (
            {
                "annotations": {
                    "meta.helm.sh/release-name": "npu",
                    "meta.helm.sh/release-namespace": "rbln-system",
                },
                "labels": {"app.kubernetes.io/managed-by": "Helm"},
            },
            "Helm release rbln-system/npu",
        ),
        ({"labels": {"app.kubernetes.io/managed-by": "argocd"}}, "argocd"),
        (
            {"managedFields": [{"manager": "helm"}, {"manager": "kube-apiserver"}]},
            "field manager helm",
        ),
        ({}, "nobody this stack knows"),
    ],
)
def test_definition_of_another_owner(tmp_path: Path, metadata: dict[str, Any], owner: str) -> None:
    found = listing(customresourcedefinitions=[definition(**metadata)])
    ((severity, text),) = problems(tmp_path, found)
    assert severity == "error"
    assert text == (
        f"custom resource definition {CRD}: it exists already and belongs to {owner}. Follow "
        "docs/migration.md: it says how the definition is handed over without losing objects."
    )


def test_own_and_unrelated_definitions_are_fine(tmp_path: Path) -> None:
    own = definition(
        labels={"app.kubernetes.io/managed-by": "rbln-stack"},
        managedFields=[{"manager": "pulumi-kubernetes-1"}, {"manager": "helm"}],
    )
    other = {"metadata": {"name": "widgets.example.com"}}
    assert problems(tmp_path, listing(customresourcedefinitions=[own, other])) == []


def test_what_may_not_be_read_is_a_warning(tmp_path: Path) -> None:
    def answers(kind: str) -> httpx.Response:
        if kind == "deployments":
            return httpx.Response(403, json={"message": "no"})
        return httpx.Response(200, json={"items": []})

    ((severity, text),) = problems(tmp_path, answers)
    assert severity == "warning"
    assert "nobody could check whether the vendor's operator runs here" in text


def test_broken_api_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DiscoveryError, match="status 500"):
        problems(tmp_path, lambda _: httpx.Response(500))
