"""A chart's values → stack config, with everything that could not be taken and why.

Pure; called by `rbln-stack import-values`. Most keys have the same name in both. Values that are
taken are checked as any stack config, so that what comes out loads.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from rbln_stack.config.load import load, place
from rbln_stack.config.root import RootConfig
from rbln_stack.profiles import PROFILES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Tree = dict[str, Any]
Path = tuple[str | int, ...]

_OPERATOR: Final = "this stack has no operator in the cluster; its work is done by each run"
_UNKNOWN: Final = "this stack has no such setting"

# What a chart can say and this stack has no counterpart for.
REASONS: Final[Mapping[Path, str]] = MappingProxyType(
    {
        ("operator",): _OPERATOR,
        ("service",): _OPERATOR,
        ("fullnameOverride",): "objects are named after name; releaseName is for labels",
        ("crds",): "each run brings the custom resource definitions up to date",
        ("rds",): "device storage is not part of this stack",
        ("node-feature-discovery",): "settings of the sub-chart; install NFD by its own chart",
        ("driver", "smd"): "the daemon has a section of its own: rblnDaemon",
        ("driver", "useRBLNDriverCRD"): "every driver is declared by an object of its own",
        ("vfioManager", "driverManager"): _UNKNOWN,
    }
)


@dataclass(frozen=True, slots=True, order=True)
class LeftOut:
    """A key of the chart that stack config does not hold."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """Stack config out of a chart's values."""

    config: Tree
    left_out: tuple[LeftOut, ...]

    def stack_file(self, project: str) -> Tree:
        """The content of a `Pulumi.<stack>.yaml`."""
        return {"config": {f"{project}:{key}": value for key, value in self.config.items()}}


def imported(values: Mapping[str, Any], profile: str = "rbln") -> Imported:
    """Take over what there is a place for; raise `ConfigError` where a value itself is wrong."""
    tree = copy.deepcopy(dict(values))
    left = [*_removed_by_reason(tree), *_renamed(tree, profile)]
    tree = _without_empty(tree)
    left += _removed_unknown(tree)
    tree = _without_empty(tree)
    load(tree)
    return Imported(config=tree, left_out=tuple(sorted(left)))


def _removed_by_reason(tree: Tree) -> Iterator[LeftOut]:
    for path, reason in REASONS.items():
        if _pop(tree, path) is not None:
            yield LeftOut(_shown(path), reason)


def _renamed(tree: Tree, profile: str) -> Iterator[LeftOut]:
    """Keys that later charts call otherwise."""
    for old, new in (("podDefaults", "daemonsets"), ("nameOverride", "releaseName")):
        value = tree.pop(old, None)
        if value and tree.get(new):
            yield LeftOut(old, f"{new} is set as well, and says the same")
        elif value:
            tree[new] = value
    driver = tree.get("driver")
    if not isinstance(driver, dict):
        return
    _flatten_manager(driver)
    instances = driver.pop("instances", None) or {}
    name = PROFILES[profile].driver_name
    for key, section in instances.items() if isinstance(instances, dict) else ():
        _flatten_manager(section)
        tree.setdefault("drivers", {})[f"{name}-{key}"] = {
            **section,
            "enabled": driver.get("enabled", True),
        }
    if driver.pop("deployDefault", True) is False:
        driver["enabled"] = False


def _flatten_manager(driver: object) -> None:
    manager = driver.get("manager") if isinstance(driver, dict) else None
    image = manager.get("image") if isinstance(manager, dict) else None
    if not isinstance(manager, dict) or not isinstance(image, dict):
        return
    del manager["image"]
    names = {"repository": "image", "tag": "version", "pullPolicy": "imagePullPolicy"}
    manager |= {names.get(key, key): value for key, value in image.items()}


def _removed_unknown(tree: Tree) -> Iterator[LeftOut]:
    try:
        RootConfig.model_validate(tree)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            path = place(detail)
            if detail["type"] == "extra_forbidden":
                _pop(tree, path)
                yield LeftOut(_shown(path), _UNKNOWN)


def _pop(tree: Tree, path: Path) -> object:
    """Take a value out of the tree; None if there is none."""
    place: Any = tree
    for part in path[:-1]:
        if isinstance(place, dict):
            place = place.get(part)
        else:
            place = place[part] if isinstance(place, list) and isinstance(part, int) else None
    return place.pop(path[-1], None) if isinstance(place, dict) else None


def _without_empty(tree: Tree, *, top: bool = True) -> Tree:
    """Without empty values: in a chart and in a stack alike they stand for the default."""
    kept: Tree = {}
    for key, value in tree.items():
        # A further driver may empty a list of the first one.
        exact = top and key == "drivers"
        new = _without_empty(value, top=False) if isinstance(value, dict) and not exact else value
        if new not in (None, "", [], {}):
            kept[key] = new
    return kept


def _shown(path: Path) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
