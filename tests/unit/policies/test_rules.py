"""Each rule with a resource that keeps to it and one that does not."""

from __future__ import annotations

import pytest

from policies import rules

SKIP = {"pulumi.com/skipAwait": "true"}


def daemon_set(strategy: str, annotations: dict[str, str] | None) -> dict[str, object]:
    return {
        "metadata": {"name": "driver", "annotations": annotations},
        "spec": {"updateStrategy": {"type": strategy}},
    }


@pytest.mark.parametrize(
    "properties",
    [
        daemon_set("OnDelete", SKIP),
        daemon_set("RollingUpdate", None),
        {"metadata": {"name": "driver"}, "spec": {}},
        {},
    ],
)
def test_daemon_sets_that_end_their_wait_pass(properties: dict[str, object]) -> None:
    assert rules.awaited_on_delete(properties) is None


# DC-09
@pytest.mark.parametrize("annotations", [None, {}, {"pulumi.com/skipAwait": "false"}])
def test_an_awaited_on_delete_daemon_set_is_named(annotations: dict[str, str] | None) -> None:
    assert rules.awaited_on_delete(daemon_set("OnDelete", annotations)) == (
        "driver is OnDelete and awaited: give it the annotation "
        'pulumi.com/skipAwait: "true", else each change of its pods waits for the time-out'
    )
