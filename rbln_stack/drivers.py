"""Driver declarations + nodes → driver plans: who claims which node, pools, images. Pure.

Called by the plan. Every accelerator node ends up in one pool of one declaration or in a problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from rbln_stack import contract, naming, placement, pools
from rbln_stack.errors import Notice, Problem
from rbln_stack.operands import DriverPoolPlan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rbln_stack.config.driver import DriverSpec, NamedDriver
    from rbln_stack.discovery import DriverSet
    from rbln_stack.nodes import NodeFacts
    from rbln_stack.pools import Grouping, Pool
    from rbln_stack.profiles import VendorProfile

CATCH_ALL: Final = "catch-all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """The nodes of each declaration; nodes of two, which is an error; nodes of none."""

    nodes: Mapping[str, tuple[NodeFacts, ...]]
    contested: tuple[Problem, ...]
    unclaimed: tuple[Problem, ...]


def claims(
    declarations: Sequence[NamedDriver],
    nodes: Iterable[NodeFacts],
    managed: Sequence[dict[str, Any]],
) -> Claims:
    """Give each node to the one declaration that selects it (S0-18, S1-19)."""
    members: dict[str, list[NodeFacts]] = {name: [] for name, _ in declarations}
    contested: list[Problem] = []
    unclaimed: list[Problem] = []
    for node in sorted(nodes, key=lambda node: node.name):
        if not placement.meets(node.labels, managed):
            unclaimed.append(_unmanaged(node))
            continue
        takers = [name for name, section in declarations if _claims(section, node)]
        if len(takers) > 1:
            contested.append(_contested(node, takers))
        elif takers:
            members[takers[0]].append(node)
        elif declarations:
            unclaimed.append(_unclaimed(node, declarations))
    return Claims(
        nodes={name: tuple(found) for name, found in members.items()},
        contested=tuple(contested),
        unclaimed=tuple(unclaimed),
    )


def kept_pools(
    name: str, section: DriverSpec, nodes: Iterable[NodeFacts], existing: Iterable[DriverSet]
) -> tuple[tuple[DriverSet, ...], tuple[Notice, ...]]:
    """Pools of a declaration that have a DaemonSet but no node, and what is said of them (D3)."""
    live = {(node.os_id, node.os_version, node.kernel, node.arch) for node in nodes}
    kept: list[DriverSet] = []
    notices: list[Notice] = []
    for found in existing:
        if found.instance != name or found.key in live:
            continue
        if section.empty_pools == "keep" or found.pool in section.retain_pools:
            kept.append(found)
            text = "no node is left in it; its DaemonSet is kept until driver.emptyPools is prune"
        else:
            text = "no node is left in it, and driver.emptyPools is prune: its DaemonSet goes away"
        notices.append(Notice("warning", f"pool {found.pool}", text))
    return tuple(kept), tuple(notices)


def pool_plans(
    name: str, section: DriverSpec, grouping: Grouping, kernels: Sequence[str]
) -> tuple[DriverPoolPlan, ...]:
    """One DaemonSet per pool, and one for all other kernels if config asks for it."""
    plans = [
        DriverPoolPlan(
            name=naming.object_name(name, pool.name),
            pool=pool,
            image=image(section, pool),
            node_selector=placement.pool_selector(pool, section.node_selector),
        )
        for pool in grouping.pools
    ]
    if section.catch_all:
        plans.append(
            DriverPoolPlan(
                name=naming.object_name(name, CATCH_ALL),
                pool=pools.Pool(
                    name=CATCH_ALL, os_id="", os_version="", kernel="", arch="", nodes=()
                ),
                image=section.image_ref.reference,
                node_selector=section.node_selector,
                excluded_kernels=tuple(kernels),
                catch_all=True,
            )
        )
    return tuple(plans)


def image(section: DriverSpec, pool: Pool) -> str:
    """The driver image of a pool; precompiled images are tagged with kernel and OS."""
    ref = section.image_ref
    if not section.use_precompiled:
        return ref.reference
    tag = naming.precompiled_tag(ref.tag, pool.kernel, pool.os_id, pool.os_version)
    return naming.image_reference(ref.registry, ref.repository, tag)


def conflicts(
    path: str, section: DriverSpec, grouping: Grouping, profile: VendorProfile
) -> list[Problem]:
    """Keys that config may not set because the plan gives them their values."""
    taken = {contract.COMPONENT_LABEL, profile.pool_label, profile.instance_label}
    deploy = profile.deploy_label(contract.DRIVER_OPERAND)
    problems = [
        Problem(
            f"{path}.labels.{key}",
            "the DaemonSet selects its pods by this label",
            "Use another key",
        )
        for key in sorted(taken & section.labels.keys())
    ]
    problems += [
        Problem(
            f"{path}.nodeSelector.{key}",
            "each pool gives this label its own value",
            f"Remove it; to keep the driver off a node label the node {deploy}="
            f"{contract.DEPLOY_OFF}",
        )
        for key in sorted({*contract.GROUPING_LABELS, deploy} & section.node_selector.keys())
    ]
    # A selector on a reserved key leaves nodes out for a reason that is reported above.
    if problems or not section.use_precompiled:
        return problems
    return _long_tags(path, section, grouping)


def catch_all_conflicts(declarations: Sequence[NamedDriver]) -> list[Problem]:
    """Two DaemonSets for all other kernels may never meet on a node that nobody has seen yet."""
    open_ended = [found for found in declarations if found.section.catch_all]
    return [
        Problem(
            f"drivers {first.name} and {second.name}",
            "both have catchAll, and a new node could match the nodeSelector of both",
            "Give one key of their nodeSelector different values, or keep catchAll in one of them",
        )
        for first, second in combinations(open_ended, 2)
        if not _disjoint(first.section.node_selector, second.section.node_selector)
    ]


def _disjoint(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    return any(one[key] != other[key] for key in one.keys() & other.keys())


def _claims(section: DriverSpec, node: NodeFacts) -> bool:
    if any(node.labels.get(key) != value for key, value in section.node_selector.items()):
        return False
    return placement.meets_affinity(node.labels, section.node_affinity.plain())


def _contested(node: NodeFacts, takers: Sequence[str]) -> Problem:
    return Problem(
        f"node {node.name}",
        f"the drivers {' and '.join(takers)} both select it, and a node takes one driver",
        "Change nodeSelector of one of them",
        code="node-contested",
        node=node.name,
    )


def _unclaimed(node: NodeFacts, declarations: Sequence[NamedDriver]) -> Problem:
    if len(declarations) == 1:
        selector = declarations[0].section.node_selector
        if any(node.labels.get(key) != value for key, value in selector.items()):
            return pools.not_selected(node, selector)
    names = ", ".join(found.name for found in declarations)
    return Problem(
        f"node {node.name}",
        f"it holds an accelerator, but nodeSelector and nodeAffinity of {names} leave it out, so "
        "it is in no pool",
        "Label it, or change the driver's nodeSelector, if it should get a driver",
        severity="info",
        code="node-not-selected",
        node=node.name,
    )


def _unmanaged(node: NodeFacts) -> Problem:
    return Problem(
        f"node {node.name}",
        "it holds an accelerator, but managedNodes leaves it out, so it is in no pool",
        "Label it, or change managedNodes, if it should be served",
        severity="info",
        code="node-not-managed",
        node=node.name,
    )


def _long_tags(path: str, section: DriverSpec, grouping: Grouping) -> list[Problem]:
    return [
        Problem(
            f"pool {pool.name}",
            f"the image {reference} has a tag of more than {naming.TAG_LIMIT} characters",
            f"Shorten {path}.image.tag, or set {path}.usePrecompiled to false",
        )
        for pool in grouping.pools
        for reference in (image(section, pool),)
        if len(reference.rpartition(":")[2]) > naming.TAG_LIMIT
    ]
