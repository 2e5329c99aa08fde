"""Groups accelerator nodes into driver pools: same OS, OS version, kernel and architecture.

Every node given ends up in exactly one pool or in exactly one problem; nothing is dropped.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rbln_stack import contract, naming
from rbln_stack.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rbln_stack.nodes import NodeFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Nodes that one driver DaemonSet serves."""

    name: str
    os_id: str
    os_version: str
    kernel: str
    arch: str
    nodes: tuple[NodeFacts, ...]

    @property
    def labels(self) -> dict[str, str]:
        """The node labels that make a node one of this pool."""
        values = (self.os_id, self.os_version, self.kernel, self.arch)
        return dict(zip(contract.GROUPING_LABELS, values, strict=True))

    @property
    def runtimes(self) -> tuple[str, ...]:
        """The container runtimes in use among the nodes."""
        return tuple(sorted({node.runtime or "unknown" for node in self.nodes}))

    def summary(self) -> dict[str, Any]:
        """The pool as stack outputs and the command line show it."""
        return {
            "name": self.name,
            "os": f"{self.os_id}{self.os_version}",
            "kernel": self.kernel,
            "arch": self.arch,
            "nodeCount": len(self.nodes),
            "nodes": [node.name for node in self.nodes],
            "runtime": ", ".join(self.runtimes),
        }


@dataclass(frozen=True, slots=True)
class Grouping:
    """Pools by name; nodes that cannot be pooled, and nodes that config leaves out."""

    pools: tuple[Pool, ...]
    unlabelled: tuple[Problem, ...]
    unselected: tuple[Problem, ...]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Why each node without a pool has none."""
        return self.unlabelled + self.unselected


def group(
    nodes: Iterable[NodeFacts],
    node_selector: Mapping[str, str],
    prefix: str,
    kept: Iterable[naming.PoolKey] = (),
) -> Grouping:
    """Put each node into its pool; `prefix` is what the pool's object names begin with.

    Pools in `kept` exist even without a node.
    """
    members: defaultdict[naming.PoolKey, list[NodeFacts]] = defaultdict(list)
    members.update({key: [] for key in kept})
    unlabelled: list[Problem] = []
    unselected: list[Problem] = []
    for node in sorted(nodes, key=lambda node: node.name):
        if any(node.labels.get(key) != value for key, value in node_selector.items()):
            unselected.append(not_selected(node, node_selector))
        elif node.missing_labels:
            unlabelled.append(_unlabelled(node))
        else:
            members[(node.os_id, node.os_version, node.kernel, node.arch)].append(node)
    names = naming.pool_names(members, prefix)
    pools = [
        Pool(
            name=names[key],
            os_id=key[0],
            os_version=key[1],
            kernel=key[2],
            arch=key[3],
            nodes=tuple(members[key]),
        )
        for key in members
    ]
    pools.sort(key=lambda pool: pool.name)
    return Grouping(tuple(pools), tuple(unlabelled), tuple(unselected))


def _unlabelled(node: NodeFacts) -> Problem:
    return Problem(
        f"node {node.name}",
        f"it holds an accelerator but lacks {', '.join(node.missing_labels)}, so it is in no pool",
        "Make NFD label it (its worker must run there with the sources kernel and system on)",
        code="node-unlabelled",
        node=node.name,
    )


def not_selected(node: NodeFacts, node_selector: Mapping[str, str]) -> Problem:
    """Why a node without the labels that config asks for is in no pool."""
    wanted = ", ".join(
        f"{key}={value}"
        for key, value in sorted(node_selector.items())
        if node.labels.get(key) != value
    )
    return Problem(
        f"node {node.name}",
        f"it holds an accelerator but not the label {wanted} of driver.nodeSelector, so it is in "
        "no pool",
        "Label it, or change driver.nodeSelector, if it should get a driver",
        severity="info",
        code="node-not-selected",
        node=node.name,
    )
