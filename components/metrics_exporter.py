"""The metrics exporter operand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.base import Operand, place_of
from rbln_stack.pods import parts
from rbln_stack.pods import services as pods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Resource, ResourceOptions

    from rbln_stack.operands import ExporterPlan


class MetricsExporter(Operand):
    """The exporter, and the Service that Prometheus looks for."""

    def __init__(
        self, plan: ExporterPlan, *, after: Sequence[Resource], opts: ResourceOptions | None = None
    ) -> None:
        super().__init__("MetricsExporter", plan.name, place_of(plan), opts)
        made = self.bundle(plan, after)
        self.metrics_service = self.service(
            f"{plan.name}-service",
            pods.exporter_service(plan),
            [*after, *made],
            labels=parts.app_labels(plan.name),
            annotations=pods.scrape_annotations(plan),
        )
        self.workloads: list[Resource] = [
            self.daemon_set(plan.name, pods.exporter(plan), [*after, *made], awaited=plan.awaited)
        ]
        self.register_outputs({"daemonSet": plan.name})
