"""The ordered list of what the stack deploys, as data: the only source of order and edges.

Read by the plan (which states are on), by the components (which workload waits for which) and by
status output. A state that is off passes its own needs on, so an order never breaks where an
operand is switched off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rbln_stack import contract

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

PREREQUISITES: Final = "pre-requisites"
STATUS: Final = "status"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One step of the order."""

    name: str
    component: str
    section: str = ""
    needs: tuple[str, ...] = ()
    workloads: tuple[str, ...] = (contract.WORKLOAD_CONTAINER,)
    awaited: bool = True
    deployed: bool = True


# D4. The driver is not awaited because OnDelete never rolls out by itself; the validator is not,
# because its pods are ready only after the toolkit, which comes later. The node-state
# controller needs the definitions alone: it must report while others still wait. VM operands are
# known, so that config for them is accepted, but no component deploys them yet.
RBLN_STATES: Final = (
    State(name=PREREQUISITES, component="Foundation", workloads=contract.WORKLOADS),
    State(
        name=contract.DRIVER_OPERAND,
        component="DriverPools",
        section="driver",
        needs=(PREREQUISITES,),
        awaited=False,
    ),
    State(
        name=contract.VALIDATOR_OPERAND,
        component="Validator",
        section="validator",
        needs=(contract.DRIVER_OPERAND,),
        awaited=False,
    ),
    State(
        name=contract.TOOLKIT_OPERAND,
        component="ContainerToolkit",
        section="container_toolkit",
        needs=(contract.VALIDATOR_OPERAND,),
    ),
    State(
        name=contract.DEVICE_PLUGIN_OPERAND,
        component="DevicePlugin",
        section="device_plugin",
        needs=(contract.TOOLKIT_OPERAND,),
    ),
    State(
        name=contract.DRA_OPERAND,
        component="DraKubeletPlugin",
        section="dra_kubelet_plugin",
        needs=(contract.TOOLKIT_OPERAND,),
        deployed=False,
    ),
    State(
        name=contract.FEATURE_DISCOVERY_OPERAND,
        component="FeatureDiscovery",
        section="npu_feature_discovery",
        needs=(contract.DEVICE_PLUGIN_OPERAND,),
    ),
    State(
        name=contract.DAEMON_OPERAND,
        component="RblnDaemon",
        section="rbln_daemon",
        needs=(contract.DEVICE_PLUGIN_OPERAND,),
    ),
    State(
        name=contract.EXPORTER_OPERAND,
        component="MetricsExporter",
        section="metrics_exporter",
        needs=(contract.DEVICE_PLUGIN_OPERAND,),
    ),
    State(
        name=contract.VFIO_OPERAND,
        component="VfioManager",
        section="vfio_manager",
        needs=(PREREQUISITES,),
        workloads=(contract.WORKLOAD_VM,),
        deployed=False,
    ),
    State(
        name=contract.SANDBOX_PLUGIN_OPERAND,
        component="SandboxDevicePlugin",
        section="sandbox_device_plugin",
        needs=(contract.VFIO_OPERAND,),
        workloads=(contract.WORKLOAD_VM,),
        deployed=False,
    ),
    State(
        name=contract.NODE_STATE_OPERAND,
        component="NodeState",
        needs=(PREREQUISITES,),
        workloads=contract.WORKLOADS,
    ),
    State(
        name=STATUS,
        component="StatusObject",
        needs=(
            contract.FEATURE_DISCOVERY_OPERAND,
            contract.DAEMON_OPERAND,
            contract.EXPORTER_OPERAND,
            contract.NODE_STATE_OPERAND,
        ),
        workloads=contract.WORKLOADS,
    ),
)


def named(states: Iterable[State], name: str) -> State:
    """One state; an unknown name is a bug of this project."""
    return next(state for state in states if state.name == name)


def needed(states: Iterable[State], name: str, present: Collection[str]) -> tuple[str, ...]:
    """The states that are on and that `name` comes directly after, in the order of the list.

    Needs of a state that is off are taken over by those that need it.
    """
    listed = tuple(states)
    found: set[str] = set()
    open_needs = list(named(listed, name).needs)
    while open_needs:
        need = open_needs.pop()
        if need in present:
            found.add(need)
        else:
            open_needs.extend(named(listed, need).needs)
    return tuple(state.name for state in listed if state.name in found)
