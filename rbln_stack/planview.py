"""A plan as `rbln-stack plan` shows it: plain values for programs, Markdown for a pull request.

Pure. It also shows what is known of a plan that could not be made, with every problem.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from rbln_stack.errors import Problem, StackError
from rbln_stack.impact import drivers_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rbln_stack.errors import Severity
    from rbln_stack.impact import Impact, PoolImpact
    from rbln_stack.nodes import NodeFacts
    from rbln_stack.plan import StackPlan
    from rbln_stack.pools import Pool
    from rbln_stack.profiles import VendorProfile

MARK: Final = "<!-- rbln-stack plan -->"
_SYMBOLS: Final[Mapping[str, str]] = {"error": "❌", "warning": "⚠️", "info": "ℹ️"}  # noqa: RUF001 - the sign itself is meant


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """Everything that is shown, whether the plan stands or not.

    `workload` is what nodes without a label of their own are for.
    """

    profile: VendorProfile | None
    source: str
    workload: str = ""
    nodes: tuple[NodeFacts, ...] = ()
    pools: tuple[Pool, ...] = ()
    plan: StackPlan | None = None
    problems: tuple[Problem, ...] = ()
    impact: Impact | None = None

    @property
    def failed(self) -> bool:
        """Whether a problem keeps the plan from being applied."""
        return any(problem.severity == "error" for problem in self.problems)

    def as_json(self) -> dict[str, Any]:
        """The plan for programs; `impact` is there only when the cluster was looked at."""
        shown: dict[str, Any] = {
            "profile": self.profile.name if self.profile else None,
            "source": self.source,
            "pools": self.pool_rows(),
            "operands": self.operands(),
            "nodes": self.node_rows(),
            "problems": [problem_json(problem) for problem in self.problems],
        }
        return shown if self.impact is None else {**shown, "impact": self.impact.as_json()}

    def operands(self) -> list[dict[str, Any]]:
        """Each operand with the number of its nodes; the driver alone if the plan has no list."""
        listed = getattr(self.plan, "operands", ())
        if listed:
            return [
                {"name": one.name, "enabled": one.enabled, "nodes": _count(one.nodes)}
                for one in listed
            ]
        if self.plan is None:
            return []
        drivers = drivers_of(self.plan)
        served = sum(len(entry.pool.nodes) for driver in drivers for entry in driver.pools)
        return [{"name": "driver", "enabled": bool(drivers), "nodes": served}]

    def pool_rows(self) -> list[dict[str, Any]]:
        """Each driver DaemonSet with its pool; pools that no driver serves come with no image."""
        drivers = drivers_of(self.plan) if self.plan else ()
        rows = [
            _pool_row(entry.pool)
            | {
                "driver": driver.name,
                "image": entry.image,
                "selector": dict(entry.node_selector),
            }
            for driver in drivers
            for entry in driver.pools
        ]
        served = {row["name"] for row in rows}
        rows += [_pool_row(pool) for pool in self.pools if pool.name not in served]
        return sorted(rows, key=lambda row: (row["name"], row["driver"] or ""))

    def node_rows(self) -> list[dict[str, Any]]:
        """Each accelerator node with its pool, or the reason why it has none."""
        home = {node: row["name"] for row in self.pool_rows() for node in row["nodes"]}
        reasons: dict[str, str] = {}
        for problem in self.problems:
            if problem.node:
                reasons.setdefault(problem.node, problem.what)
        return [
            {
                "name": node.name,
                "workload": self._workload_of(node),
                "pool": home.get(node.name),
                "problem": reasons.get(node.name),
            }
            for node in sorted(self.nodes, key=lambda node: node.name)
        ]

    def _workload_of(self, node: NodeFacts) -> str:
        label = self.profile.workload_label if self.profile else ""
        return node.labels.get(label) or self.workload


def _pool_row(pool: Pool) -> dict[str, Any]:
    return {
        "name": pool.name,
        "osId": pool.os_id,
        "osVersion": pool.os_version,
        "kernel": pool.kernel,
        "arch": pool.arch,
        "driver": None,
        "image": None,
        "selector": dict(pool.labels),
        "nodes": [node.name for node in pool.nodes],
    }


def plan_problems(plan: StackPlan) -> tuple[Problem, ...]:
    """Problems and notices of a plan that stands: none of them stopped it."""
    told = {str(problem) for problem in plan.problems}
    problems = [
        replace(problem, severity="warning") if problem.severity == "error" else problem
        for problem in plan.problems
    ]
    problems += [
        _noticed(notice.level, notice.subject, notice.text)
        for notice in plan.notices
        if str(notice) not in told and notice.subject != plan.source
    ]
    return tuple(problems)


def error_problems(error: StackError) -> tuple[Problem, ...]:
    """All problems of a failure; those without a code of their own get that of the failure."""
    return tuple(
        problem if problem.code else replace(problem, code=error.code) for problem in error.problems
    )


def problem_json(problem: Problem) -> dict[str, str]:
    """A problem for programs."""
    about = "" if problem.node else f"{problem.subject}: "
    return {
        "severity": problem.severity,
        "code": problem.code,
        "node": problem.node,
        "message": f"{about}{problem.what}",
        "remedy": problem.remedy,
    }


def markdown(view: PlanView, stack: str) -> str:
    """The comment for a pull request; the first line lets a workflow find and replace it."""
    return "\n".join([MARK, f"### rbln-stack plan of `{stack}`", "", *_body(view)]) + "\n"


def _body(view: PlanView) -> Iterator[str]:
    yield _headline(view)
    yield ""
    if view.pools:
        yield "| pool | nodes | image | change |"
        yield "| --- | ---: | --- | --- |"
        for row in view.pool_rows():
            change = _change(view.impact, row["name"])
            image = f"`{row['image']}`" if row["image"] else "none"
            yield f"| `{row['name']}` | {len(row['nodes'])} | {image} | {change} |"
        yield ""
    if view.impact is not None and view.impact.notices():
        yield "**Impact**"
        yield ""
        for notice in view.impact.notices():
            yield f"- {_SYMBOLS[notice.level]} {_inline(str(notice))}"
        yield ""
    if view.problems:
        yield "**Problems**"
        yield ""
        for problem in view.problems:
            remedy = f" *{_inline(problem.remedy)}.*" if problem.remedy else ""
            text = f"{problem.subject}: {problem.what}"
            yield f"- {_SYMBOLS[problem.severity]} {_inline(text)}.{remedy}"
        yield ""
    yield f"<sub>Nodes read from: {_inline(view.source) or 'nowhere'}.</sub>"


def _headline(view: PlanView) -> str:
    if view.failed:
        return "**This stack cannot be applied.** Nothing would be changed."
    counts = f"{len(view.nodes):,} accelerator nodes in {len(view.pools)} pools."
    if view.impact is None or not view.impact.observed:
        return f"{counts} The cluster was not looked at, so the impact is not known."
    if view.impact.quiet:
        return f"{counts} No node, driver pod or running pod is touched."
    workloads = len(view.impact.workloads)
    if not workloads:
        return f"{counts} No running pod that holds devices is affected."
    pods = "1 running pod that holds" if workloads == 1 else f"{workloads:,} running pods that hold"
    return f"{counts} **Affected: {pods} devices.**"


def _change(impact: Impact | None, name: str) -> str:
    found = [pool for pool in impact.pools if pool.pool == name] if impact else []
    return "; ".join(_counts(pool) for pool in found) or "not known"


def _counts(pool: PoolImpact) -> str:
    parts = {
        "join": len(pool.joins),
        "leave": len(pool.leaves),
        "move": len(pool.moves),
        f"replaced {pool.when}": len(pool.replaced),
        "outdated": len(pool.outdated),
        "kept off": len(pool.kept_off),
    }
    counted = [f"{count:,} {what}" for what, count in parts.items() if count]
    return f"{pool.action}{': ' if counted else ''}{', '.join(counted)}"


def _inline(text: str) -> str:
    """Text that cannot break a table, a list or open a tag."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _noticed(level: Severity, subject: str, text: str) -> Problem:
    kind, _, name = subject.partition(" ")
    node = name if kind == "node" else ""
    what, _, remedy = text.partition("; ")
    return Problem(subject, what, _sentence(remedy), severity=level, code="notice", node=node)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _count(nodes: int | Sequence[object]) -> int:
    return nodes if isinstance(nodes, int) else len(nodes)
