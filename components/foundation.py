"""What every operand stands on: the namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.base import Operand

if TYPE_CHECKING:
    from pulumi import ResourceOptions

    from rbln_stack.plan import StackPlan


class Foundation(Operand):
    """The namespace of all namespaced operands (S0-51)."""

    def __init__(self, plan: StackPlan, *, opts: ResourceOptions | None = None) -> None:
        super().__init__("Foundation", "foundation", opts)
        self.home = self.namespace(plan.namespace)
        self.register_outputs({"namespace": plan.namespace})
