"""The feature discovery operand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.base import Operand, place_of
from rbln_stack.pods import services as pods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Resource, ResourceOptions

    from rbln_stack.operands import DaemonPlan


class FeatureDiscovery(Operand):
    """Labels nodes, through NFD, with what their devices are."""

    def __init__(
        self, plan: DaemonPlan, *, after: Sequence[Resource], opts: ResourceOptions | None = None
    ) -> None:
        super().__init__("FeatureDiscovery", plan.name, place_of(plan), opts)
        made = self.bundle(plan, after)
        self.workloads: list[Resource] = [
            self.daemon_set(
                plan.name, pods.feature_discovery(plan), [*after, *made], awaited=plan.awaited
            )
        ]
        self.register_outputs({"daemonSet": plan.name})
