"""Finds the accelerator nodes: in the cluster, or in a recorded list.

Called by the program before it plans and by the command line. A cluster that cannot be read is
always an error; a cluster that was read and holds nothing is a finding (`Found.absence`), which
the plan turns into an error or a warning.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rbln_stack import contract, kube, naming, nodes, placement
from rbln_stack.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    import httpx

    from rbln_stack.config.root import RootConfig
    from rbln_stack.profiles import VendorProfile

_NODES = "api/v1/nodes"


@dataclass(frozen=True, slots=True)
class DriverSet:
    """A driver DaemonSet of this stack that exists already, and the pool it was made for."""

    name: str
    instance: str
    pool: str
    key: naming.PoolKey


@dataclass(frozen=True, slots=True)
class Found:
    """The accelerator nodes by name, where they were read, and why there are none."""

    source: str
    nodes: tuple[nodes.NodeFacts, ...]
    absence: Problem | None = None
    driver_sets: tuple[DriverSet, ...] = ()

    @property
    def live(self) -> bool:
        """Whether the cluster itself was read."""
        return self.source == "live"


def discover(
    config: RootConfig, profile: VendorProfile, *, transport: httpx.BaseTransport | None = None
) -> Found:
    """Read the nodes from where config says; `transport` replaces the network in tests."""
    settings = config.discovery
    selector_keys = config_label_keys(config)
    if settings.source == "snapshot":
        path = settings.snapshot or ""
        return from_manifests(
            kube.read_snapshot(path), profile, source=f"snapshot {path}", more_labels=selector_keys
        )
    access = kube.access(config.kubeconfig, config.context)
    with kube.Cluster(access, timeout_s=settings.timeout_seconds, transport=transport) as cluster:
        found = from_cluster(cluster, profile, more_labels=selector_keys)
        namespace = config.namespace or profile.default_namespace
        return replace(found, driver_sets=driver_sets(cluster, namespace, profile))


def config_label_keys(config: RootConfig) -> tuple[str, ...]:
    """The labels by which config chooses nodes: facts must keep them."""
    managed = config.managed_nodes
    keys = [managed.label_key, *managed.node_selector]
    for _, section in config.driver_declarations():
        keys += section.node_selector
        keys += placement.affinity_keys(section.node_affinity.plain())
    return tuple(sorted(set(filter(None, keys))))


def driver_sets(
    cluster: kube.Cluster, namespace: str, profile: VendorProfile
) -> tuple[DriverSet, ...]:
    """The driver DaemonSets this stack made before; a pool that lost its nodes shows here alone."""
    selector = (
        f"{contract.COMPONENT_LABEL}={profile.driver_name},"
        f"{contract.MANAGED_BY_LABEL}={contract.STACK}"
    )
    path = f"apis/apps/v1/namespaces/{namespace}/daemonsets"
    found = (_driver_set(one, profile) for one in cluster.list(path, selector=selector))
    return tuple(sorted((one for one in found if one), key=lambda one: one.name))


def _driver_set(manifest: kube.Manifest, profile: VendorProfile) -> DriverSet | None:
    """None for the DaemonSet of all other kernels, which belongs to no pool."""
    pod = manifest.get("spec", {}).get("template", {}).get("spec") or {}
    selector = pod.get("nodeSelector") or {}
    labels = nodes.labels_of(manifest)
    if not all(selector.get(key) for key in contract.GROUPING_LABELS):
        return None
    os_id, os_version, kernel, arch = (selector[key] for key in contract.GROUPING_LABELS)
    return DriverSet(
        name=manifest["metadata"]["name"],
        instance=labels.get(profile.instance_label, ""),
        pool=labels.get(profile.pool_label, ""),
        key=(os_id, os_version, kernel, arch),
    )


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
            code="nfd-missing",
        )
    return Problem(
        subject,
        f"NFD works, but no node has the label {' or '.join(profile.present_labels)}",
        f"Check that a node holds a device of PCI vendor {profile.devices.pci_vendor} and that "
        f"NFD's deviceClassWhitelist has class {profile.devices.pci_class[:2]}",
        code="no-accelerator-node",
    )
