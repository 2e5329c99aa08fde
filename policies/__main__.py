"""The policy pack: hands resources to the rules. `pulumi preview --policy-pack policies`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi_policy import (
    EnforcementLevel,
    PolicyPack,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
)

from policies import rules

if TYPE_CHECKING:
    from collections.abc import Callable

DAEMON_SET = "kubernetes:apps/v1:DaemonSet"


def checked(
    kind: str, rule: Callable[[rules.Properties], str | None]
) -> Callable[[ResourceValidationArgs, ReportViolation], None]:
    """Apply a rule to the resources of one kind."""

    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        if args.resource_type == kind and (wrong := rule(args.props)) is not None:
            report(wrong, None)

    return validate


PolicyPack(
    name="rbln-stack",
    enforcement_level=EnforcementLevel.MANDATORY,
    policies=[
        ResourceValidationPolicy(
            name="on-delete-is-not-awaited",
            description="A DaemonSet with update strategy OnDelete skips the engine's await.",
            validate=checked(DAEMON_SET, rules.awaited_on_delete),
        ),
    ],
)
