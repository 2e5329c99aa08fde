"""Walks the states in order, makes a component per operand and joins the edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pulumi import ResourceOptions
from pulumi_kubernetes import Provider

from components.container_toolkit import ContainerToolkit
from components.device_plugin import DevicePlugin
from components.driver_pools import DriverPools
from components.feature_discovery import FeatureDiscovery
from components.foundation import Foundation
from components.metrics_exporter import MetricsExporter
from components.node_state import NodeState
from components.rbln_daemon import RblnDaemon
from components.status_object import StatusObject
from components.validator import Validator
from rbln_stack import states

if TYPE_CHECKING:
    from pulumi import Resource

    from rbln_stack.kube import Access
    from rbln_stack.plan import StackPlan

# The component of each state, by the key in the state list.
COMPONENTS: Final[dict[str, Any]] = {
    kind.__name__: kind
    for kind in (
        DriverPools,
        Validator,
        ContainerToolkit,
        DevicePlugin,
        FeatureDiscovery,
        RblnDaemon,
        MetricsExporter,
        NodeState,
    )
}


def assemble(plan: StackPlan, access: Access) -> None:
    """Declare every operand of the plan on the cluster discovery has read.

    Edges lead from workload to workload: an edge to a component alone would be lost when only
    children are deleted (DC-20).
    """
    inherited = ResourceOptions(provider=cluster_provider(access))
    listed = plan.profile.states
    foundation: list[Resource] = Foundation(plan, opts=inherited).workloads
    made: dict[str, list[Resource]] = {states.PREREQUISITES: foundation}
    for state in listed:
        plans = [one for one in (*plan.drivers, *plan.workloads) if one.operand == state.name]
        for one in plans:
            after = _after(state.name, plan, made)
            component = COMPONENTS[state.component](one, after=after, opts=inherited)
            made.setdefault(state.name, []).extend(component.workloads)
    StatusObject(plan, after=_after(states.STATUS, plan, made), opts=inherited)


def _after(name: str, plan: StackPlan, made: dict[str, list[Resource]]) -> list[Resource]:
    """The workloads a state comes after, and always what all of them stand on."""
    needed = states.needed(plan.profile.states, name, [one for one in made if one != name])
    order = dict.fromkeys((states.PREREQUISITES, *needed))
    return [workload for need in order for workload in made[need]]


def cluster_provider(access: Access) -> Provider:
    """The provider of all objects: a path at most goes into the state, never a file's content.

    An empty text, unlike None, keeps the SDK from recording this machine's KUBECONFIG; the
    provider then looks for credentials exactly where discovery did.
    """
    return Provider("cluster", kubeconfig=access.kubeconfig or "", context=access.context)
