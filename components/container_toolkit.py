"""The container toolkit operand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.base import Operand, place_of
from rbln_stack.pods import toolkit as pods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Resource, ResourceOptions

    from rbln_stack.operands import ToolkitPlan


class ContainerToolkit(Operand):
    """One DaemonSet per container runtime in use; they share the rest (X-13)."""

    def __init__(
        self, plan: ToolkitPlan, *, after: Sequence[Resource], opts: ResourceOptions | None = None
    ) -> None:
        super().__init__("ContainerToolkit", plan.name, place_of(plan), opts)
        made = self.bundle(plan, after)
        start = self.config_map(plan.entrypoint_name, pods.entrypoint_data(plan), [*after, *made])
        self.workloads: list[Resource] = [
            self.daemon_set(
                group.name,
                pods.daemon_set(plan, group),
                [*after, *made, start],
                awaited=plan.awaited,
            )
            for group in plan.groups
        ]
        self.register_outputs({"daemonSets": [group.name for group in plan.groups]})
