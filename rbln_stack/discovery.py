"""Finds the accelerator nodes: in the cluster, or in a recorded list.

Called by the program before it plans and by the command line. A cluster that cannot be read is
always an error; a cluster that was read and holds nothing is a finding (`Found.absence`), which
the plan turns into an error or a warning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rbln_stack import kube, nodes
from rbln_stack.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    import httpx

    from rbln_stack.config.root import RootConfig
    from rbln_stack.profiles import VendorProfile

_NODES = "api/v1/nodes"


@dataclass(frozen=True, slots=True)
class Found:
    """The accelerator nodes by name, where they were read, and why there are none."""

    source: str
    nodes: tuple[nodes.NodeFacts, ...]
    absence: Problem | None = None

    @property
    def live(self) -> bool:
        """Whether the cluster itself was read."""
        return self.source == "live"


def discover(
    config: RootConfig, profile: VendorProfile, *, transport: httpx.BaseTransport | None = None
) -> Found:
    """Read the nodes from where config says; `transport` replaces the network in tests."""
    settings = config.discovery
    selector_keys = tuple(config.driver.node_selector)
    if settings.source == "snapshot":
        path = settings.snapshot or ""
        return from_manifests(
            kube.read_snapshot(path), profile, source=f"snapshot {path}", more_labels=selector_keys
        )
    access = kube.access(config.kubeconfig, config.context)
    with kube.Cluster(access, timeout_s=settings.timeout_seconds, transport=transport) as cluster:
        return from_cluster(cluster, profile, more_labels=selector_keys)


def from_cluster(
    cluster: kube.Cluster, profile: VendorProfile, *, more_labels: Iterable[str] = ()
) -> Found:
    """List by label on the server, once per spelling: most nodes of a fleet have no accelerator."""
    keep = frozenset(more_labels)
    by_name: dict[str, nodes.NodeFacts] = {}
    for label in profile.present_labels:
        for manifest in cluster.list(_NODES, selector=f"{label}=true"):
            facts = nodes.node_facts(manifest, profile, keep)
            by_name[facts.name] = facts
    if by_name:
        return Found("live", tuple(by_name[name] for name in sorted(by_name)))
    # Only now is the whole fleet of interest, and of it nothing but labels, up to the first hit.
    fleet = cluster.list(_NODES, accept=kube.METADATA_ONLY)
    nfd_works = any(nodes.has_nfd_label(manifest) for manifest in fleet)
    return Found("live", (), _absence(f"cluster {cluster.server}", profile, nfd_works=nfd_works))


def from_manifests(
    manifests: Iterable[kube.Manifest],
    profile: VendorProfile,
    *,
    source: str,
    more_labels: Iterable[str] = (),
) -> Found:
    """The same finding from objects at hand, with or without an accelerator."""
    fleet = list(manifests)
    keep = frozenset(more_labels)
    by_name = {
        manifest["metadata"]["name"]: nodes.node_facts(manifest, profile, keep)
        for manifest in fleet
        if nodes.has_accelerator(manifest, profile)
    }
    if by_name:
        return Found(source, tuple(by_name[name] for name in sorted(by_name)))
    nfd_works = any(nodes.has_nfd_label(manifest) for manifest in fleet)
    return Found(source, (), _absence(source, profile, nfd_works=nfd_works))


def _absence(subject: str, profile: VendorProfile, *, nfd_works: bool) -> Problem:
    if not nfd_works:
        return Problem(
            subject,
            "no node has a feature.node.kubernetes.io/ label, so node feature discovery (NFD) does "
            "not work there",
            "Install NFD and wait until its worker has labelled the nodes",
        )
    return Problem(
        subject,
        f"NFD works, but no node has the label {' or '.join(profile.present_labels)}",
        f"Check that a node holds a device of PCI vendor {profile.devices.pci_vendor} and that "
        f"NFD's deviceClassWhitelist has class {profile.devices.pci_class[:2]}",
    )
