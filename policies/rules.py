"""The rules, as pure checks on a resource's properties: what is wrong, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rbln_stack.contract import SKIP_AWAIT_ANNOTATION

Properties = Mapping[str, Any]


def awaited_on_delete(properties: Properties) -> str | None:
    """Find a DaemonSet that the engine would wait for without end.

    With OnDelete a changed template reaches a pod only when somebody deletes it, so the provider's
    wait for the new template ends at its time-out, never before.
    """
    spec, metadata = properties.get("spec") or {}, properties.get("metadata") or {}
    if (spec.get("updateStrategy") or {}).get("type") != "OnDelete":
        return None
    if (metadata.get("annotations") or {}).get(SKIP_AWAIT_ANNOTATION) == "true":
        return None
    name = metadata.get("name", "a DaemonSet without a name")
    return (
        f"{name} is OnDelete and awaited: give it the annotation "
        f'{SKIP_AWAIT_ANNOTATION}: "true", else each change of its pods waits for the time-out'
    )
