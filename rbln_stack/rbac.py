"""Rights of each operand's service account, as data: no wildcard, nothing for later use."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rbln_stack import contract

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi_kubernetes.rbac.v1 import PolicyRuleArgsDict

# API group of the stack's own declarations.
VENDOR_GROUP: Final = "rebellions.ai"
_READ: Final = ("get", "list", "watch")


@dataclass(frozen=True, slots=True)
class Rule:
    """Verbs on resources of one API group."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What an account may do in the stack's namespace and in the whole cluster."""

    namespaced: tuple[Rule, ...] = ()
    cluster: tuple[Rule, ...] = ()


RIGHTS: Final[Mapping[str, Rights]] = MappingProxyType(
    {
        # Pauses operands by node labels and evicts the pods that hold devices.
        contract.DRIVER_OPERAND: Rights(
            cluster=(
                Rule("", ("nodes",), (*_READ, "patch", "update")),
                Rule("", ("pods",), _READ),
                Rule("", ("pods/eviction",), ("create",)),
                Rule("apps", ("daemonsets",), ("get",)),
            )
        ),
        # Looks for driver DaemonSets; makes and removes the pods of its own checks.
        contract.VALIDATOR_OPERAND: Rights(
            namespaced=(
                Rule("", ("pods",), (*_READ, "create", "update", "patch", "delete")),
                Rule("apps", ("daemonsets",), _READ),
            ),
            cluster=(Rule("", ("nodes",), _READ),),
        ),
        # Its init container looks for driver DaemonSets.
        contract.TOOLKIT_OPERAND: Rights(namespaced=(Rule("apps", ("daemonsets",), ("list",)),)),
        # These talk to the kubelet or to nobody.
        contract.DEVICE_PLUGIN_OPERAND: Rights(),
        contract.FEATURE_DISCOVERY_OPERAND: Rights(),
        contract.DAEMON_OPERAND: Rights(),
        contract.EXPORTER_OPERAND: Rights(),
        # Reads what its verdict rests on; writes the status of the stack's own declarations.
        contract.NODE_STATE_OPERAND: Rights(
            namespaced=(
                Rule("apps", ("daemonsets", "controllerrevisions"), _READ),
                Rule("", ("pods",), _READ),
            ),
            cluster=(
                Rule("", ("nodes",), _READ),
                Rule(VENDOR_GROUP, ("rblndrivers", "rblnclusterpolicies"), _READ),
                Rule(
                    VENDOR_GROUP, ("rblndrivers/status", "rblnclusterpolicies/status"), ("patch",)
                ),
            ),
        ),
    }
)


def rules(rights: tuple[Rule, ...]) -> list[PolicyRuleArgsDict]:
    """The rules of a role."""
    return [_rule(right) for right in rights]


def _rule(right: Rule) -> PolicyRuleArgsDict:
    return {
        "api_groups": [right.group],
        "resources": list(right.resources),
        "verbs": list(right.verbs),
    }
