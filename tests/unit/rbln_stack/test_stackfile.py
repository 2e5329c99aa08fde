from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rbln_stack import stackfile
from rbln_stack.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = """\
name: rbln-stack
config:
  profile: {type: string, default: rbln}
  driver: {default: {}}
"""
STACK = """\
config:
  rbln-stack:driver:
    image: {tag: "3.1.0"}
  rbln-stack:namespace: npu
  kubernetes:context: other
encryptionsalt: v1:x
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text(PROJECT)
    (tmp_path / "Pulumi.dev.yaml").write_text(STACK)
    (tmp_path / "below").mkdir()
    return tmp_path


def failure(project: Path, stack: str) -> str:
    with pytest.raises(ConfigError) as caught:
        stackfile.read_stack(stack, project, {})
    (problem,) = caught.value.problems
    assert problem.code == "config"
    return problem.what


def test_missing_project_and_stack_are_told(tmp_path: Path, project: Path) -> None:
    assert failure(project, "prod") == f"there is no file Pulumi.prod.yaml in {tmp_path}"
    (project / "Pulumi.prod.yaml").write_text("")
    assert failure(project, "") == "it is not clear which stack is meant: dev, prod"
    (project / "Pulumi.yaml").unlink()
    assert failure(project, "dev") == "there is no Pulumi.yaml here or above"


@pytest.mark.parametrize(
    ("text", "what"), [("[]", "does not hold a map of keys"), ("a: [", "is not YAML")]
)
def test_file_that_holds_no_values(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "values.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=what):
        stackfile.read_file(path, tmp_path)


def test_stack_of_the_project_around(project: Path) -> None:  # DC-37, DC-40
    for stack, environ in (("dev", {}), ("", {}), ("", {"PULUMI_STACK": "org/rbln-stack/dev"})):
        found = stackfile.read_stack(stack, project / "below", environ)
        assert (found.stack, found.directory) == ("dev", project)
        assert found.values == {
            "profile": "rbln",
            "driver": {"image": {"tag": "3.1.0"}},
            "namespace": "npu",
        }


def test_stack_file_and_bare_values_give_the_same(project: Path) -> None:
    (project / "values.yaml").write_text('driver: {image: {tag: "3.1.0"}}\nnamespace: npu\n')
    named = stackfile.read_file(project / "Pulumi.dev.yaml", project)
    bare = stackfile.read_file(project / "values.yaml", project)
    assert named.values == {"profile": "rbln", **bare.values}
    assert named.stack == "dev"


def test_secrets_are_found_wherever_they_are(project: Path) -> None:
    (project / "Pulumi.dev.yaml").write_text(
        "config:\n  rbln-stack:driver: {env: [{name: A, value: {secure: x}}]}\n"
        "  rbln-stack:namespace: {secure: y}\n  other:key: {secure: z}\n"
    )
    found = stackfile.read_stack("dev", project, {})
    assert found.secrets == ("driver", "namespace")


def test_environment_that_cannot_be_read_is_told(project: Path) -> None:
    (project / "Pulumi.dev.yaml").write_text("environment: [prod]\n")
    (notice,) = stackfile.read_stack("dev", project, {}).notices
    assert str(notice) == "stack dev: values of its environment are not read here"


def test_recorded_nodes_replace_the_source_only(project: Path) -> None:  # DC-28
    (project / "values.yaml").write_text("discovery: {timeoutSeconds: 5, onMissing: warn}\n")
    found = stackfile.read_file(project / "values.yaml", project)
    changed = found.with_nodes(project / "below" / "nodes.json")
    assert changed.values["discovery"] == {
        "timeoutSeconds": 5,
        "onMissing": "warn",
        "source": "snapshot",
        "snapshot": "below/nodes.json",
    }
