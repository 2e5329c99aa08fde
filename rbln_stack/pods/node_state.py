"""The Deployment of the node-state controller: reports, and touches no node's file system."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rbln_stack import placement
from rbln_stack.pods import parts

if TYPE_CHECKING:
    from pulumi_kubernetes.apps.v1 import DeploymentSpecArgsDict
    from pulumi_kubernetes.core.v1 import ContainerArgsDict, PodSpecArgsDict

    from rbln_stack.operands import NodeStatePlan, Plain


def deployment(plan: NodeStatePlan) -> DeploymentSpecArgsDict:
    """One pod on any node; a second would write the same status."""
    labels = parts.app_labels(plan.name)
    spec: Plain = {
        "service_account_name": plan.name,
        "tolerations": placement.toleration_list(plan.tolerations),
        "security_context": {"run_as_non_root": True, "run_as_user": 65532, "run_as_group": 65532},
        "containers": [_container(plan)],
    }
    if plan.pull_secrets:
        spec["image_pull_secrets"] = [{"name": name} for name in plan.pull_secrets]
    if plan.priority_class:
        spec["priority_class_name"] = plan.priority_class
    return {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"match_labels": labels},
        "template": parts.template(plan, labels, cast("PodSpecArgsDict", spec)),
    }


def _container(plan: NodeStatePlan) -> ContainerArgsDict:
    return {
        "name": plan.name,
        "image": plan.image.reference,
        "image_pull_policy": plan.image.pull_policy,
        "command": [parts.AGENT_PROGRAM],
        "args": list(plan.args),
        "env": parts.merged_env(plan.env),
        "resources": parts.resources_of(plan),
        "security_context": parts.confined(),
    }
