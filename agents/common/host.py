"""Paths of a node as an agent sees them, all below one root.

The root is `/host` in a pod, `/` on the node itself, a directory in a test. No agent spells an
absolute host path anywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class HostPaths:
    """The node's file system below `root`."""

    root: Path

    @property
    def pci_devices(self) -> Path:
        """One entry per PCI function."""
        return self.root / "sys/bus/pci/devices"

    def module(self, name: str) -> Path:
        """A directory that exists while the kernel module is loaded."""
        return self.root / "sys/module" / name
