"""Which container runtimes the toolkit's nodes use, and how they are told apart (X-13). Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rbln_stack import contract, placement
from rbln_stack.errors import Problem
from rbln_stack.operands import RuntimeGroup

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rbln_stack.nodes import NodeFacts
    from rbln_stack.operand_plans import Context


def users(nodes: Iterable[NodeFacts], context: Context) -> tuple[NodeFacts, ...]:
    """The nodes that get a toolkit, by name."""
    return tuple(
        node
        for node in sorted(nodes, key=lambda node: node.name)
        if placement.meets(node.labels, context.managed)
        and placement.serves(
            node.labels,
            context.profile,
            context.config.workload_type,
            contract.WORKLOAD_CONTAINER,
        )
    )


def groups(name: str, nodes: Iterable[NodeFacts], chosen: str) -> tuple[RuntimeGroup, ...]:
    """One group per known runtime in use, or the one that config names for all nodes.

    The first keeps the plain name and takes every node not known to be another's, so that a
    second runtime in the fleet never renames the first one's DaemonSet.
    """
    by_name = {runtime.name: runtime for runtime in contract.RUNTIMES.values()}
    if chosen != "auto":
        return (RuntimeGroup(name=name, runtime=by_name[chosen]),)
    hosts = {
        word: tuple(sorted(_host(node) for node in nodes if node.runtime == word))
        for word in contract.RUNTIMES
    }
    used = [word for word in contract.RUNTIMES if hosts[word]] or [next(iter(contract.RUNTIMES))]
    others = tuple(sorted(host for word in used[1:] for host in hosts[word]))
    first = RuntimeGroup(name=name, runtime=contract.RUNTIMES[used[0]], others=others)
    rest = (
        RuntimeGroup(name=f"{name}-{runtime.name}", runtime=runtime, only=hosts[word])
        for word in used[1:]
        for runtime in (contract.RUNTIMES[word],)
    )
    return (first, *rest)


def unknown(nodes: Iterable[NodeFacts], chosen: str) -> tuple[Problem, ...]:
    """The nodes whose runtime the toolkit does not know."""
    if chosen != "auto":
        return ()
    return tuple(
        Problem(
            f"node {node.name}",
            f"its container runtime {node.runtime or '(not reported)'} is none of "
            f"{', '.join(contract.RUNTIMES)}",
            "Set containerToolkit.runtime, or take the node out of the stack",
            code="runtime-unknown",
            node=node.name,
        )
        for node in nodes
        if node.runtime not in contract.RUNTIMES
    )


def _host(node: NodeFacts) -> str:
    return node.labels.get(contract.HOSTNAME_LABEL, node.name)
