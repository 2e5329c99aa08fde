"""Files that follow from the sections, and files that must load as they are."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rbln_stack.config import reference, schema
from rbln_stack.config.load import load
from rbln_stack.config.root import RootConfig
from rbln_stack.errors import ConfigError

ROOT = Path(__file__).parents[3]
SAMPLES = sorted((ROOT / "samples").glob("*.yaml"))
STACKS = sorted(ROOT.glob("Pulumi.*.yaml"))


def values(path: Path) -> dict[str, Any]:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path in STACKS:
        return {key.partition(":")[2]: value for key, value in content["config"].items()}
    assert isinstance(content, dict)
    return content


ALL = {path.name: values(path) for path in (*SAMPLES, *STACKS)}
CHECK = jsonschema.Draft202012Validator(json.loads(schema.PATH.read_text(encoding="utf-8")))


@pytest.mark.parametrize("module", [schema, reference])
def test_generated_files_are_up_to_date(module: Any) -> None:
    assert module.main(["--check"]) == 0


def test_a_stale_file_is_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (schema, reference):
        monkeypatch.setattr(module, "PATH", tmp_path / "file")
        assert module.main(["--check"]) == 1
        assert "is out of date: run python -m rbln_stack.config." in capsys.readouterr().err
        assert module.main([]) == 0
        assert module.main(["--check"]) == 0
        assert module.main(["--other"]) == 2
        (tmp_path / "file").unlink()


def test_schema_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(schema.schema())


@pytest.mark.parametrize("name", sorted(ALL))
def test_files_load_without_edits(name: str) -> None:  # S0-59, S0-60, DC-37
    load(ALL[name])
    assert [error.message for error in CHECK.iter_errors(ALL[name])] == []


def test_container_sample_has_no_operand_for_virtual_machines() -> None:  # S0-57
    config = load(ALL["container-workload.yaml"])
    assert config.driver.enabled
    assert config.validator.enabled
    assert config.container_toolkit.enabled
    assert config.device_plugin.enabled
    assert not config.sandbox_device_plugin.enabled
    assert not config.vfio_manager.enabled


def test_sandbox_sample_has_no_operand_for_containers() -> None:  # S0-58
    config = load(ALL["sandbox-workload.yaml"])
    assert config.workload_type == "vm-passthrough"
    assert not config.driver.enabled
    assert not config.container_toolkit.enabled
    assert not config.device_plugin.enabled
    assert config.sandbox_device_plugin.enabled
    assert config.vfio_manager.enabled


@pytest.mark.parametrize("name", ["Pulumi.staging.yaml", "Pulumi.production.yaml"])
def test_pinned_stacks_run_no_floating_image(name: str) -> None:  # S0-109
    config = load(ALL[name])
    used = (config.driver, config.driver.manager, config.validator, config.container_toolkit)
    rest = (config.device_plugin, config.npu_feature_discovery, config.metrics_exporter)
    assert not [part for part in (*used, *rest, config.rbln_daemon) if part.image_ref.floating]


def test_project_file_knows_only_keys_of_the_tree() -> None:
    declared = yaml.safe_load((ROOT / "Pulumi.yaml").read_text(encoding="utf-8"))["config"]
    load({key: entry["default"] for key, entry in declared.items()})


def maps_in(tree: Any) -> list[dict[str, Any]]:
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return ([tree] if isinstance(tree, dict) else []) + [m for part in inner for m in maps_in(part)]


@given(st.sampled_from(sorted(ALL)), st.data())
def test_an_unknown_key_fails_in_program_and_schema(name: str, data: st.DataObject) -> None:
    tree = copy.deepcopy(ALL[name])
    place = data.draw(st.sampled_from(maps_in(tree)))
    place["no such key!"] = "x"
    with pytest.raises(ConfigError):
        load(tree)
    assert not CHECK.is_valid(tree)


def test_every_key_is_described() -> None:
    text = reference.PATH.read_text(encoding="utf-8")
    assert "| `driver.image.tag` | text | `3.0.0` |" in text
    missing = [name for name, field in RootConfig.model_fields.items() if not field.description]
    assert missing == []
