"""Config + node facts + vendor profile → what will be made. Pure: no Pulumi, no I/O.

The program hands the plan to the components, the command line shows it. After this step nobody
looks at config again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rbln_stack import contract, declarations, drivers, operand_plans, placement, pools, runtimes
from rbln_stack.errors import DiscoveryError, Notice, PlanError, Problem
from rbln_stack.operands import Summary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rbln_stack.config.root import RootConfig
    from rbln_stack.discovery import Found
    from rbln_stack.nodes import NodeFacts
    from rbln_stack.operand_plans import Context
    from rbln_stack.operands import DriverPlan, OperandPlan, Plain, StatusPlan
    from rbln_stack.pools import Pool
    from rbln_stack.profiles import VendorProfile
    from rbln_stack.states import State


@dataclass(frozen=True, slots=True, kw_only=True)
class StackPlan:
    """Everything the stack will hold; an operand that is off is absent from `workloads`."""

    profile: VendorProfile
    namespace: str
    context: str
    source: str
    pools: tuple[Pool, ...]
    drivers: tuple[DriverPlan, ...]
    workloads: tuple[OperandPlan, ...]
    status: StatusPlan
    operands: tuple[Summary, ...]
    problems: tuple[Problem, ...]
    notices: tuple[Notice, ...]

    def outputs(self) -> Plain:
        """The stack's outputs, plain values only."""
        kind = self.profile.policy_kind.lower()
        return {
            "namespace": self.namespace,
            "context": self.context,
            "nodeSource": self.source,
            "pools": [pool.summary() for pool in self.pools],
            "operands": {
                one.name: {"image": one.image, "nodes": len(one.nodes)}
                for one in self.operands
                if one.enabled
            },
            "problems": [str(problem) for problem in self.problems],
            "notices": [str(notice) for notice in self.notices],
            "commands": {
                "status": "rbln-stack status",
                "gate": f"kubectl get {kind} {self.status.name} -o yaml",
                "pods": f"kubectl get pods -n {self.namespace} -o wide",
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drivers:
    """The driver's part of a plan while it is made."""

    plans: tuple[DriverPlan, ...]
    pools: tuple[Pool, ...]
    errors: tuple[Problem, ...]
    unlabelled: tuple[Problem, ...]
    unclaimed: tuple[Problem, ...]
    notices: tuple[Notice, ...]


def make_plan(config: RootConfig, found: Found, profile: VendorProfile) -> StackPlan:
    """Decide everything; raise with all problems when config and nodes cannot be reconciled."""
    strict = config.discovery.on_missing == "fail"
    if found.absence and strict:
        raise DiscoveryError([found.absence])
    namespace = config.namespace or profile.default_namespace
    context = operand_plans.Context(
        config=config, profile=profile, namespace=namespace, nodes=found.nodes
    )
    driver = _drivers(context, found)
    unknown = _unknown_runtimes(context)
    lacking = (*(driver.unlabelled if driver.plans else ()), *unknown)
    errors = [*driver.errors, *(lacking if strict else ())]
    if errors:
        raise PlanError(errors)
    enabled = [state for state in profile.states if _is_on(config, state) and state.deployed]
    workloads = tuple(
        operand_plans.PLANNERS[state.name](context)
        for state in enabled
        if state.name in operand_plans.PLANNERS
    )
    absent = (found.absence,) if found.absence else ()
    return StackPlan(
        profile=profile,
        namespace=namespace,
        context=config.context or "",
        source=found.source,
        pools=driver.pools,
        drivers=driver.plans,
        workloads=workloads,
        status=declarations.status(context),
        operands=tuple(_summaries(context, driver, workloads)),
        problems=(*absent, *driver.unlabelled, *driver.unclaimed, *unknown),
        notices=tuple(_notices(context, found, driver, unknown)),
    )


def _drivers(context: Context, found: Found) -> _Drivers:
    config, profile = context.config, context.profile
    declared = config.driver_declarations()
    if not declared:
        grouping = pools.group(found.nodes, {}, profile.driver_name)
        return _Drivers(
            plans=(),
            pools=grouping.pools,
            errors=(),
            unlabelled=grouping.unlabelled,
            unclaimed=(),
            notices=(),
        )
    claimed = drivers.claims(declared, found.nodes, context.managed)
    errors = [*claimed.contested, *drivers.catch_all_conflicts(declared)]
    groupings: dict[str, pools.Grouping] = {}
    notices: list[Notice] = []
    for name, section in declared:
        nodes = claimed.nodes[name]
        kept, told = drivers.kept_pools(name, section, nodes, found.driver_sets)
        groupings[name] = pools.group(nodes, {}, name, [one.key for one in kept])
        notices += told
        path = "driver" if name == profile.driver_name else f"drivers.{name}"
        errors += drivers.conflicts(path, section, groupings[name], profile)
    every = [pool for grouping in groupings.values() for pool in grouping.pools]
    kernels = sorted({pool.kernel for pool in every})
    return _Drivers(
        plans=tuple(
            operand_plans.driver(
                context,
                one,
                drivers.pool_plans(one.name, one.section, groupings[one.name], kernels),
            )
            for one in declared
        ),
        pools=tuple(every),
        errors=tuple(errors),
        unlabelled=tuple(p for one in groupings.values() for p in one.unlabelled),
        unclaimed=claimed.unclaimed,
        notices=tuple(notices),
    )


def _is_on(config: RootConfig, state: State) -> bool:
    """States without a section are always on; the driver is, when any declaration is."""
    if state.name == contract.DRIVER_OPERAND:
        return bool(config.driver_declarations())
    return not state.section or bool(getattr(config, state.section).enabled)


def _unknown_runtimes(context: Context) -> tuple[Problem, ...]:
    section = context.config.container_toolkit
    if not section.enabled:
        return ()
    return runtimes.unknown(runtimes.users(context.nodes, context), section.runtime)


def _summaries(
    context: Context, driver: _Drivers, workloads: Sequence[OperandPlan]
) -> Iterator[Summary]:
    served = tuple(node.name for node in runtimes.users(context.nodes, context))
    images = {plan.operand: plan.image.reference for plan in workloads}
    images |= {plan.operand: plan.image.reference for plan in driver.plans}
    pooled = tuple(node.name for pool in driver.pools for node in pool.nodes)
    for state in context.profile.states:
        if state.section or state.name in images:
            on = state.name in images
            nodes = pooled if state.name == contract.DRIVER_OPERAND else served
            yield Summary(
                name=state.name,
                enabled=on,
                image=images.get(state.name, ""),
                nodes=nodes if on and state.name != contract.NODE_STATE_OPERAND else (),
            )


def _notices(
    context: Context, found: Found, driver: _Drivers, unknown: Sequence[Problem]
) -> Iterator[Notice]:
    if not found.live:
        yield Notice(
            "warning", found.source, "nodes were read from this file, not from the cluster"
        )
    if found.absence:
        yield Notice("warning", found.absence.subject, _told(found.absence))
    for problem in (*driver.unlabelled, *unknown):
        yield Notice("warning", problem.subject, _told(problem))
    for problem in driver.unclaimed:
        yield Notice("info", problem.subject, _told(problem))
    yield from driver.notices
    yield from _not_deployed(context)
    for plan in driver.plans:
        for entry in plan.pools:
            for node in entry.pool.nodes:
                yield from _node_notices(node, entry.pool, plan)


def _not_deployed(context: Context) -> Iterator[Notice]:
    """Operands that config may switch on but this version does not bring."""
    for state in context.profile.states:
        if not state.deployed and _is_on(context.config, state):
            text = "it is enabled, but this version does not deploy it"
            yield Notice("warning", state.name, text)


def _node_notices(node: NodeFacts, pool: Pool, plan: DriverPlan) -> Iterator[Notice]:
    """Why a node of a pool has no driver pod for now, although the pool serves it."""
    subject, profile = f"node {node.name}", plan.profile
    deploy = profile.deploy_label(contract.DRIVER_OPERAND)
    value = node.labels.get(deploy)
    if value in placement.deploy_exclusions(contract.DRIVER_OPERAND):
        text = f"its label {deploy}={value} keeps the driver of {pool.name} off it"
        yield Notice("info", subject, text)
    workload = contract.WORKLOAD_CONTAINER
    if not placement.serves(node.labels, profile, plan.default_workload, workload):
        key = profile.workload_label
        value = node.labels.get(key, f"{plan.default_workload} (by default)")
        text = f"its label {key}={value} keeps the driver of {pool.name} off it"
        yield Notice("info", subject, text)
    for taint in placement.keeping_off(node.taints, plan.tolerations):
        yield Notice(
            "warning",
            subject,
            f"its taint {taint} keeps the driver of {pool.name} off it; add a toleration to "
            "driver.tolerations or daemonsets.tolerations",
        )


def _told(problem: Problem) -> str:
    return f"{problem.what}. {problem.remedy}."
