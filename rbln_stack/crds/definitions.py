"""The definitions of the custom resources as data, and how a model becomes a structural schema.

Read by `generate`. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rbln_stack import contract
from rbln_stack.crds import models

if TYPE_CHECKING:
    from pydantic import BaseModel

GROUP: Final = "rebellions.ai"

Schema = dict[str, Any]

# Keys that pydantic adds and a structural schema must not have.
_DROPPED: Final = frozenset({"title", "additionalProperties", "$defs"})
_FIRST_KEYS: Final[tuple[str, ...]] = ("type", "format", "description", "default")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column that `kubectl get` prints."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One custom resource."""

    kind: str
    plural: str
    version: str
    short_names: tuple[str, ...]
    description: str
    spec: type[BaseModel]
    status: type[BaseModel]
    columns: tuple[Column, ...]

    @property
    def name(self) -> str:
        """The name of the definition object."""
        return f"{self.plural}.{GROUP}"

    @property
    def file_name(self) -> str:
        """The committed file."""
        return f"{self.plural}.yaml"


_AGE: Final = Column(name="Age", path=".metadata.creationTimestamp", type="date")
_STATE: Final = Column(name="State", path=".status.phase")
_NODES: Final = Column(name="Nodes", path=".status.nodes")
_UNREADY: Final = Column(name="Unready", path=".status.firstUnready", wide=True)

DEFINITIONS: Final = (
    Definition(
        kind="RBLNClusterPolicy",
        plural="rblnclusterpolicies",
        version="v1beta1",
        short_names=("rcp", "rblncp"),
        description="The stack of one cluster: what was declared, and whether it is ready.",
        spec=models.ClusterPolicySpec,
        status=models.ClusterPolicyStatus,
        columns=(_STATE, _NODES, _UNREADY, _AGE),
    ),
    Definition(
        kind="RBLNDriver",
        plural="rblndrivers",
        version="v1alpha1",
        short_names=(),
        description="One driver declaration; owner of the driver DaemonSets of its pools.",
        spec=models.DriverSpec,
        status=models.DeclarationStatus,
        columns=(_STATE, _NODES, _AGE),
    ),
    Definition(
        kind="GPUNodeState",
        plural="gpunodestates",
        version="v1alpha1",
        short_names=("gns",),
        description="The state of one accelerator node; named after it.",
        spec=models.NodeStateSpec,
        status=models.NodeStateStatus,
        columns=(
            Column(name="Phase", path=".status.phase"),
            Column(name="Ready", path=".status.ready", type="boolean"),
            Column(name="Reason", path=".status.reason"),
            _AGE,
        ),
    ),
)


def manifest(definition: Definition) -> Schema:
    """The CustomResourceDefinition object."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": definition.name,
            "labels": {contract.MANAGED_BY_LABEL: contract.STACK},
        },
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {
                "kind": definition.kind,
                "listKind": f"{definition.kind}List",
                "plural": definition.plural,
                "singular": definition.kind.lower(),
                **({"shortNames": list(definition.short_names)} if definition.short_names else {}),
            },
            "versions": [_version(definition)],
        },
    }


def structural(model: type[BaseModel]) -> Schema:
    """The model's schema in the form the API server takes: no references, no unions, no titles."""
    raw = model.model_json_schema(by_alias=True)
    return _structural(raw, raw.get("$defs", {}))


def _version(definition: Definition) -> Schema:
    return {
        "name": definition.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(column) for column in definition.columns],
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "description": definition.description,
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"type": "object"},
                    "spec": structural(definition.spec),
                    "status": structural(definition.status),
                },
            }
        },
    }


def _column(column: Column) -> Schema:
    shown = {"name": column.name, "type": column.type, "jsonPath": column.path}
    # Columns of a priority above 0 appear with `-o wide` alone.
    return {**shown, "priority": 1} if column.wide else shown


def _structural(node: Schema, known: Schema) -> Schema:
    node = _without_choice(_without_reference(node, known), known)
    result = {key: value for key, value in node.items() if key not in _DROPPED}
    if not result.get("default", True):
        del result["default"]
    if "const" in result:
        result["enum"] = [result.pop("const")]
    if "properties" in node:
        result["properties"] = {
            name: _structural(field, known) for name, field in node["properties"].items()
        }
    if "items" in node:
        result["items"] = _structural(node["items"], known)
    values = node.get("additionalProperties")
    if isinstance(values, dict):
        result["additionalProperties"] = _structural(values, known)
    first: Schema = {key: result.pop(key) for key in _FIRST_KEYS if key in result}
    return {**first, **result}


def _without_reference(node: Schema, known: Schema) -> Schema:
    """Put the referenced schema in place; what stands beside the reference wins."""
    target = node.get("$ref")
    if target is None:
        return node
    beside = {key: value for key, value in node.items() if key != "$ref"}
    return {**known[target.rpartition("/")[2]], **beside}


def _without_choice(node: Schema, known: Schema) -> Schema:
    """Resolve `X | None`, which the API server takes as X, and texts of several forms."""
    if "anyOf" not in node:
        return node
    options = [_without_reference(option, known) for option in node["anyOf"]]
    options = [option for option in options if option.get("type") != "null"]
    beside = {key: value for key, value in node.items() if key != "anyOf"}
    if len(options) == 1:
        return {**_without_choice(options[0], known), **beside}
    types = {option["type"] for option in options}
    if len(types) != 1:
        msg = f"a structural schema cannot choose between {sorted(types)}"
        raise ValueError(msg)
    # A choice may not repeat the type: the field has it once, outside.
    values = [{key: option[key] for key in option if key != "type"} for option in options]
    return {"type": types.pop(), **beside, "anyOf": values}
