from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rbln_stack import discovery, kube, snapshot
from rbln_stack.errors import DiscoveryError
from rbln_stack.profiles import RBLN
from tests.unit.rbln_stack.fleet import BY_VENDOR, manifest

if TYPE_CHECKING:
    from pathlib import Path


def fleet() -> list[kube.Manifest]:
    tainted = manifest(
        "n2",
        taints=[{"key": "z", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}],
        labels={"zone": "a"},
    )
    tainted["spec"]["taints"][0]["timeAdded"] = "2026-01-01T00:00:00Z"
    tainted["spec"]["unschedulable"] = True
    tainted["status"]["addresses"] = [{"address": "10.0.0.1"}]
    tainted["metadata"]["annotations"] = {"secret": "x"}
    away = manifest("n1", present=BY_VENDOR)
    away["status"]["conditions"] = [
        {"type": "Ready", "status": "Unknown"},
        {"type": "DiskPressure", "status": "False"},
    ]
    return [tainted, away, tainted]


def test_recorded_nodes_give_the_same_facts(tmp_path: Path) -> None:  # DC-28
    path = tmp_path / "nodes.json"
    snapshot.write(path, snapshot.text(snapshot.recorded(fleet())))
    read = discovery.from_manifests(
        kube.read_snapshot(str(path)), RBLN, source="live", more_labels=("zone",)
    )
    assert read == discovery.from_manifests(fleet(), RBLN, source="live", more_labels=("zone",))
    assert [node.name for node in read.nodes] == ["n1", "n2"]


def test_nothing_private_or_changing_is_recorded() -> None:
    text = snapshot.text(snapshot.recorded(fleet()))
    assert not any(word in text for word in ("10.0.0.1", "secret", "timeAdded", "DiskPressure"))
    assert text == snapshot.text(snapshot.recorded(reversed(fleet())))
    assert json.loads(text)["kind"] == "List"


def test_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    with pytest.raises(DiscoveryError, match="cannot be written"):
        snapshot.write(tmp_path / "none" / "nodes.json", "x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DiscoveryError, match="cannot be written"):
        snapshot.write(tmp_path / "folder", "x")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
