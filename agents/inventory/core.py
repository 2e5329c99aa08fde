"""Which accelerators a node has: facts in, a report out. No I/O, no clock, no logging."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rbln_stack.contract import Devices

UNKNOWN_PRODUCT: Final = "unknown"
_COLUMNS: Final = ("ADDRESS", "VENDOR", "DEVICE", "PRODUCT", "DRIVER", "NUMA")


@dataclass(frozen=True, slots=True, kw_only=True)
class PciFacts:
    """One PCI function as sysfs shows it; ids are bare lower-case hex."""

    address: str
    vendor: str
    device: str
    pci_class: str
    driver: str | None
    numa_node: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One function of the vendor; the product of an id that no table knows is `unknown`."""

    address: str
    vendor: str
    device: str
    product: str
    driver: str | None
    numa_node: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """Everything the agent reports about a node."""

    module: str
    module_loaded: bool
    accelerators: tuple[Accelerator, ...]

    def as_json(self) -> dict[str, Any]:
        """The report for programs."""
        return {
            "module": self.module,
            "moduleLoaded": self.module_loaded,
            "accelerators": [
                {"numaNode" if key == "numa_node" else key: value for key, value in row.items()}
                for row in map(asdict, self.accelerators)
            ],
        }

    def as_table(self) -> str:
        """The report for people."""
        rows = [_COLUMNS, *(_row(item) for item in self.accelerators)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        loaded = "loaded" if self.module_loaded else "not loaded"
        return "\n".join([f"module {self.module}: {loaded}", *lines])


def take_stock(
    functions: Iterable[PciFacts], devices: Devices, *, module_loaded: bool
) -> Inventory:
    """Keep the vendor's accelerators, in the order of their addresses, and name the products."""
    own = [
        function
        for function in functions
        if function.vendor == devices.pci_vendor
        and function.pci_class.startswith(devices.pci_class)
    ]
    return Inventory(
        module=devices.module,
        module_loaded=module_loaded,
        accelerators=tuple(
            Accelerator(
                address=function.address,
                vendor=function.vendor,
                device=function.device,
                product=devices.products.get(function.device, UNKNOWN_PRODUCT),
                driver=function.driver,
                numa_node=function.numa_node,
            )
            for function in sorted(own, key=lambda function: function.address)
        ),
    )


def _row(item: Accelerator) -> tuple[str, ...]:
    numa = "-" if item.numa_node is None else str(item.numa_node)
    return (item.address, item.vendor, item.device, item.product, item.driver or "-", numa)
