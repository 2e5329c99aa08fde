"""What `rbln-stack status` says of each accelerator node: its pool and its driver pod. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rbln_stack.pools import Grouping

NO_POD = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """One row of the table."""

    node: str
    os: str
    kernel: str
    pool: str
    driver_pod: str
    driver_ready: bool


def node_statuses(grouping: Grouping, pods: Iterable[Mapping[str, Any]]) -> list[NodeStatus]:
    """Join pooled nodes with the driver pods that run on them; pool-less nodes name the reason."""
    # A pod on its way out says nothing of the node while its successor is there.
    leaving_first = sorted(pods, key=lambda pod: "deletionTimestamp" not in pod["metadata"])
    by_node = {pod["spec"].get("nodeName", ""): pod for pod in leaving_first}
    rows = [
        NodeStatus(
            node=node.name,
            os=f"{pool.os_id} {pool.os_version}",
            kernel=pool.kernel,
            pool=pool.name,
            driver_pod=_pod_text(by_node.get(node.name)),
            driver_ready=_is_ready(by_node.get(node.name)),
        )
        for pool in grouping.pools
        for node in pool.nodes
    ]
    left_out = [
        NodeStatus(
            node=problem.subject,
            os="",
            kernel="",
            pool=f"none: {problem.what}",
            driver_pod=NO_POD,
            driver_ready=False,
        )
        for problem in grouping.problems
    ]
    return sorted(rows + left_out, key=lambda row: row.node)


def _is_ready(pod: Mapping[str, Any] | None) -> bool:
    conditions = (pod or {}).get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _pod_text(pod: Mapping[str, Any] | None) -> str:
    if pod is None:
        return NO_POD
    phase = pod.get("status", {}).get("phase", "Unknown")
    state = "Ready" if _is_ready(pod) else f"{phase}, not ready"
    return f"{pod['metadata']['name']} ({state})"
