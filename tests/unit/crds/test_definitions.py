from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rbln_stack.crds import definitions, generate
from rbln_stack.crds.load import crd_manifests
from rbln_stack.profiles import RBLN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def schemas(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in (node.get("properties") or {}).values():
        yield from schemas(child)
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            yield from schemas(node[key])


def test_committed_files_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main(["--check"]) == 0, capsys.readouterr().err


def test_check_names_what_differs_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "stray.yaml").write_text("{}")
    assert generate.main(["--check"], tmp_path) == 1
    assert "stray.yaml differs" in capsys.readouterr().err
    assert generate.main([], tmp_path) == 0
    assert generate.main(["--check"], tmp_path) == 0
    assert not (tmp_path / "stray.yaml").exists()


@pytest.mark.parametrize("definition", definitions.DEFINITIONS, ids=lambda found: found.kind)
def test_schemas_are_structural(definition: definitions.Definition) -> None:
    (version,) = definitions.manifest(definition)["spec"]["versions"]
    for found in schemas(version["schema"]["openAPIV3Schema"]):
        assert isinstance(found["type"], str)
        assert not {"$ref", "$defs", "title", "const"} & found.keys()
        assert not ("properties" in found and "additionalProperties" in found)
        assert all("type" not in option for option in found.get("anyOf", ()))
    assert version["subresources"] == {"status": {}}


def test_identity_and_columns() -> None:
    drivers_last = crd_manifests(RBLN)
    assert [found["metadata"]["name"] for found in drivers_last] == [
        "gpunodestates.rebellions.ai",
        "rblnclusterpolicies.rebellions.ai",
        "rblndrivers.rebellions.ai",
    ]
    policy = drivers_last[1]
    assert policy["spec"]["names"]["shortNames"] == ["rcp", "rblncp"]
    assert policy["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "rbln-stack"}
    (version,) = policy["spec"]["versions"]
    assert version["name"] == "v1beta1"
    shown = {c["name"]: c["jsonPath"] for c in version["additionalPrinterColumns"]}
    assert (shown["State"], shown["Nodes"]) == (".status.phase", ".status.nodes")
