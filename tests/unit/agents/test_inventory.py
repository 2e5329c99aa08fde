from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agents import main as program
from agents.common.exits import Exit
from agents.inventory.core import PciFacts, take_stock
from rbln_stack import contract

if TYPE_CHECKING:
    from pathlib import Path


def function(address: str, device: str = "1220", **changes: str) -> PciFacts:
    values = {"vendor": "1eff", "pci_class": "120000", **changes}
    return PciFacts(address=address, device=device, driver=None, numa_node=None, **values)


def test_unknown_ids_are_reported_and_others_named() -> None:
    devices = [function("0000:02:00.0", "9999"), function("0000:01:00.0", "2031")]
    stock = take_stock(devices, contract.RBLN_DEVICES, module_loaded=False)
    assert [(item.address, item.product) for item in stock.accelerators] == [
        ("0000:01:00.0", "RBLN-CR03"),
        ("0000:02:00.0", "unknown"),
    ]


def test_other_vendors_and_other_functions_are_left_out() -> None:
    others = [function("a", vendor="10de"), function("b", pci_class="060400")]
    assert take_stock(others, contract.RBLN_DEVICES, module_loaded=True).accelerators == ()


def device(root: Path, address: str, numa: str = "1", driver: str | None = "rebellions") -> Path:
    directory = root / "sys/bus/pci/devices" / address
    directory.mkdir(parents=True)
    for name, text in (
        ("vendor", "0x1eff"),
        ("device", "0x1220"),
        ("class", "0x120000"),
        ("numa_node", numa),
    ):
        (directory / name).write_text(text + "\n")
    if driver:
        (directory / "driver").symlink_to(f"../../../../bus/pci/drivers/{driver}")
    return directory


def test_json_of_a_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    device(tmp_path, "0000:01:00.0")
    device(tmp_path, "0000:02:00.0", numa="-1", driver=None)
    gone = device(tmp_path, "0000:03:00.0")
    (gone / "device").unlink()
    (tmp_path / "sys/module/rebellions").mkdir(parents=True)
    assert program.main(["inventory", "--host-root", str(tmp_path), "-o", "json"]) == Exit.DONE
    assert json.loads(capsys.readouterr().out) == {
        "module": "rebellions",
        "moduleLoaded": True,
        "accelerators": [
            {
                "address": "0000:01:00.0",
                "vendor": "1eff",
                "device": "1220",
                "product": "RBLN-CA22",
                "driver": "rebellions",
                "numaNode": 1,
            },
            {
                "address": "0000:02:00.0",
                "vendor": "1eff",
                "device": "1220",
                "product": "RBLN-CA22",
                "driver": None,
                "numaNode": None,
            },
        ],
    }


def test_table_of_a_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    device(tmp_path, "0000:01:00.0", driver=None)
    assert program.main(["inventory", "--host-root", str(tmp_path)]) == Exit.DONE
    assert capsys.readouterr().out.splitlines() == [
        "module rebellions: not loaded",
        "ADDRESS       VENDOR  DEVICE  PRODUCT    DRIVER  NUMA",
        "0000:01:00.0  1eff    1220    RBLN-CA22  -       1",
    ]


def test_root_without_sysfs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["inventory", "--host-root", str(tmp_path)]) == Exit.BAD_SETTINGS
    assert capsys.readouterr().err == (
        f"{tmp_path}/sys/bus/pci/devices is no directory; --host-root must hold a node's /sys\n"
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--version"], 0), (["--help"], 0), ([], 2), (["other"], 2), (["inventory", "--x"], 2)],
)
def test_program_level_answers(
    arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        program.main(arguments)
    assert caught.value.code == code
    captured = capsys.readouterr()
    assert "rbln-agent" in captured.out + captured.err


def test_a_bug_keeps_its_trace_and_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    device(tmp_path, "0000:01:00.0")
    monkeypatch.setattr(contract, "DEVICES", {})
    arguments = ["inventory", "--host-root", str(tmp_path), "--profile", "rbln"]
    with pytest.raises(SystemExit):
        program.main(arguments)
    monkeypatch.setattr(contract, "DEVICES", {"rbln": None})
    assert program.main(arguments) == Exit.BUG
    assert "AttributeError" in capsys.readouterr().err
