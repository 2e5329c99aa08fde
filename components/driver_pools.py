"""One driver declaration: its status object, its account, and one DaemonSet per pool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pulumi
from pulumi.output import UNKNOWN, Unknown

from components.base import Operand, place_of
from rbln_stack import declarations
from rbln_stack.pods import driver as pods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Resource, ResourceOptions
    from pulumi_kubernetes.apiextensions import CustomResource
    from pulumi_kubernetes.meta.v1 import OwnerReferenceArgsDict

    from rbln_stack.operands import DriverPlan

# What the DaemonSets were called before they were named after the driver (S0-11).
_FORMER_NAME = "rbln-k8s-driver-manager"


class DriverPools(Operand):
    """One DaemonSet per pool, owned by the declaration; they share the rest (S0-02, DC-13)."""

    def __init__(
        self,
        plan: DriverPlan,
        *,
        after: Sequence[Resource],
        opts: ResourceOptions | None = None,
    ) -> None:
        super().__init__("DriverPools", plan.name, place_of(plan), opts)
        profile = plan.profile
        self.declaration = self.cluster_object(
            plan.name, profile.driver_api, profile.driver_kind, declarations.driver(plan), after
        )
        made = self.bundle(plan, after)
        probe = self.config_map(plan.probe_name, pods.startup_probe_data(plan), [*after, *made])
        owner = _owner(plan, self.declaration)
        self.workloads: list[Resource] = [
            self.daemon_set(
                pool.name,
                pods.daemon_set(plan, pool),
                [*after, *made, probe, self.declaration],
                awaited=plan.awaited,
                labels=pods.labels(plan, pool),
                owner=owner,
                former=[f"{_FORMER_NAME}-{pool.pool.name}"],
            )
            for pool in plan.pools
        ]
        self.register_outputs({"daemonSets": [pool.name for pool in plan.pools]})


def _uid(metadata: Any) -> Any:  # noqa: ANN401 - a map, or Pulumi's mark for what is not known
    """The identity that the API server gives; a preview of a new object cannot know it."""
    if isinstance(metadata, Unknown) or (pulumi.runtime.is_dry_run() and "uid" not in metadata):
        return UNKNOWN
    return metadata["uid"]


def _owner(plan: DriverPlan, declaration: CustomResource) -> OwnerReferenceArgsDict:
    """The vendor's validator takes a driver for managed only with such an owner (D5)."""
    return cast(
        "OwnerReferenceArgsDict",
        {
            "api_version": plan.profile.driver_api,
            "kind": plan.profile.driver_kind,
            "name": plan.name,
            # The SDK sets it without declaring it.
            "uid": cast("Any", declaration).metadata.apply(_uid, run_with_unknowns=True),
            "controller": True,
            "block_owner_deletion": True,
        },
    )
