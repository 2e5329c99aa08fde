"""Whether a DaemonSet's pods may run on a node: node selector and required node affinity. Pure.

Needed because a pool says by its DaemonSet alone which nodes are its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents.node_state.facts import DaemonSet


def selects(daemon_set: DaemonSet, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a node of that name with these labels is one of the DaemonSet's."""
    if any(labels.get(key) != value for key, value in daemon_set.node_selector.items()):
        return False
    terms = daemon_set.affinity.get("nodeSelectorTerms")
    # Terms are alternatives; a term without any requirement matches nothing.
    return terms is None or any(_matches(term, name, labels) for term in terms)


def _matches(term: Mapping[str, Any], name: str, labels: Mapping[str, str]) -> bool:
    expressions = term.get("matchExpressions") or []
    fields = term.get("matchFields") or []
    if not expressions and not fields:
        return False
    return all(_holds(entry, labels) for entry in expressions) and all(
        _holds(entry, {"metadata.name": name}) for entry in fields
    )


def _holds(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.get("key", ""))
    wanted = requirement.get("values") or []
    checks = {
        "In": value in wanted,
        "NotIn": value not in wanted,
        "Exists": value is not None,
        "DoesNotExist": value is None,
        "Gt": _compared(value, wanted) > 0,
        "Lt": _compared(value, wanted) < 0,
    }
    return checks.get(requirement.get("operator", ""), False)


def _compared(value: str | None, wanted: list[str]) -> int:
    """The sign of the difference; what is no number is neither more nor less."""
    try:
        left, right = int(value or ""), int(wanted[0])
    except (ValueError, IndexError):
        return 0
    return (left > right) - (left < right)
