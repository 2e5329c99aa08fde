"""The base of all operand components, and the only constructor call per Kubernetes kind.

Components pass plain names and typed dicts; nothing here looks at config or at nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pulumi
from pulumi import Alias, CustomTimeouts, ResourceOptions
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.apps.v1 import DaemonSet, Deployment
from pulumi_kubernetes.core.v1 import ConfigMap, Namespace, Service, ServiceAccount
from pulumi_kubernetes.rbac.v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding

from rbln_stack import contract, rbac

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Resource
    from pulumi_kubernetes.apps.v1 import DaemonSetSpecArgsDict, DeploymentSpecArgsDict
    from pulumi_kubernetes.core.v1 import ServiceSpecArgsDict
    from pulumi_kubernetes.meta.v1 import ObjectMetaArgsDict, OwnerReferenceArgsDict
    from pulumi_kubernetes.rbac.v1 import RoleRefArgsDict, SubjectArgsDict

    from rbln_stack.operands import OperandPlan

SKIP_AWAIT = {contract.SKIP_AWAIT_ANNOTATION: "true"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What the objects of one operand have in common."""

    namespace: str
    labels: Mapping[str, str]


class Operand(pulumi.ComponentResource):
    """A component whose children are parented to it and inherit its provider."""

    def __init__(self, kind: str, name: str, place: Place, opts: ResourceOptions | None) -> None:
        super().__init__(f"rbln:operand:{kind}", name, None, opts)
        self._place = place

    def namespace(self, name: str) -> Namespace:
        """Make a namespace."""
        return Namespace(name, metadata=self._meta(name, namespaced=False), opts=self._child(()))

    def bundle(self, plan: OperandPlan, after: Sequence[Resource]) -> list[Resource]:
        """Make the account and its rights, one after the other (S1-54, X-19).

        What comes back is all of it, in the order it was made.
        """
        rights = rbac.RIGHTS[plan.operand]
        name, made = plan.name, list[pulumi.Resource]()
        account = ServiceAccount(name, metadata=self._meta(name), opts=self._child(after))
        made.append(account)
        role = cluster_role = None
        if rights.namespaced:
            role = Role(
                name,
                metadata=self._meta(name),
                rules=rbac.rules(rights.namespaced),
                opts=self._child([*after, *made]),
            )
            made.append(role)
        if rights.cluster:
            cluster_role = ClusterRole(
                name,
                metadata=self._meta(name, namespaced=False),
                rules=rbac.rules(rights.cluster),
                opts=self._child(made),
            )
            made.append(cluster_role)
        if role is not None:
            made.append(
                RoleBinding(
                    name,
                    metadata=self._meta(name),
                    role_ref=_role_ref("Role", name),
                    subjects=[_subject(name, plan.namespace)],
                    opts=self._child(made),
                )
            )
        if cluster_role is not None:
            made.append(
                ClusterRoleBinding(
                    name,
                    metadata=self._meta(name, namespaced=False),
                    role_ref=_role_ref("ClusterRole", name),
                    subjects=[_subject(name, plan.namespace)],
                    opts=self._child(made),
                )
            )
        return made

    def config_map(
        self, name: str, data: Mapping[str, str], after: Sequence[Resource]
    ) -> ConfigMap:
        """Make a ConfigMap."""
        return ConfigMap(name, metadata=self._meta(name), data=data, opts=self._child(after))

    def service(
        self,
        name: str,
        spec: ServiceSpecArgsDict,
        after: Sequence[Resource],
        *,
        labels: Mapping[str, str],
        annotations: Mapping[str, str],
    ) -> Service:
        """Make a Service. Not awaited: its endpoints follow the pods, which are."""
        meta = self._meta(name, labels=labels, annotations={**annotations, **SKIP_AWAIT})
        return Service(name, metadata=meta, spec=spec, opts=self._child(after))

    def daemon_set(
        self,
        name: str,
        spec: DaemonSetSpecArgsDict,
        after: Sequence[Resource],
        *,
        awaited: bool,
        labels: Mapping[str, str] | None = None,
        owner: OwnerReferenceArgsDict | None = None,
        former: Sequence[str] = (),
    ) -> DaemonSet:
        """Make the workload.

        `awaited` must be False for OnDelete, which never rolls out by itself: the provider would
        wait for a changed template until its time-out (D4). A DaemonSet that takes the place of
        one with a `former` name is made only when that one is gone (S0-13).
        """
        meta = self._meta(name, labels=labels or {}, annotations={} if awaited else SKIP_AWAIT)
        if owner is not None:
            meta = {**meta, "owner_references": [owner]}
        opts = self._child(after)
        if former:
            opts.aliases = [Alias(name=old) for old in former]
            opts.delete_before_replace = True
        return DaemonSet(name, metadata=meta, spec=spec, opts=opts)

    def deployment(
        self, name: str, spec: DeploymentSpecArgsDict, after: Sequence[Resource]
    ) -> Deployment:
        """Make a controller."""
        return Deployment(name, metadata=self._meta(name), spec=spec, opts=self._child(after))

    def cluster_object(
        self,
        name: str,
        api_version: str,
        kind: str,
        spec: Any,  # noqa: ANN401 - any JSON value, checked by the API server's schema
        after: Sequence[Resource],
        *,
        annotations: Mapping[str, str] | None = None,
        timeout_s: int | None = None,
    ) -> CustomResource:
        """Make a cluster-scoped object of a kind the SDK has no class for."""
        opts = self._child(after)
        if timeout_s is not None:
            limit = f"{timeout_s}s"
            opts.custom_timeouts = CustomTimeouts(create=limit, update=limit)
        meta = self._meta(name, namespaced=False, annotations=annotations or {})
        return CustomResource(
            name, api_version=api_version, kind=kind, metadata=meta, spec=spec, opts=opts
        )

    def _child(self, after: Sequence[Resource]) -> ResourceOptions:
        return ResourceOptions(parent=self, depends_on=list(after))

    def _meta(
        self,
        name: str,
        *,
        namespaced: bool = True,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> ObjectMetaArgsDict:
        meta: dict[str, Any] = {"name": name, "labels": {**self._place.labels, **(labels or {})}}
        if namespaced:
            meta["namespace"] = self._place.namespace
        if annotations:
            meta["annotations"] = dict(annotations)
        return cast("ObjectMetaArgsDict", meta)


def place_of(plan: OperandPlan) -> Place:
    """Where the objects of an operand are, and their labels."""
    return Place(namespace=plan.namespace, labels=plan.object_labels)


def _role_ref(kind: str, name: str) -> RoleRefArgsDict:
    return {"api_group": "rbac.authorization.k8s.io", "kind": kind, "name": name}


def _subject(name: str, namespace: str) -> SubjectArgsDict:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
