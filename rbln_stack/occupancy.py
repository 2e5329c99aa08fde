"""Whether somebody else runs the stack of this cluster already: the vendor's operator, or Helm.

Called by the program before it plans. Two writers of one set of DaemonSets undo each other's work
without end, and whoever owns the definitions takes every declaration along when they go (D5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rbln_stack import contract, kube
from rbln_stack.crds import definitions
from rbln_stack.errors import DiscoveryError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MIGRATION: Final = "docs/migration.md"
OPERATOR_REPOSITORY: Final = "rebellions/rbln-npu-operator"
OPERATOR_CHART: Final = "rbln-npu-operator"
# Labels by which a chart names itself.
_CHART_LABELS: Final = ("app.kubernetes.io/name", "helm.sh/chart")
_RELEASE_NAME: Final = "meta.helm.sh/release-name"
_RELEASE_NAMESPACE: Final = "meta.helm.sh/release-namespace"
# Field managers that write to definitions of any owner, or on this stack's behalf.
_NEUTRAL_MANAGERS: Final = ("kube-apiserver", "pulumi")

_DEPLOYMENTS: Final = "apis/apps/v1/deployments"
_CRDS: Final = "apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorFacts:
    """A Deployment that looks like the vendor's operator, and what gave it away."""

    namespace: str
    name: str
    sign: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionFacts:
    """A definition of the stack's group that exists already."""

    name: str
    managed_by: str
    release: str
    managers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OccupancyFacts:
    """What was found; `unread` holds why a collection could not be looked at."""

    operators: tuple[OperatorFacts, ...] = ()
    definitions: tuple[DefinitionFacts, ...] = ()
    unread: tuple[Problem, ...] = ()


def observe(cluster: kube.Cluster) -> OccupancyFacts:
    """Look at all Deployments and at the definitions; what may not be read is reported, not fatal.

    Any other failure than a missing right is raised: then the cluster cannot be worked with.
    """
    unread: list[Problem] = []
    deployments = _listed(cluster, _DEPLOYMENTS, unread)
    found = _listed(cluster, _CRDS, unread, accept=kube.METADATA_ONLY)
    own = {definition.name for definition in definitions.DEFINITIONS}
    return OccupancyFacts(
        operators=tuple(sorted(_operators(deployments), key=lambda o: (o.namespace, o.name))),
        definitions=tuple(
            definition_facts(manifest)
            for manifest in sorted(found, key=lambda manifest: str(manifest["metadata"]["name"]))
            if manifest["metadata"]["name"] in own
        ),
        unread=tuple(unread),
    )


def judge(facts: OccupancyFacts) -> tuple[Problem, ...]:
    """Why this stack must not be deployed here; warnings where nobody could look."""
    problems = [
        Problem(
            f"deployment {operator.namespace}/{operator.name}",
            f"the vendor's operator runs in this cluster ({operator.sign}) and would write the "
            "same DaemonSets as this stack",
            f"Follow {MIGRATION}, which keeps drivers and devices in service, or remove the "
            "operator",
            code="operator-present",
        )
        for operator in facts.operators
    ]
    problems += [
        Problem(
            f"custom resource definition {definition.name}",
            f"it exists already and belongs to {owner}",
            f"Follow {MIGRATION}: it says how the definition is handed over without losing objects",
            code="definition-owned",
        )
        for definition in facts.definitions
        if (owner := foreign_owner(definition))
    ]
    problems += [
        Problem(
            problem.subject,
            f"nobody could check whether the vendor's operator runs here: {problem.what}",
            f"{problem.remedy}, or make sure by other means that it does not",
            severity="warning",
            code="occupancy-unknown",
        )
        for problem in facts.unread
    ]
    return tuple(problems)


def foreign_owner(definition: DefinitionFacts) -> str:
    """Who else owns the definition; empty when it is this stack's own."""
    if definition.release:
        return f"Helm release {definition.release}"
    if definition.managed_by == contract.STACK:
        return ""
    strangers = [name for name in definition.managers if not name.startswith(_NEUTRAL_MANAGERS)]
    if definition.managed_by:
        return definition.managed_by
    return f"field manager {', '.join(strangers)}" if strangers else "nobody this stack knows"


def operator_facts(manifest: Mapping[str, Any]) -> OperatorFacts | None:
    """The Deployment if it is the vendor's operator, by its image or by its chart's label."""
    metadata = manifest.get("metadata") or {}
    sign = _image_sign(manifest) or _chart_sign(metadata.get("labels") or {})
    if not sign:
        return None
    return OperatorFacts(
        namespace=metadata.get("namespace", ""), name=metadata.get("name", ""), sign=sign
    )


def definition_facts(manifest: Mapping[str, Any]) -> DefinitionFacts:
    """Who a definition says it belongs to."""
    metadata = manifest["metadata"]
    annotations = metadata.get("annotations") or {}
    release = annotations.get(_RELEASE_NAME, "")
    namespace = annotations.get(_RELEASE_NAMESPACE, "")
    entries = metadata.get("managedFields") or ()
    return DefinitionFacts(
        name=metadata["name"],
        managed_by=(metadata.get("labels") or {}).get(contract.MANAGED_BY_LABEL, ""),
        release=f"{namespace}/{release}" if release and namespace else release,
        managers=tuple(sorted({entry["manager"] for entry in entries if entry.get("manager")})),
    )


def _operators(deployments: Iterable[Mapping[str, Any]]) -> Iterable[OperatorFacts]:
    return (found for manifest in deployments if (found := operator_facts(manifest)))


def _image_sign(manifest: Mapping[str, Any]) -> str:
    pod = ((manifest.get("spec") or {}).get("template") or {}).get("spec") or {}
    for container in pod.get("containers") or ():
        image = container.get("image", "")
        if f"/{repository(image)}".endswith(f"/{OPERATOR_REPOSITORY}"):
            return f"image {image}"
    return ""


def _chart_sign(labels: Mapping[str, str]) -> str:
    for key in _CHART_LABELS:
        value = labels.get(key, "")
        # `helm.sh/chart` has the version behind the name.
        if value == OPERATOR_CHART or (
            key == "helm.sh/chart" and value.startswith(f"{OPERATOR_CHART}-")
        ):
            return f"label {key}={value}"
    return ""


def repository(image: str) -> str:
    """An image reference without tag and digest; a registry's port is no tag."""
    name = image.partition("@")[0]
    head, _, last = name.rpartition("/")
    last = last.partition(":")[0]
    return f"{head}/{last}" if head else last


def _listed(
    cluster: kube.Cluster, path: str, unread: list[Problem], accept: str = "application/json"
) -> list[kube.Manifest]:
    try:
        return list(cluster.list(path, accept=accept))
    except DiscoveryError as error:
        if any(problem.code != "forbidden" for problem in error.problems):
            raise
        unread += error.problems
        return []
