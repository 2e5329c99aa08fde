"""In which fields a pod template of the plan differs from the one in the cluster. Pure.

The plan writes Python key names and leaves defaults to the API server; the cluster shows camelCase
with every default filled in. Only what the plan decides is compared, also when it decides to leave
a field out.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Fields that the API server leaves empty unless they are set: here, nothing is a decision too.
_POD_FIELDS: Final = (
    "affinity",
    "hostNetwork",
    "hostPID",
    "imagePullSecrets",
    "initContainers",
    "nodeSelector",
    "priorityClassName",
    "runtimeClassName",
    "serviceAccountName",
    "tolerations",
    "volumes",
)
_CONTAINER_FIELDS: Final = (
    "args",
    "command",
    "env",
    "envFrom",
    "image",
    "lifecycle",
    "livenessProbe",
    "readinessProbe",
    "resources",
    "securityContext",
    "startupProbe",
    "volumeMounts",
)
# Maps whose keys are the user's: no renaming, and a key too many is a difference.
_USER_MAPS: Final = frozenset({"labels", "limits", "matchlabels", "nodeselector", "requests"})
_QUANTITIES: Final = frozenset({"limits", "requests"})
_QUANTITY: Final = re.compile(r"([0-9.]+)([A-Za-z]*)(.*)")
_UNITS: Final = {
    **{unit: Decimal(1000) ** power for power, unit in enumerate(("", "k", "M", "G", "T", "P"))},
    **{unit: Decimal(1024) ** power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti"), 1)},
    "m": Decimal("0.001"),
}


def template_changes(planned: Mapping[str, Any], live: Mapping[str, Any]) -> tuple[str, ...]:
    """One short text per field of the pod template that would change."""
    meta, spec = _folded(planned.get("metadata") or {}), _folded(planned.get("spec") or {})
    live_meta, live_spec = _folded(live.get("metadata") or {}), _folded(live.get("spec") or {})
    changed = [
        key
        for key in ("labels", "annotations")
        if not _holds(meta.get(key), live_meta.get(key), key)
    ]
    decided = {_fold(field): field for field in _POD_FIELDS}
    decided |= {_fold(key): key for key in planned.get("spec") or {} if _fold(key) not in decided}
    for key, name in sorted(decided.items(), key=lambda item: item[1]):
        if key in {"containers", "initcontainers"}:
            wanted, there = spec.get(key) or [], live_spec.get(key) or []
            changed += _container_changes(wanted, there, initial=key == "initcontainers")
        elif not _holds(spec.get(key), live_spec.get(key), key):
            changed.append(name)
    return tuple(changed)


def _container_changes(planned: list[Any], live: list[Any], *, initial: bool) -> Iterator[str]:
    if [container.get("name") for container in planned] != [c.get("name") for c in live]:
        yield "initContainers" if initial else "containers"
        return
    for wanted, present in zip(planned, live, strict=True):
        old, new = _folded(present), _folded(wanted)
        place = f"{wanted.get('name')} " if initial or len(planned) > 1 else ""
        decided = {_fold(field): field for field in _CONTAINER_FIELDS}
        decided |= {_fold(key): key for key in wanted if _fold(key) not in decided}
        for key, name in sorted(decided.items(), key=lambda item: item[1]):
            if _holds(new.get(key), old.get(key), key):
                continue
            detail = f" {old.get(key)} → {new.get(key)}" if key == "image" else ""
            yield f"{place}{name}{detail}"


def _holds(planned: object, live: object, key: str = "") -> bool:
    """Whether the cluster has what the plan wants; the API server may have added defaults."""
    if _is_empty(planned):
        # An empty annotation map of the plan says nothing about what others have noted.
        return key == "annotations" or _is_empty(live)
    if isinstance(planned, dict):
        return isinstance(live, dict) and _map_holds(planned, live, key)
    if isinstance(planned, list | tuple):
        return (
            isinstance(live, list)
            and len(planned) == len(live)
            and all(_holds(wanted, there) for wanted, there in zip(planned, live, strict=True))
        )
    return planned == live


def _map_holds(planned: Mapping[str, Any], live: Mapping[str, Any], key: str) -> bool:
    if key == "annotations":
        return all(live.get(name) == value for name, value in planned.items())
    if key in _QUANTITIES:
        return _amounts(planned) == _amounts(live)
    if key in _USER_MAPS:
        return dict(planned) == dict(live)
    wanted, there = _folded(planned), _folded(live)
    return all(_holds(value, there.get(name), name) for name, value in wanted.items())


def _amounts(amounts: Mapping[str, Any]) -> dict[str, object]:
    """Amounts as numbers: the API server writes 1000m as 1."""
    return {name: _amount(str(value)) for name, value in amounts.items()}


def _amount(text: str) -> object:
    match = _QUANTITY.fullmatch(text)
    if match is None or match[3] or match[2] not in _UNITS or match[1].count(".") > 1:
        return text
    return Decimal(match[1]) * _UNITS[match[2]]


def _is_empty(value: object) -> bool:
    """Whether the API server would drop the value; a map of empty maps is empty too."""
    if isinstance(value, dict):
        return all(_is_empty(part) for part in value.values())
    return value is None or value is False or (isinstance(value, str | list | tuple) and not value)


def _folded(section: Mapping[str, Any]) -> dict[str, Any]:
    return {_fold(key): value for key, value in section.items()}


def _fold(key: str) -> str:
    """One spelling of `host_pid` and `hostPID`, of `exec_` and `exec`."""
    return key.replace("_", "").lower()
