"""Config + node facts + vendor profile → what will be made. Pure: no Pulumi, no I/O.

The program hands the plan to the components, the command line shows it. After this step nobody
looks at config again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rbln_stack import contract, naming, placement, pools
from rbln_stack.errors import DiscoveryError, Notice, PlanError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rbln_stack.config.operands import DriverSection
    from rbln_stack.config.root import RootConfig
    from rbln_stack.discovery import Found
    from rbln_stack.nodes import NodeFacts
    from rbln_stack.pools import Grouping, Pool
    from rbln_stack.profiles import VendorProfile

Plain = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverPoolPlan:
    """One driver DaemonSet."""

    name: str
    pool: Pool
    image: str
    node_selector: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverPlan:
    """The driver operand: what its DaemonSets share, and one entry per pool."""

    name: str
    namespace: str
    profile: VendorProfile
    pull_policy: str
    pull_secrets: tuple[str, ...]
    args: tuple[str, ...]
    env: tuple[Plain, ...]
    resources: Plain
    tolerations: tuple[Plain, ...]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    priority_class: str
    pools: tuple[DriverPoolPlan, ...]

    @property
    def probe_name(self) -> str:
        """Name of the ConfigMap that holds the startup probe."""
        return f"{self.name}-startup-probe"


@dataclass(frozen=True, slots=True, kw_only=True)
class StackPlan:
    """Everything the stack will hold; an operand that is off is None."""

    profile: VendorProfile
    namespace: str
    source: str
    pools: tuple[Pool, ...]
    driver: DriverPlan | None
    problems: tuple[Problem, ...]
    notices: tuple[Notice, ...]

    def outputs(self) -> Plain:
        """The stack's outputs, plain values only."""
        return {
            "namespace": self.namespace,
            "nodeSource": self.source,
            "pools": [pool.summary() for pool in self.pools],
            "problems": [str(problem) for problem in self.problems],
        }


def make_plan(config: RootConfig, found: Found, profile: VendorProfile) -> StackPlan:
    """Decide everything; raise with all problems when config and nodes cannot be reconciled."""
    strict = config.discovery.on_missing == "fail"
    if found.absence and strict:
        raise DiscoveryError([found.absence])
    grouping = pools.group(found.nodes, config.driver.node_selector, profile.driver_name)
    problems = _conflicts(config.driver, grouping, profile) if config.driver.enabled else []
    if strict and config.driver.enabled:
        problems += grouping.unlabelled
    if problems:
        raise PlanError(problems)
    namespace = config.namespace or profile.default_namespace
    driver = _driver(config, grouping, profile, namespace) if config.driver.enabled else None
    absent = (found.absence,) if found.absence else ()
    return StackPlan(
        profile=profile,
        namespace=namespace,
        source=found.source,
        pools=grouping.pools,
        driver=driver,
        problems=(*absent, *grouping.problems),
        notices=tuple(_notices(found, grouping, driver, profile)),
    )


def _driver(
    config: RootConfig, grouping: Grouping, profile: VendorProfile, namespace: str
) -> DriverPlan:
    section, shared = config.driver, config.daemonsets
    return DriverPlan(
        name=profile.driver_name,
        namespace=namespace,
        profile=profile,
        pull_policy=section.image.pull_policy,
        pull_secrets=section.image_pull_secrets,
        args=section.args or profile.driver_args,
        env=tuple(variable.plain() for variable in section.env),
        resources=section.resources.plain(),
        tolerations=tuple(t.plain() for t in section.tolerations or shared.tolerations),
        labels=section.labels,
        annotations=section.annotations,
        priority_class=section.priority_class_name or shared.priority_class_name,
        pools=tuple(_driver_pool(section, pool, profile) for pool in grouping.pools),
    )


def _driver_pool(section: DriverSection, pool: Pool, profile: VendorProfile) -> DriverPoolPlan:
    return DriverPoolPlan(
        name=naming.object_name(profile.driver_name, pool.name),
        pool=pool,
        image=_driver_image(section, pool, profile),
        node_selector=placement.pool_selector(pool, section.node_selector),
    )


def _driver_image(section: DriverSection, pool: Pool, profile: VendorProfile) -> str:
    default = profile.driver_image
    tag = section.image.tag or default.tag
    if section.use_precompiled:
        tag = naming.precompiled_tag(tag, pool.kernel, pool.os_id, pool.os_version)
    return naming.image_reference(
        section.image.registry or default.registry,
        section.image.repository or default.repository,
        tag,
    )


def _conflicts(section: DriverSection, grouping: Grouping, profile: VendorProfile) -> list[Problem]:
    """Keys that config may not set because the plan gives them their values."""
    taken = {contract.COMPONENT_LABEL, profile.pool_label, profile.instance_label}
    problems = [
        Problem(
            f"driver.labels.{key}",
            "the DaemonSet selects its pods by this label",
            "Use another key",
        )
        for key in sorted(taken & section.labels.keys())
    ]
    reserved = {*contract.GROUPING_LABELS, profile.deploy_label(contract.DRIVER_OPERAND)}
    problems += [
        Problem(
            f"driver.nodeSelector.{key}",
            "each pool gives this label its own value",
            "Remove it; to keep the driver off a node label the node "
            f"{profile.deploy_label(contract.DRIVER_OPERAND)}={contract.DEPLOY_OFF}",
        )
        for key in sorted(reserved & section.node_selector.keys())
    ]
    # A selector on a reserved key leaves nodes out for a reason that is reported above.
    return (
        problems
        if problems or not section.use_precompiled
        else _long_tags(section, grouping, profile)
    )


def _long_tags(section: DriverSection, grouping: Grouping, profile: VendorProfile) -> list[Problem]:
    return [
        Problem(
            f"pool {pool.name}",
            f"the image {image} has a tag of more than {naming.TAG_LIMIT} characters",
            "Shorten driver.image.tag, or set driver.usePrecompiled to false",
        )
        for pool in grouping.pools
        for image in (_driver_image(section, pool, profile),)
        if len(image.rpartition(":")[2]) > naming.TAG_LIMIT
    ]


def _notices(
    found: Found, grouping: Grouping, driver: DriverPlan | None, profile: VendorProfile
) -> Iterator[Notice]:
    if not found.live:
        yield Notice(
            "warning", found.source, "nodes were read from this file, not from the cluster"
        )
    if found.absence:
        yield Notice("warning", found.absence.subject, _told(found.absence))
    for problem in grouping.unlabelled:
        yield Notice("warning", problem.subject, _told(problem))
    for problem in grouping.unselected:
        yield Notice("info", problem.subject, _told(problem))
    if driver is not None:
        for pool in grouping.pools:
            for node in pool.nodes:
                yield from _node_notices(node, pool, driver.tolerations, profile)


def _node_notices(
    node: NodeFacts, pool: Pool, tolerations: Sequence[Plain], profile: VendorProfile
) -> Iterator[Notice]:
    """Why a node of a pool has no driver pod for now, although the pool serves it."""
    subject = f"node {node.name}"
    excluded = {
        profile.deploy_label(contract.DRIVER_OPERAND): placement.deploy_exclusions(
            contract.DRIVER_OPERAND
        ),
        profile.workload_label: placement.workload_exclusions(profile),
    }
    for key, values in excluded.items():
        value = node.labels.get(key)
        if value in values:
            yield Notice(
                "info", subject, f"its label {key}={value} keeps the driver of {pool.name} off it"
            )
    for taint in placement.keeping_off(node.taints, tolerations):
        yield Notice(
            "warning",
            subject,
            f"its taint {taint} keeps the driver of {pool.name} off it; add a toleration to "
            "driver.tolerations or daemonsets.tolerations",
        )


def _told(problem: Problem) -> str:
    return f"{problem.what}. {problem.remedy}."
