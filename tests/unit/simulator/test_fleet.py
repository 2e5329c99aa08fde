"""The fleet file and the node specs made from it."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from simulator.fleet import Fleet, FleetError, NodeSpec, hardware, load_fleet
from simulator.spec import FAULTS, MAX_COUNT, RBLN

KIND: dict[str, Any] = {
    "product": "RBLN-CA22",
    "count": 2,
    "os_id": "ubuntu",
    "os_version": "22.04",
    "os_name": "Ubuntu 22.04.5 LTS",
    "kernel": "5.15.0-100-generic",
}


def fleet_file(folder: Path, *kinds: object, **more: object) -> Path:
    path = folder / "fleet.yaml"
    path.write_text(yaml.safe_dump({"nodes": list(kinds), **more}), encoding="utf-8")
    return path


def refusal(path: Path) -> str:
    with pytest.raises(FleetError) as caught:
        load_fleet(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"prodct": "x"}, "nodes.0.prodct: unknown key; allowed: profile, product, count"),
        ({"product": "RBLN-XX99"}, "nodes.0.product: unknown card 'RBLN-XX99'; allowed: RBLN-CA02"),
        ({"count": 0}, "nodes.0.count: Input should be greater than or equal to 1 (found 0)"),
        ({"count": MAX_COUNT + 1}, f"less than or equal to {MAX_COUNT}"),
        ({"count": "2"}, "nodes.0.count: Input should be a valid integer"),
        ({"os_version": 22.04}, "nodes.0.os_version: Input should be a valid string (found 22.04)"),
        ({"faults": ["boom"]}, "nodes.0.faults: unknown fault boom; allowed: device-unhealthy"),
        ({"profile": "acme"}, "nodes.0.profile: unknown profile 'acme'; known: rbln"),
        ({"os_name": 'x"\nID=evil'}, "nodes.0.os_name"),
    ],
)
def test_bad_value_names_place_and_what_is_allowed(
    tmp_path: Path, change: dict[str, object], expected: str
) -> None:
    assert expected in refusal(fleet_file(tmp_path, {**KIND, **change}))


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    text = refusal(fleet_file(tmp_path, {**KIND, "count": 0, "product": "x"}, node_count=3))
    assert "nodes.0.count" in text
    assert "nodes.0.product" in text
    assert "node_count: unknown key; allowed: nodes" in text


@pytest.mark.parametrize("text", ["", "nodes: []", "[1, 2]", "nodes: [", "\x00"])
def test_file_of_another_shape_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(text, encoding="utf-8")
    refusal(path)


def test_absent_file_is_refused(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(tmp_path / "none.yaml")


def test_default_fleet_has_two_driver_pools() -> None:
    fleet = load_fleet()
    first, second, third = (fleet.node(i, f"node-{i}") for i in range(3))
    assert (first.kernel, first.device_id) == ("5.15.0-100-generic", "1220")
    assert (second.kernel, second.device_id) == ("6.8.0-45-generic", "1250")
    assert (third.name, third.kernel) == ("node-2", first.kernel)


def test_devices_have_identities_of_their_own() -> None:
    fleet = load_fleet()
    npus = [*fleet.node(0, "a").npus(), *fleet.node(0, "b").npus()]
    assert len({npu.uuid for npu in npus}) == len(npus)
    assert fleet.node(0, "a").npus() == fleet.node(0, "a").npus()


def test_unknown_profile_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown profile 'acme'; known: rbln"):
        hardware("acme")


kinds = st.fixed_dictionaries(
    {
        "product": st.sampled_from(sorted(RBLN.products)),
        "count": st.integers(1, MAX_COUNT),
        "os_id": st.sampled_from(["ubuntu", "rhel"]),
        "os_version": st.integers(1, 40).map("{}.04".format),
        "os_name": st.just("Some Linux 1.0 (LTS)"),
        "kernel": st.integers(0, 400).map("6.8.0-{}.el9_4.x86_64".format),
    },
    optional={
        "faults": st.sets(st.sampled_from(FAULTS)).map(sorted),
        "host_driver": st.just("3.0.0"),
    },
)


@given(st.lists(kinds, min_size=1, max_size=4), st.integers(0, 50))
def test_every_node_survives_json(entries: list[dict[str, Any]], index: int) -> None:
    fleet = Fleet.model_validate({"nodes": yaml.safe_load(yaml.safe_dump(entries))})
    spec = fleet.node(index, "node")
    assert NodeSpec.from_json(spec.to_json()) == spec
    assert spec.count == entries[index % len(entries)]["count"]
    assert len({npu.bdf for npu in spec.npus()}) == spec.count
