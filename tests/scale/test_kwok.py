"""A large fleet: real control plane, kwok's nodes, no root needed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.machine import Machine
from toolchain.cluster import lifecycle

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.scale

NODES = 1000


@pytest.fixture(scope="module")
def fleet() -> Iterator[Machine]:
    machine = Machine.make("scale", nodes=0, kwok=NODES)
    seen = lifecycle.status("scale")
    assert seen is not None
    # Right after `up`: a server that fell over at its start would be missing here.
    assert seen.state == "up"
    yield machine
    machine.remove()


def test_a_thousand_nodes_are_ready_and_labelled_like_real_ones(fleet: Machine) -> None:
    nodes = fleet.get("nodes", "--selector=feature.node.kubernetes.io/pci-1200_1eff.present=true")
    ready = Counter(
        condition["status"]
        for node in nodes["items"]
        for condition in node["status"]["conditions"]
        if condition["type"] == "Ready"
    )
    assert ready == {"True": NODES}


# S0-02, DC-25: pools do not grow with the number of nodes.
def test_the_program_previews_a_thousand_nodes_as_two_pools(fleet: Machine) -> None:
    fleet.pulumi("stack", "select", "--create", "dev")
    preview = fleet.pulumi("preview", "--stack", "dev")
    assert preview.count("nodeCount: 500") == 2
