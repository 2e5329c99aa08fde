"""The Pulumi program: load → discover → plan → assemble → export. Wiring only."""

from __future__ import annotations

import pulumi
from pulumi.runtime import is_config_secret
from pulumi.runtime.config import CONFIG

from components.assemble import assemble
from rbln_stack.config.load import load, stack_values
from rbln_stack.discovery import discover
from rbln_stack.errors import StackError
from rbln_stack.impact import impact
from rbln_stack.kube import access
from rbln_stack.observed import beside
from rbln_stack.plan import make_plan
from rbln_stack.profiles import PROFILES


def main() -> None:
    """Plan the stack and declare it; expected failures end the run without a stack trace."""
    project = pulumi.get_project()
    values = stack_values(CONFIG.get(), project)
    secrets = [key for key in values if is_config_secret(f"{project}:{key}")]
    try:
        config = load(values, secrets)
        profile = PROFILES[config.profile]
        plan = make_plan(config, discover(config, profile), profile)
        place = access(config.kubeconfig, config.context)
        effect = impact(plan, beside(plan, place, timeout_s=config.discovery.timeout_seconds))
    except StackError as error:
        raise pulumi.RunError(str(error)) from error
    for notice in (*plan.notices, *effect.notices()):
        (pulumi.log.warn if notice.level == "warning" else pulumi.log.info)(str(notice))
    assemble(plan, place)
    for name, value in {**plan.outputs(), "impact": effect.as_lines()}.items():
        pulumi.export(name, value)


main()
