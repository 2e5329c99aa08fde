"""The whole config tree of a stack."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rbln_stack.config.base import NamespaceName, Section
from rbln_stack.config.operands import DaemonSetsSection, DriverSection


class DiscoverySection(Section):
    """How the accelerator nodes are found."""

    source: Literal["live", "snapshot"] = "live"
    """Read the cluster, or a file with what `kubectl get nodes -o json` printed."""
    snapshot: str | None = None
    """Path of that file, relative to the project directory."""
    on_missing: Literal["fail", "warn"] = "fail"
    """What to do when nodes, NFD or NFD's labels are missing."""
    timeout_seconds: Annotated[float, Field(gt=0, le=600)] = 30
    """Longest wait for one answer of the API server."""

    @model_validator(mode="after")
    def _snapshot_has_path(self) -> Self:
        if self.source == "snapshot" and not self.snapshot:
            msg = "source snapshot needs snapshot, the path of the file"
            raise ValueError(msg)
        if self.source == "live" and self.snapshot:
            msg = "snapshot is only read with source snapshot; set source or remove snapshot"
            raise ValueError(msg)
        return self


class RootConfig(Section):
    """Everything below `rbln-stack:` in a stack file."""

    profile: Literal["rbln"] = "rbln"
    """Vendor profile."""
    namespace: NamespaceName | None = None
    """Namespace of all operands, from the vendor profile if left out."""
    kubeconfig: str | None = None
    """Path of a kubeconfig file; left out, KUBECONFIG, ~/.kube/config or the pod's own account."""
    context: str | None = None
    """Context in the kubeconfig; left out, its current one."""
    discovery: DiscoverySection = DiscoverySection()
    """How the accelerator nodes are found."""
    daemonsets: DaemonSetsSection = DaemonSetsSection()
    """What every operand gets."""
    driver: DriverSection = DriverSection()
    """The driver."""
