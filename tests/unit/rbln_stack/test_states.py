from __future__ import annotations

import pytest

from components.assemble import COMPONENTS
from rbln_stack import contract, operand_plans, states
from rbln_stack.config.root import RootConfig
from rbln_stack.states import RBLN_STATES, needed

NAMES = [state.name for state in RBLN_STATES]


def test_order_is_the_one_of_the_design() -> None:  # D4, S1-21, S1-48
    deployed = [state.name for state in RBLN_STATES if state.deployed]
    assert deployed == [
        "pre-requisites",
        "driver",
        "operator-validator",
        "container-toolkit",
        "device-plugin",
        "npu-feature-discovery",
        "rbln-daemon",
        "metrics-exporter",
        "node-state",
        "status",
    ]


def test_every_need_is_a_state_that_comes_earlier() -> None:  # DC-21
    for index, state in enumerate(RBLN_STATES):
        assert set(state.needs) <= set(NAMES[:index])


def test_states_without_await() -> None:  # X-06, D4
    assert [s.name for s in RBLN_STATES if not s.awaited] == ["driver", "operator-validator"]


def test_vm_states_are_for_vm_nodes_and_not_deployed() -> None:  # S1-49, S1-60
    vm = [s.name for s in RBLN_STATES if s.workloads == (contract.WORKLOAD_VM,)]
    assert vm == ["vfio-manager", "sandbox-device-plugin"]
    assert not any(s.deployed for s in RBLN_STATES if s.name in vm)


def test_every_deployed_state_has_a_component_and_every_section_exists() -> None:  # D5
    for state in RBLN_STATES:
        assert not state.section or state.section in RootConfig.model_fields
        if state.name in operand_plans.PLANNERS:
            assert state.component in COMPONENTS


def test_a_state_that_is_off_hands_its_needs_on() -> None:  # S1-23
    assert needed(RBLN_STATES, "device-plugin", NAMES) == ("container-toolkit",)
    present = {"pre-requisites", "driver"}
    assert needed(RBLN_STATES, "device-plugin", present) == ("driver",)
    assert needed(RBLN_STATES, "status", present) == ("pre-requisites", "driver")


def test_an_unknown_state_is_an_error() -> None:
    with pytest.raises(StopIteration):
        states.named(RBLN_STATES, "nothing")
