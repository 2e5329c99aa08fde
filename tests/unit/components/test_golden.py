"""Every object of every operand as the API server gets it; `--update-golden` writes them anew."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from components.assemble import assemble
from rbln_stack.config.load import load
from rbln_stack.discovery import Found
from rbln_stack.kube import Access
from rbln_stack.plan import make_plan
from rbln_stack.profiles import RBLN
from tests.unit.components.recording import Recorder, record
from tests.unit.rbln_stack.fleet import facts

GOLDEN = Path(__file__).parents[2] / "golden"
COMPONENTS = [
    state.component
    for state in RBLN.states
    if state.deployed and state.component != "Foundation"  # the definitions are files already
]


def rendered(recorder: Recorder, component: str) -> str:
    """The objects of one component, in the order they were registered."""
    (parent,) = recorder.kinds(component)
    objects = [r for r in recorder.seen if r.parent == parent.urn]
    objects.sort(key=lambda r: (r.type, r.name))
    return yaml.safe_dump_all([r.inputs for r in objects], sort_keys=True, width=100)


@pytest.mark.parametrize("source", ["vendor", "agents"])
@pytest.mark.parametrize("component", COMPONENTS)
def test_objects_of(component: str, source: str, request: pytest.FixtureRequest) -> None:
    plan = make_plan(load({"source": source}), Found("live", (facts("n"),)), RBLN)
    text = rendered(record(lambda: assemble(plan, Access())), component)
    path = GOLDEN / f"{component}.{source}.yaml"
    if request.config.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
