"""The stack's status object: the last thing made, and what a run waits for (D5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.base import SKIP_AWAIT, Operand, Place
from rbln_stack import contract
from rbln_stack.operands import stack_labels
from rbln_stack.states import STATUS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Resource, ResourceOptions

    from rbln_stack.plan import StackPlan


class StatusObject(Operand):
    """Ready when the node-state controller says so."""

    def __init__(
        self, plan: StackPlan, *, after: Sequence[Resource], opts: ResourceOptions | None = None
    ) -> None:
        status, profile = plan.status, plan.profile
        place = Place(namespace=plan.namespace, labels=stack_labels(STATUS))
        super().__init__("StatusObject", status.name, place, opts)
        gate = {contract.WAIT_FOR_ANNOTATION: f"condition={contract.READY_CONDITION}"}
        self.workloads: list[Resource] = [
            self.cluster_object(
                status.name,
                profile.policy_api,
                profile.policy_kind,
                status.spec,
                after,
                annotations=gate if status.gate else SKIP_AWAIT,
                timeout_s=status.timeout_s,
            )
        ]
        self.register_outputs({"name": status.name})
