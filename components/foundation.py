"""What every operand stands on: the namespace and the definitions of the stack's own objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.base import Operand, Place
from rbln_stack.crds.load import crd_manifests
from rbln_stack.operands import stack_labels
from rbln_stack.states import PREREQUISITES

if TYPE_CHECKING:
    from pulumi import Resource, ResourceOptions

    from rbln_stack.plan import StackPlan


class Foundation(Operand):
    """The namespace of all namespaced operands (S0-51), and the definitions."""

    def __init__(self, plan: StackPlan, *, opts: ResourceOptions | None = None) -> None:
        place = Place(namespace=plan.namespace, labels=stack_labels(PREREQUISITES))
        super().__init__("Foundation", "foundation", place, opts)
        self.home = self.namespace(plan.namespace)
        self.definitions = [
            self.cluster_object(
                found["metadata"]["name"], found["apiVersion"], found["kind"], found["spec"], ()
            )
            for found in crd_manifests(plan.profile)
        ]
        self.workloads: list[Resource] = [self.home, *self.definitions]
        self.register_outputs({"namespace": plan.namespace})
