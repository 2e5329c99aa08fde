"""The driver operand: its account, its startup probe and one DaemonSet per pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.base import Operand
from rbln_stack import pods, rbac

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Resource, ResourceOptions

    from rbln_stack.plan import DriverPlan


class DriverPools(Operand):
    """One DaemonSet per pool; they share everything else (S0-02, DC-13)."""

    def __init__(
        self,
        plan: DriverPlan,
        *,
        after: Sequence[Resource],
        opts: ResourceOptions | None = None,
    ) -> None:
        super().__init__("DriverPools", plan.name, opts)
        account = self.service_account(plan.name, plan.namespace, after)
        rights = self.cluster_rights(account, plan.name, plan.namespace, rbac.driver_rules())
        probe = self.config_map(
            plan.probe_name, plan.namespace, pods.startup_probe_data(plan), after
        )
        needed = (*after, account, rights, probe)
        self.workloads = [
            self.daemon_set(
                pool.name,
                plan.namespace,
                pods.driver_daemon_set(plan, pool),
                needed,
                labels=pods.driver_labels(plan, pool),
                awaited=False,
            )
            for pool in plan.pools
        ]
        self.register_outputs({"daemonSets": [pool.name for pool in plan.pools]})
