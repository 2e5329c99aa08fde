"""The telemetry daemon operand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.base import Operand, place_of
from rbln_stack.pods import services as pods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Resource, ResourceOptions

    from rbln_stack.operands import DaemonPlan


class RblnDaemon(Operand):
    """The daemon, and the Service by which pods reach that of their own node."""

    def __init__(
        self, plan: DaemonPlan, *, after: Sequence[Resource], opts: ResourceOptions | None = None
    ) -> None:
        super().__init__("RblnDaemon", plan.name, place_of(plan), opts)
        made = self.bundle(plan, after)
        self.daemon_service = self.service(
            plan.name, pods.daemon_service(plan), [*after, *made], labels={}, annotations={}
        )
        self.workloads: list[Resource] = [
            self.daemon_set(plan.name, pods.daemon(plan), [*after, *made], awaited=plan.awaited)
        ]
        self.register_outputs({"daemonSet": plan.name})
