from __future__ import annotations

import random
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from components.assemble import assemble
from rbln_stack import contract, kube, render
from rbln_stack.config.load import load
from rbln_stack.discovery import Found
from rbln_stack.errors import PlanError
from rbln_stack.plan import make_plan
from rbln_stack.planview import PlanView
from rbln_stack.profiles import RBLN
from rbln_stack.render import Recorded, in_order
from tests.unit.components.recording import record
from tests.unit.rbln_stack.fleet import facts


def thing(name: str, *after: str, kind: str = "ConfigMap") -> Recorded:
    manifest = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
    return Recorded(urn=name, manifest=manifest, after=frozenset(after))


def names(manifests: list[render.Manifest]) -> list[str]:
    return [manifest["metadata"]["name"] for manifest in manifests]


def test_circle_is_an_error_with_its_members() -> None:
    with pytest.raises(PlanError, match="these wait for each other: a, b"):
        in_order([thing("a", "b"), thing("b", "a"), thing("c")])


def test_order_holds_through_steps_that_are_no_objects() -> None:
    step = Recorded(urn="step", manifest=None, after=frozenset({"z"}))
    found = in_order([thing("a", "step"), step, thing("z"), thing("ns", kind="Namespace")])
    assert names(found) == ["ns", "z", "a"]


def test_order_does_not_depend_on_registration() -> None:
    things = [
        thing(f"n{number:02}", *([f"n{number - 7:02}"] * (number > 7))) for number in range(20)
    ]
    first = in_order(things)
    for seed in range(5):
        shuffled = random.Random(seed).sample(things, len(things))  # noqa: S311 - not a secret
        assert in_order(shuffled) == first


def test_owner_without_identity_is_left_out() -> None:
    known = {"uid": "123"}
    manifest = {"metadata": {"ownerReferences": [{"uid": render.UNKNOWN_UID}, known]}}
    assert render.cleaned(manifest) == {"metadata": {"ownerReferences": [known]}}
    alone = {"metadata": {"name": "n", "ownerReferences": [{"uid": render.UNKNOWN_UID}]}}
    assert render.cleaned(alone) == {"metadata": {"name": "n"}}


def test_documents_read_back_and_look_like_manifests() -> None:
    manifest = render.cleaned(
        {"data": {"x": "a\nb\n"}, "metadata": {"labels": {}, "name": "n"}, "kind": "K", "n": 2.0}
    )
    text = render.documents([manifest, manifest])
    assert list(yaml.safe_load_all(text)) == [manifest, manifest]
    assert text.startswith("kind: K\nmetadata:\n  name: n\n")
    assert "x: |" in text
    assert "n: 2\n" in text


def test_file_names_sort_as_they_apply() -> None:
    manifests = [one.manifest or {} for one in (thing(f"n{number}") for number in range(120))]
    found = render.file_names(manifests)
    assert found == sorted(found)
    assert found[0] == "001-configmap-n0.yaml"


KERNELS = st.sampled_from(["5.15.0-91-generic", "6.8.0-49-generic", "5.14.0-503.el9.x86_64"])
NODES = st.lists(
    st.tuples(KERNELS, st.sampled_from(["22.04", "24.04"]), st.sampled_from(["amd64", "arm64"])),
    min_size=1,
    max_size=12,
)


@settings(max_examples=15, deadline=None)
@given(nodes=NODES, tag=st.sampled_from(["3.0.0", "3.1.0-rc1"]))
def test_rendered_drivers_are_the_planned_ones(nodes: list[Any], tag: str) -> None:
    found = Found(
        "live",
        tuple(
            facts(f"n{number}", kernel=kernel, os_version=version, arch=arch)
            for number, (kernel, version, arch) in enumerate(nodes)
        ),
    )
    plan = make_plan(load({"driver": {"image": {"tag": tag}}}), found, RBLN)
    view = PlanView(profile=RBLN, source="live", pools=plan.pools, plan=plan)
    objects = record(lambda: assemble(plan, kube.Access())).objects()
    rendered = {
        one["metadata"]["labels"][RBLN.pool_label]: _driver_image(one)
        for one in objects
        if one["kind"] == "DaemonSet" and RBLN.pool_label in (one["metadata"].get("labels") or {})
    }
    assert rendered == {row["name"]: row["image"] for row in view.pool_rows()}
    assert objects[0]["kind"] == "Namespace"
    assert all({"apiVersion", "kind", "metadata"} <= one.keys() for one in objects)
    assert not any(key.startswith("__") for one in objects for key in one)


def _driver_image(manifest: dict[str, Any]) -> str:
    assert manifest["metadata"]["labels"][contract.COMPONENT_LABEL] == RBLN.driver_name
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    image: str = container["image"]
    return image
