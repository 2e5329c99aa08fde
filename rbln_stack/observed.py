"""What a plan is compared with: driver DaemonSets, their pods, and pods that hold devices.

Read in one go before a preview. The result is shown and never planned with: nothing that runs in
the cluster decides what is made (X-25).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rbln_stack import contract, kube
from rbln_stack.errors import DiscoveryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import httpx

    from rbln_stack.plan import StackPlan
    from rbln_stack.profiles import VendorProfile

# A pod holds its devices from the moment it is bound, so also while init containers run.
_BOUND: Final = "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!="
_GENERATION: Final = "deprecated.daemonset.template.generation"
_POD_GENERATION: Final = "pod-template-generation"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverPod:
    """A driver pod on its node; `outdated` if its DaemonSet has a newer template."""

    name: str
    node: str
    outdated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverSet:
    """A driver DaemonSet of the stack."""

    name: str
    pool: str
    on_delete: bool
    template: Mapping[str, Any] = field(hash=False)
    pods: tuple[DriverPod, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Workload:
    """A pod that holds devices of the vendor."""

    namespace: str
    name: str
    node: str
    devices: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} ({self.devices}) on {self.node}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What is in the cluster now; `gaps` says what could not be looked at.

    Without the drivers it is not complete, and then nothing can be said of any pool.
    """

    complete: bool = True
    drivers: tuple[DriverSet, ...] = ()
    workloads: tuple[Workload, ...] = ()
    gaps: tuple[str, ...] = ()


def beside(plan: StackPlan, access: kube.Access, *, timeout_s: float) -> Observed | None:
    """Observe the cluster that a plan is for; a plan from a recorded list is for none at hand."""
    if plan.source != "live":
        return None
    return look(access, plan.namespace, plan.profile, timeout_s=timeout_s)


def look(
    access: kube.Access,
    namespace: str,
    profile: VendorProfile,
    *,
    timeout_s: float,
    transport: httpx.BaseTransport | None = None,
) -> Observed:
    """Observe the cluster; one that cannot be reached is a gap, because a plan needs none."""
    try:
        with kube.Cluster(access, timeout_s=timeout_s, transport=transport) as cluster:
            return observe(cluster, namespace, profile)
    except DiscoveryError as error:
        return Observed(complete=False, gaps=_reasons(error))


def observe(cluster: kube.Cluster, namespace: str, profile: VendorProfile) -> Observed:
    """Read everything that an impact is computed from; what is forbidden is a gap."""
    workloads: tuple[Workload, ...] = ()
    gaps: tuple[str, ...] = ()
    selector = f"{contract.COMPONENT_LABEL}={profile.driver_name}"
    try:
        sets = list(
            cluster.list(f"apis/apps/v1/namespaces/{namespace}/daemonsets", selector=selector)
        )
        pods = list(cluster.list(f"api/v1/namespaces/{namespace}/pods", selector=selector))
        drivers = driver_sets(sets, pods, profile)
    except DiscoveryError as error:
        return Observed(complete=False, gaps=_reasons(error))
    prefix = f"{profile.label_domain}/"
    try:
        found = (workload(pod, prefix) for pod in cluster.list("api/v1/pods", fields=_BOUND))
        workloads = tuple(sorted(one for one in found if one is not None))
    except DiscoveryError as error:
        gaps = _reasons(error)
    return Observed(drivers=drivers, workloads=workloads, gaps=gaps)


def driver_sets(
    sets: list[kube.Manifest], pods: list[kube.Manifest], profile: VendorProfile
) -> tuple[DriverSet, ...]:
    """Join DaemonSets with the pods that they own."""
    by_owner: dict[str, list[kube.Manifest]] = {}
    for pod in pods:
        by_owner.setdefault(_owner(pod), []).append(pod)
    return tuple(
        DriverSet(
            name=manifest["metadata"]["name"],
            pool=(manifest["metadata"].get("labels") or {}).get(profile.pool_label, ""),
            on_delete=(spec.get("updateStrategy") or {}).get("type") == "OnDelete",
            template=spec.get("template") or {},
            pods=tuple(_driver_pods(manifest, by_owner.get(manifest["metadata"]["uid"], []))),
        )
        for manifest in sorted(sets, key=lambda manifest: str(manifest["metadata"]["name"]))
        for spec in (manifest.get("spec") or {},)
    )


def workload(pod: kube.Manifest, prefix: str) -> Workload | None:
    """The pod if it asks for a resource whose name begins so, with what it asks for."""
    spec = pod.get("spec") or {}
    devices: Counter[str] = Counter()
    for container in spec.get("containers") or ():
        devices.update(_demand(container, prefix))
    # Init containers run one by one and hand their devices on: the larger demand is what is held.
    for container in spec.get("initContainers") or ():
        devices |= Counter(_demand(container, prefix))
    if not devices:
        return None
    metadata = pod["metadata"]
    return Workload(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        node=spec.get("nodeName", ""),
        devices=", ".join(f"{name}: {amount}" for name, amount in sorted(devices.items())),
    )


def _demand(container: Mapping[str, Any], prefix: str) -> dict[str, int]:
    resources = container.get("resources") or {}
    merged = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    # Devices are whole; a zero asks for nothing.
    return {
        name: int(amount)
        for name, amount in merged.items()
        if name.startswith(prefix) and str(amount).isdigit() and int(amount)
    }


def _driver_pods(owner: kube.Manifest, pods: list[kube.Manifest]) -> Iterator[DriverPod]:
    annotations = owner["metadata"].get("annotations") or {}
    current = annotations.get(_GENERATION)
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["name"])):
        metadata, node = pod["metadata"], (pod.get("spec") or {}).get("nodeName")
        if node and "deletionTimestamp" not in metadata:
            made_for = (metadata.get("labels") or {}).get(_POD_GENERATION)
            outdated = current is not None and made_for is not None and made_for != current
            yield DriverPod(name=metadata["name"], node=node, outdated=outdated)


def _owner(pod: kube.Manifest) -> str:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((str(owner.get("uid")) for owner in owners if owner.get("controller")), "")


def _reasons(error: DiscoveryError) -> tuple[str, ...]:
    return tuple(f"{problem.subject}: {problem.what}" for problem in error.problems)
