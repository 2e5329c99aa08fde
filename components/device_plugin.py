"""The device plugin operand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.base import Operand, place_of
from rbln_stack.pods import services as pods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Resource, ResourceOptions

    from rbln_stack.operands import DevicePluginPlan


class DevicePlugin(Operand):
    """The device plugin and its configuration."""

    def __init__(
        self,
        plan: DevicePluginPlan,
        *,
        after: Sequence[Resource],
        opts: ResourceOptions | None = None,
    ) -> None:
        super().__init__("DevicePlugin", plan.name, place_of(plan), opts)
        made = self.bundle(plan, after)
        config = self.config_map(plan.config_name, pods.plugin_data(plan), [*after, *made])
        self.workloads: list[Resource] = [
            self.daemon_set(
                plan.name, pods.device_plugin(plan), [*after, *made, config], awaited=plan.awaited
            )
        ]
        self.register_outputs({"daemonSet": plan.name})
