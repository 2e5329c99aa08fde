from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

from rbln_stack.chart_values import LeftOut, imported
from rbln_stack.cli.import_values import import_values
from rbln_stack.config.load import load
from rbln_stack.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

CHART: dict[str, Any] = {
    "name": "rbln",
    "namespace": "",
    "nfd": {"enabled": False},
    "daemonsets": {"labels": {}, "tolerations": []},
    "operator": {"replicas": 1, "service": {"port": 8443}},
    "driver": {
        "enabled": True,
        "upgradePolicy": {"autoUpgrade": False, "npuPodDeletion": {"force": True}},
        "image": {"registry": "repo.rebellions.ai", "tag": "3.0.0"},
        "manager": {"image": {"registry": "docker.io", "repository": "a/b", "tag": "v1"}},
        "smd": {"image": {}},
        "env": [],
    },
    "containerToolkit": {"enabled": True, "refreshInterval": "5s"},
    "validator": {"image": {"registry": "docker.io", "repository": "a/v", "tag": "latest"}},
}


def run(path: Path, *options: str) -> Any:
    app = typer.Typer()
    app.command()(import_values)
    return CliRunner().invoke(app, [str(path), *options])


def test_a_wrong_value_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"driver\.image\.tag: 3\.0 is not allowed"):
        imported({"driver": {"image": {"tag": 3.0}}})


@pytest.mark.parametrize(
    ("content", "text"),
    [(None, "it cannot be read: No such file"), ("- a", "it holds no map"), ("a: [", "not YAML")],
)
def test_an_unusable_file_is_an_error(tmp_path: Path, content: str | None, text: str) -> None:
    path = tmp_path / "values.yaml"
    if content is not None:
        path.write_text(content)
    result = run(path)
    assert isinstance(result.exception, ConfigError)
    assert text in str(result.exception)


def test_what_has_no_place_is_listed_with_the_reason() -> None:
    result = imported(CHART)
    assert result.left_out == (
        LeftOut("containerToolkit.refreshInterval", "this stack has no such setting"),
        LeftOut("driver.smd", "the daemon has a section of its own: rblnDaemon"),
        LeftOut(
            "operator", "this stack has no operator in the cluster; its work is done by each run"
        ),
    )


def test_what_has_a_place_loads_and_means_the_same() -> None:  # D9
    config = load(imported(CHART).config)
    assert config.driver.manager.image_ref.reference == "docker.io/a/b:v1"
    assert config.driver.upgrade_policy.pod_deletion.force
    assert config.validator.image_ref.reference == "docker.io/a/v:latest"
    assert config.namespace == "rbln-system"


def test_drivers_of_later_charts_become_drivers() -> None:  # S1-15
    result = imported(
        {
            "podDefaults": {"priorityClassName": "p"},
            "driver": {
                "deployDefault": False,
                "instances": {"canary": {"nodeSelector": {"env": "canary"}}},
            },
        }
    )
    config = load(result.config)
    assert [named.name for named in config.driver_declarations()] == ["rbln-driver-canary"]
    assert config.daemonsets.priority_class_name == "p"
    assert result.left_out == ()


def test_command_writes_a_stack_file(tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    path.write_text(yaml.safe_dump(CHART))
    result = run(path)
    assert result.exit_code == 0
    assert yaml.safe_load(result.stdout)["config"]["rbln-stack:nfd"] == {"enabled": False}
    assert "not taken: operator: this stack has no operator in the cluster" in result.stderr


def test_command_answers_in_json(tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    path.write_text(yaml.safe_dump(CHART))
    answer = json.loads(run(path, "-o", "json").stdout)
    assert answer["config"]["rbln-stack:driver"]["image"]["tag"] == "3.0.0"
    assert {entry["key"] for entry in answer["leftOut"]} >= {"operator", "driver.smd"}
