"""`snapshot`, `plan` and `render` from the command line; no engine and no cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import typer
import yaml
from typer.testing import CliRunner

from rbln_stack import contract, kube
from rbln_stack.cli import plan, render, snapshot
from rbln_stack.errors import StackError
from tests.unit.rbln_stack.fleet import manifest

if TYPE_CHECKING:
    from typer.testing import Result

ROOT = Path(__file__).parents[3]
app = typer.Typer()
app.command("plan")(plan.plan)
app.command("render")(render.render)
app.command("snapshot")(snapshot.snapshot)


def run(*argv: str) -> Result:
    return CliRunner().invoke(app, argv)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with recorded nodes and values, and no cluster to reach."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    record(tmp_path, manifest("n0"), manifest("n1", kernel="6.8.0-49-generic"))
    (tmp_path / "values.yaml").write_text('driver: {image: {tag: "3.1.0"}}\n')
    return tmp_path


def record(folder: Path, *nodes: dict[str, Any]) -> None:
    (folder / "nodes.json").write_text(json.dumps({"kind": "List", "items": nodes}))


FROM_FILES = ("--config", "values.yaml", "--nodes", "nodes.json")


def shown(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_config_errors_come_all_as_problems(folder: Path) -> None:
    (folder / "values.yaml").write_text("drivr: {}\nnamespace: A_B\n")
    result = run("plan", *FROM_FILES, "-o", "json")
    assert result.exit_code == 2
    found = shown(result)
    assert {problem["code"] for problem in found["problems"]} == {"config"}
    assert len(found["problems"]) == 2
    assert found["pools"] == found["nodes"] == found["operands"] == []


def test_missing_file_is_a_problem_too(folder: Path) -> None:
    result = run("plan", "--config", "none.yaml", "-o", "json")
    assert result.exit_code == 2
    assert shown(result)["problems"][0]["message"].endswith("none.yaml: there is no such file")


def test_unreachable_cluster_is_a_problem(folder: Path) -> None:
    result = run("plan", "--config", "values.yaml", "-o", "json")
    assert result.exit_code == 2
    assert [problem["code"] for problem in shown(result)["problems"]] == ["credentials"]


def test_nodes_that_do_not_fit_are_shown_with_the_reason(folder: Path) -> None:
    record(folder, manifest("bad", drop=(contract.KERNEL_LABEL,)), manifest("good"))
    result = run("plan", *FROM_FILES, "-o", "json")
    assert result.exit_code == 2
    found = shown(result)
    (problem,) = found["problems"]
    assert (problem["severity"], problem["node"]) == ("error", "bad")
    assert problem["code"] == "node-unlabelled"
    rows = {row["name"]: row for row in found["nodes"]}
    assert rows["bad"]["pool"] is None
    assert "lacks" in rows["bad"]["problem"]
    assert rows["good"]["pool"] == "ubuntu22.04-5.15.0-91-generic"


def test_what_did_not_stop_the_plan_is_a_warning(folder: Path) -> None:
    (folder / "values.yaml").write_text("discovery: {onMissing: warn}\n")
    record(folder, manifest("bad", drop=(contract.KERNEL_LABEL,)), manifest("good"))
    result = run("plan", *FROM_FILES, "-o", "json")
    assert result.exit_code == 0, result.output
    assert [problem["severity"] for problem in shown(result)["problems"]] == ["warning"]


def test_plan_for_programs(folder: Path) -> None:
    result = run("plan", *FROM_FILES, "-o", "json")
    assert result.exit_code == 0, result.output
    found = shown(result)
    assert list(found) == ["profile", "source", "pools", "operands", "nodes", "problems"]
    assert (found["profile"], found["source"]) == ("rbln", "snapshot nodes.json")
    assert [list(row) for row in found["pools"]] == [
        [
            "name",
            "osId",
            "osVersion",
            "kernel",
            "arch",
            "driver",
            "image",
            "selector",
            "nodes",
        ]
    ] * 2
    assert found["pools"][1]["nodes"] == ["n1"]
    assert found["pools"][1]["image"].endswith("driver:3.1.0")
    assert {"name": "driver", "enabled": True, "nodes": 2} in found["operands"]
    assert found["nodes"][0] == {
        "name": "n0",
        "workload": "container",
        "pool": "ubuntu22.04-5.15.0-91-generic",
        "problem": None,
    }


def test_plan_for_people(folder: Path) -> None:
    record(folder, manifest("n0", taints=[{"key": "npu", "effect": "NoSchedule"}]))
    result = run("plan", *FROM_FILES)
    assert result.exit_code == 0, result.output
    assert "nodes read from: snapshot nodes.json" in result.output
    assert "ubuntu22.04-5.15.0-91-generic" in result.output
    assert "taint npu:NoSchedule" in result.output


def test_plan_for_a_pull_request(folder: Path) -> None:  # DC-28, DC-39
    result = run("plan", *FROM_FILES, "-o", "markdown")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("<!-- rbln-stack plan -->\n")
    assert "| `ubuntu22.04-6.8.0-49-generic` | 1 |" in result.output
    assert "so the impact is not known" in result.output
    assert "Nodes read from: snapshot nodes.json." in result.output
    (folder / "values.yaml").write_text("drivr: {}\n")
    broken = run("plan", *FROM_FILES, "-o", "markdown")
    assert broken.exit_code == 2
    assert "**This stack cannot be applied.**" in broken.output


def test_impact_of_a_cluster_out_of_reach_is_a_gap(folder: Path) -> None:
    result = run("plan", *FROM_FILES, "--impact", "-o", "json")
    assert result.exit_code == 0, result.output
    impact = shown(result)["impact"]
    assert not impact["observed"]
    assert impact["gaps"]


def test_two_configs_are_wrong_usage(folder: Path) -> None:
    assert run("plan", "--stack", "a", "--config", "b").exit_code == 2


def test_render_prints_every_object(folder: Path) -> None:
    result = run("render", *FROM_FILES)
    assert result.exit_code == 0, result.output
    objects = list(yaml.safe_load_all(result.stdout))
    assert objects[0]["kind"] == "Namespace"
    sets = [one for one in objects if one["kind"] == "DaemonSet"]
    assert "rbln-driver-ubuntu22.04-6.8.0-49-generic" in [one["metadata"]["name"] for one in sets]
    again = run("render", *FROM_FILES)
    assert again.stdout == result.stdout
    assert "nodes were read from this file" in result.stderr


def test_render_writes_files_and_removes_its_own_old_ones(folder: Path) -> None:
    out = folder / "out"
    assert run("render", *FROM_FILES, "-o", "dir", "--dir", "out").exit_code == 0
    first = {path.name for path in out.iterdir()}
    assert min(first) == "01-namespace-rbln-system.yaml"
    (out / "mine.yaml").write_text("a: 1\n")
    (folder / "values.yaml").write_text("driver: {enabled: false}\n")
    assert run("render", *FROM_FILES, "-o", "dir", "--dir", "out").exit_code == 0
    second = {path.name for path in out.iterdir()}
    assert "mine.yaml" in second
    assert not any("rbln-driver-ubuntu" in name for name in second)


def test_render_fails_like_the_program(folder: Path) -> None:
    (folder / "values.yaml").write_text("drivr: {}\n")
    result = run("render", *FROM_FILES)
    assert isinstance(result.exception, StackError)
    assert run("render", *FROM_FILES, "-o", "dir").exit_code == 2


def test_stack_dev_of_this_project_renders(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # DC-37
    monkeypatch.chdir(ROOT)
    result = run("render", "--stack", "dev", "--nodes", str(folder / "nodes.json"), "-o", "json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["kind"] == "List"


def test_snapshot_records_what_the_cluster_shows(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # DC-28
    served = [manifest("n1"), manifest("n0")]

    def listed(
        self: kube.Cluster, path: str, *, selector: str = "", **_: str
    ) -> list[kube.Manifest]:
        key = selector.partition("=")[0]
        return [node for node in served if not key or key in node["metadata"]["labels"]]

    def connect(self: kube.Cluster, access: kube.Access, *, timeout_s: float) -> None:
        self.server = "http://api.test"
        monkeypatch.setattr(self, "_http", httpx.Client(), raising=False)

    monkeypatch.setattr(kube.Cluster, "__init__", connect)
    monkeypatch.setattr(kube.Cluster, "list", listed)
    result = run("snapshot", "-f", "recorded.json")
    assert result.exit_code == 0, result.output
    assert result.stderr == "recorded 2 accelerator nodes to recorded.json\n"
    written = json.loads((folder / "recorded.json").read_text())
    assert [node["metadata"]["name"] for node in written["items"]] == ["n0", "n1"]
    assert json.loads(run("snapshot").stdout) == written
    served.clear()
    nothing = run("snapshot", "-f", "empty.json")
    assert isinstance(nothing.exception, StackError)
    assert not (folder / "empty.json").exists()
    assert run("snapshot", "--profile", "none").exit_code == 2


@pytest.mark.parametrize("command", ["plan", "render", "snapshot"])
def test_help_has_an_example(command: str) -> None:
    result = run(command, "--help")
    assert "Example: rbln-stack" in result.output
