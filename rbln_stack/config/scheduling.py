"""Tolerations and affinities in the words of Kubernetes, checked as far as the API server would."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rbln_stack.config.base import LabelKey, Labels, NamespaceName, Section

Weight = Annotated[int, Field(ge=1, le=100)]


class Toleration(Section):
    """A taint that a pod accepts."""

    key: LabelKey | None = None
    """Taint key; left out, every key is accepted."""
    operator: Literal["Exists", "Equal"] | None = None
    """How key and value are compared."""
    value: str | None = None
    """Taint value, for the operator Equal."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Taint effect; left out, every effect is accepted."""
    toleration_seconds: int | None = None
    """How long a NoExecute taint is accepted."""

    @model_validator(mode="after")
    def _accepts_something(self) -> Self:
        if not self.key and self.operator != "Exists":
            msg = "a toleration without key must have operator Exists, or it accepts nothing"
            raise ValueError(msg)
        if self.operator == "Exists" and self.value:
            msg = "operator Exists takes no value; remove value, or set operator Equal"
            raise ValueError(msg)
        if self.toleration_seconds is not None and self.effect not in {None, "NoExecute"}:
            msg = f"tolerationSeconds needs effect NoExecute; {self.effect} never ends a pod"
            raise ValueError(msg)
        return self


class Requirement(Section):
    """A condition on one label."""

    key: LabelKey
    """Label key."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    """How the label is compared with the values."""
    values: tuple[str, ...] | None = None
    """Values for In, NotIn, Gt and Lt; numbers must be quoted."""

    @model_validator(mode="after")
    def _values_fit(self) -> Self:
        count = len(self.values or ())
        wanted = {"In": "at least one", "NotIn": "at least one", "Gt": "one", "Lt": "one"}
        fits = {"at least one": count > 0, "one": count == 1, "no": count == 0}
        need = wanted.get(self.operator, "no")
        if not fits[need]:
            msg = f"operator {self.operator} takes {need} value, and {count} are given"
            raise ValueError(msg)
        return self


class NodeSelectorTerm(Section):
    """Conditions that a node must meet together."""

    match_expressions: tuple[Requirement, ...] | None = None
    """Conditions on the node's labels."""
    match_fields: tuple[Requirement, ...] | None = None
    """Conditions on the node's fields, of which only metadata.name is known."""

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not self.match_expressions and not self.match_fields:
            msg = "a term without matchExpressions and matchFields matches no node"
            raise ValueError(msg)
        return self


class NodeSelectorTerms(Section):
    """Terms of which a node must meet one."""

    node_selector_terms: Annotated[tuple[NodeSelectorTerm, ...], Field(min_length=1)]
    """The terms."""


class PreferredNodes(Section):
    """Nodes that are preferred over others."""

    weight: Weight
    """How much, from 1 to 100."""
    preference: NodeSelectorTerm
    """Which."""


class NodeAffinity(Section):
    """Which nodes a pod may or should run on."""

    required_during_scheduling_ignored_during_execution: NodeSelectorTerms | None = None
    """Nodes the pod may run on, besides all other conditions of the stack."""
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredNodes, ...] | None = None
    """Nodes the pod should run on."""


class LabelSelector(Section):
    """A choice of objects by label."""

    match_labels: Labels | None = None
    """Labels with their values."""
    match_expressions: tuple[Requirement, ...] | None = None
    """Conditions on labels."""


class PodTerm(Section):
    """Pods, and how near to them."""

    topology_key: LabelKey
    """Label whose value nodes of one place share."""
    label_selector: LabelSelector | None = None
    """Which pods."""
    namespaces: tuple[NamespaceName, ...] | None = None
    """Namespaces of those pods."""
    namespace_selector: LabelSelector | None = None
    """Namespaces of those pods, by label."""


class WeightedPodTerm(Section):
    """A preference for or against the nearness of pods."""

    weight: Weight
    """How much, from 1 to 100."""
    pod_affinity_term: PodTerm
    """Which pods."""


class PodAffinity(Section):
    """Which pods a pod must or should be near to, or away from."""

    required_during_scheduling_ignored_during_execution: tuple[PodTerm, ...] | None = None
    """What must hold."""
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodTerm, ...] | None = None
    """What should hold."""


class Affinity(Section):
    """Where a pod may or should run."""

    node_affinity: NodeAffinity | None = None
    """By nodes; required terms are joined with the stack's own."""
    pod_affinity: PodAffinity | None = None
    """Near to which pods."""
    pod_anti_affinity: PodAffinity | None = None
    """Away from which pods."""
