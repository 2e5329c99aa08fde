"""The controller that reports on nodes and on the stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.base import Operand, place_of
from rbln_stack.pods import node_state as pods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Resource, ResourceOptions

    from rbln_stack.operands import NodeStatePlan


class NodeState(Operand):
    """Writes what the status object says; runs from the start, so that waiting runs can be read."""

    def __init__(
        self, plan: NodeStatePlan, *, after: Sequence[Resource], opts: ResourceOptions | None = None
    ) -> None:
        super().__init__("NodeState", plan.name, place_of(plan), opts)
        made = self.bundle(plan, after)
        self.workloads: list[Resource] = [
            self.deployment(plan.name, pods.deployment(plan), [*after, *made])
        ]
        self.register_outputs({"deployment": plan.name})
