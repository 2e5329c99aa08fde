"""The base of all operand components, and the only constructor call per Kubernetes kind.

Components pass plain names and typed dicts; nothing here looks at config or at nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi
from pulumi import ResourceOptions
from pulumi_kubernetes.apps.v1 import DaemonSet
from pulumi_kubernetes.core.v1 import ConfigMap, Namespace, ServiceAccount
from pulumi_kubernetes.rbac.v1 import ClusterRole, ClusterRoleBinding

from rbln_stack import contract

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Resource
    from pulumi_kubernetes.apps.v1 import DaemonSetSpecArgsDict
    from pulumi_kubernetes.meta.v1 import ObjectMetaArgsDict
    from pulumi_kubernetes.rbac.v1 import (
        PolicyRuleArgsDict,
        RoleRefArgsDict,
        SubjectArgsDict,
    )

SKIP_AWAIT = {contract.SKIP_AWAIT_ANNOTATION: "true"}


class Operand(pulumi.ComponentResource):
    """A component whose children are parented to it and inherit its provider."""

    def __init__(self, kind: str, name: str, opts: ResourceOptions | None) -> None:
        super().__init__(f"rbln:operand:{kind}", name, None, opts)

    def namespace(self, name: str) -> Namespace:
        """Make a namespace."""
        return Namespace(name, metadata=_meta(name), opts=self._child(()))

    def service_account(
        self, name: str, namespace: str, after: Sequence[Resource]
    ) -> ServiceAccount:
        """Make a service account."""
        return ServiceAccount(name, metadata=_meta(name, namespace), opts=self._child(after))

    def config_map(
        self, name: str, namespace: str, data: Mapping[str, str], after: Sequence[Resource]
    ) -> ConfigMap:
        """Make a ConfigMap."""
        return ConfigMap(name, metadata=_meta(name, namespace), data=data, opts=self._child(after))

    def cluster_rights(
        self, account: ServiceAccount, name: str, namespace: str, rules: list[PolicyRuleArgsDict]
    ) -> ClusterRoleBinding:
        """Make a cluster role and bind it to an account of the same name."""
        role = ClusterRole(name, metadata=_meta(name), rules=rules, opts=self._child(()))
        return ClusterRoleBinding(
            name,
            metadata=_meta(name),
            role_ref=_role_ref(name),
            subjects=[_subject(name, namespace)],
            opts=self._child((role, account)),
        )

    def daemon_set(
        self,
        name: str,
        namespace: str,
        spec: DaemonSetSpecArgsDict,
        after: Sequence[Resource],
        *,
        labels: Mapping[str, str],
        awaited: bool,
    ) -> DaemonSet:
        """Make the workload. `awaited` must be False for OnDelete, which never rolls out by itself.

        The provider would wait for a changed template until its time-out (D4).
        """
        meta: ObjectMetaArgsDict = {
            **_meta(name, namespace),
            "labels": dict(labels),
            "annotations": {} if awaited else SKIP_AWAIT,
        }
        return DaemonSet(name, metadata=meta, spec=spec, opts=self._child(after))

    def _child(self, after: Sequence[Resource]) -> ResourceOptions:
        return ResourceOptions(parent=self, depends_on=list(after))


def _meta(name: str, namespace: str | None = None) -> ObjectMetaArgsDict:
    if namespace is None:
        return {"name": name}
    return {"name": name, "namespace": namespace}


def _role_ref(name: str) -> RoleRefArgsDict:
    return {"api_group": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}


def _subject(name: str, namespace: str) -> SubjectArgsDict:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
