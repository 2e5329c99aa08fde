"""What one simulated node is made of, as plain data.

Read by every other module here and handed to a node's first process as JSON. Standard library
only: that process must not import anything once its root has changed.
"""

import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

FAULTS = ("device-unhealthy", "driver-load-fails", "module-busy", "smi-hangs")
MAX_COUNT = 16
"""One PCI bus per NPU, counted up from `_FIRST_BUS`."""

_FIRST_BUS = 0x3B
_FIRST_IOMMU_GROUP = 10
_UUID_SPACE = uuid.UUID("6f2f0b7c-7d0e-4b35-9d61-5c6d5f0d1eff")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What is common to the cards of one vendor."""

    profile: str
    vendor_id: str
    pci_class: str
    module: str
    device_prefix: str
    group_device: str
    products: Mapping[str, str]
    """Card name to the PCI device id of its physical function."""


RBLN = Hardware(
    profile="rbln",
    vendor_id="1eff",
    pci_class="120000",
    module="rebellions",
    device_prefix="rbln",
    group_device="rsd0",
    products=MappingProxyType(
        {
            "RBLN-CA02": "1020",
            "RBLN-CA12": "1120",
            "RBLN-CA15": "1150",
            "RBLN-CA22": "1220",
            "RBLN-CA25": "1250",
            "RBLN-CR03": "2030",
        }
    ),
)
_PROFILES = {RBLN.profile: RBLN}


class UnknownProfileError(ValueError):
    """No hardware record has this name."""

    def __init__(self, profile: str) -> None:
        super().__init__(f"unknown profile {profile!r}; known: {', '.join(sorted(_PROFILES))}")


def hardware(profile: str) -> Hardware:
    """Return the record of a vendor profile."""
    try:
        return _PROFILES[profile]
    except KeyError:
        raise UnknownProfileError(profile) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Npu:
    """One device of a node, as PCI and the driver name it."""

    index: int
    name: str
    bdf: str
    uuid: str
    serial: str
    iommu_group: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """One simulated node."""

    name: str
    product: str
    count: int
    os_id: str
    os_version: str
    os_name: str
    kernel: str
    profile: str = RBLN.profile
    faults: frozenset[str] = frozenset()
    host_driver: str | None = None
    """Version of a driver that the administrator installed on the node, if any."""

    @property
    def hardware(self) -> Hardware:
        """The vendor's record."""
        return hardware(self.profile)

    @property
    def device_id(self) -> str:
        """The PCI device id of the node's cards."""
        return self.hardware.products[self.product]

    def npus(self) -> tuple[Npu, ...]:
        """List the devices; the same node name always gives the same identities."""
        identities = [uuid.uuid5(_UUID_SPACE, f"{self.name}/{i}") for i in range(self.count)]
        return tuple(
            Npu(
                index=i,
                name=f"{self.hardware.device_prefix}{i}",
                bdf=f"0000:{_FIRST_BUS + i:02x}:00.0",
                uuid=str(identity),
                serial=f"{identity.int % 10**10:016d}",
                iommu_group=_FIRST_IOMMU_GROUP + i,
            )
            for i, identity in enumerate(identities)
        )

    def to_json(self) -> str:
        """Return the spec as one line of JSON."""
        return json.dumps(asdict(self) | {"faults": sorted(self.faults)}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "NodeSpec":
        """Read what `to_json` wrote."""
        values: dict[str, Any] = json.loads(text)
        return cls(**(values | {"faults": frozenset(values["faults"])}))
