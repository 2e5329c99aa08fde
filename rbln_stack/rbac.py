"""Rights of each operand's service account, as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulumi_kubernetes.rbac.v1 import PolicyRuleArgsDict


def driver_rules() -> list[PolicyRuleArgsDict]:
    """The driver pod pauses operands by node labels and evicts pods that hold devices."""
    return [
        {
            "api_groups": [""],
            "resources": ["nodes"],
            "verbs": ["get", "list", "watch", "patch", "update"],
        },
        {"api_groups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
        {"api_groups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
        {"api_groups": ["apps"], "resources": ["daemonsets"], "verbs": ["get"]},
    ]
