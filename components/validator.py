"""The validator operand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.base import Operand, place_of
from rbln_stack.pods import validator as pods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Resource, ResourceOptions

    from rbln_stack.operands import ValidatorPlan


class Validator(Operand):
    """Not awaited: its pods are ready only after the toolkit's, which come later (X-06)."""

    def __init__(
        self, plan: ValidatorPlan, *, after: Sequence[Resource], opts: ResourceOptions | None = None
    ) -> None:
        super().__init__("Validator", plan.name, place_of(plan), opts)
        made = self.bundle(plan, after)
        self.workloads: list[Resource] = [
            self.daemon_set(plan.name, pods.daemon_set(plan), [*after, *made], awaited=plan.awaited)
        ]
        self.register_outputs({"daemonSet": plan.name})
