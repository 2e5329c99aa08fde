"""`rbln-agent inventory`: reads sysfs below a host root, prints what the core makes of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agents.common.exits import Exit
from agents.common.host import HostPaths
from agents.inventory.core import PciFacts, take_stock
from rbln_stack import contract

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the agent's settings."""
    parser.add_argument(
        "--host-root",
        type=Path,
        default=Path(contract.HOST_MOUNT),
        help="where the node's file system is mounted (default: %(default)s)",
    )
    parser.add_argument("--profile", choices=sorted(contract.DEVICES), default="rbln")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")


def run(settings: argparse.Namespace) -> int:
    """Print the inventory; a node without devices is an answer, a root without sysfs is not."""
    host = HostPaths(settings.host_root)
    if not host.pci_devices.is_dir():
        sys.stderr.write(
            f"{host.pci_devices} is no directory; --host-root must hold a node's /sys\n"
        )
        return Exit.BAD_SETTINGS
    devices = contract.DEVICES[settings.profile]
    loaded = host.module(devices.module).is_dir()
    inventory = take_stock(pci_functions(host), devices, module_loaded=loaded)
    text = (
        json.dumps(inventory.as_json(), indent=2)
        if settings.output == "json"
        else inventory.as_table()
    )
    sys.stdout.write(text + "\n")
    return Exit.DONE


def pci_functions(host: HostPaths) -> Iterator[PciFacts]:
    """Every PCI function of the node; one that is pulled out meanwhile is skipped."""
    for directory in sorted(host.pci_devices.iterdir()):
        try:
            vendor, device, pci_class = (
                _text(directory / name).removeprefix("0x") for name in ("vendor", "device", "class")
            )
        except OSError:
            continue
        yield PciFacts(
            address=directory.name,
            vendor=vendor,
            device=device,
            pci_class=pci_class,
            driver=_driver(directory),
            numa_node=_numa_node(directory),
        )


def _text(path: Path) -> str:
    return path.read_text(encoding="ascii").strip().lower()


def _driver(directory: Path) -> str | None:
    """The bound driver's name; the link's target lies outside of a test root, its name does not."""
    try:
        return (directory / "driver").readlink().name
    except OSError:
        return None


def _numa_node(directory: Path) -> int | None:
    """The kernel writes -1 where the firmware does not say."""
    try:
        number = int(_text(directory / "numa_node"))
    except (OSError, ValueError):
        return None
    return number if number >= 0 else None
