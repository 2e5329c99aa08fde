"""Fixtures for tests on a real cluster: one per run, made when the first test asks for it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.support.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Iterator

CLUSTER = "test"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Golden files are written anew only when asked for, and the difference is reviewed."""
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fail, and never skip, where a cluster is asked for that cannot be made."""
    needs_root = [item for item in items if item.get_closest_marker("cluster")]
    if needs_root and os.geteuid() != 0:
        raise pytest.UsageError(
            f"{len(needs_root)} selected tests make real nodes and need root: "
            "run `sudo make test`, or `make test-fast` for the others"
        )


@pytest.fixture(scope="session")
def cluster() -> Iterator[Machine]:
    """The run's cluster: two real nodes in two driver pools."""
    machine = Machine.make(CLUSTER, nodes=2)
    yield machine
    machine.remove()
