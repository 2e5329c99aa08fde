"""The agent's picture of the cluster, kept up to date by messages. No I/O, no clock.

One thread owns it; watches only send messages. A message that changes nothing that the agent looks
at (a node's heartbeat) says so, and costs no further work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agents.node_state import facts
from rbln_stack import contract

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Manifest = dict[str, Any]

DRIVERS: Final = "drivers"
POLICIES: Final = "policies"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A collection to watch, and what is kept of its objects."""

    name: str
    path: str
    selector: str
    record: Callable[[Manifest], Any]


@dataclass(frozen=True, slots=True)
class Listed:
    """All objects of a source."""

    source: str
    manifests: tuple[Manifest, ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """One object of a source is new, different or gone."""

    source: str
    manifest: Manifest
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """A source cannot be read for now; `final` if the API said no rather than nothing."""

    source: str
    reason: str
    final: bool


@dataclass(frozen=True, slots=True)
class Stop:
    """The agent was told to end."""


Message = Listed | Changed | Failed | Stop


def sources(vendor: facts.Vendor, namespace: str) -> tuple[Source, ...]:
    """Everything the agent looks at; most nodes of a fleet are left out by the server."""
    by_label = [
        Source(
            name=f"nodes {label}",
            path="/api/v1/nodes",
            selector=f"{label}=true",
            record=facts.node,
        )
        for label in vendor.present_labels
    ]
    apps = f"/apis/apps/v1/namespaces/{namespace}"
    return (
        *by_label,
        Source(
            name="daemonsets",
            path=f"{apps}/daemonsets",
            selector=f"{contract.PART_OF_LABEL}={contract.STACK}",
            record=lambda manifest: facts.daemon_set(manifest, vendor),
        ),
        Source(
            name="controllerrevisions",
            path=f"{apps}/controllerrevisions",
            selector="",
            record=facts.revision,
        ),
        Source(
            name="pods",
            path=f"/api/v1/namespaces/{namespace}/pods",
            selector="",
            record=facts.pod,
        ),
        Source(
            name=DRIVERS,
            path=f"/apis/{vendor.group}/v1alpha1/rblndrivers",
            selector="",
            record=facts.declaration,
        ),
        Source(
            name=POLICIES,
            path=f"/apis/{vendor.group}/v1beta1/rblnclusterpolicies",
            selector="",
            record=facts.declaration,
        ),
    )


class View:
    """Records of all sources by object name."""

    def __init__(self, vendor: facts.Vendor, watched: Iterable[Source]) -> None:
        self._vendor = vendor
        self._sources = {source.name: source for source in watched}
        self._records: dict[str, dict[str, Any]] = {}
        self._failing: dict[str, str] = {}

    @property
    def sources(self) -> tuple[Source, ...]:
        """What is watched."""
        return tuple(self._sources.values())

    @property
    def complete(self) -> bool:
        """Whether every source was read at least once: before that nothing may be concluded."""
        return self._records.keys() == self._sources.keys()

    def apply(self, message: Listed | Changed) -> bool:
        """Take the message in; whether that changed anything the agent looks at."""
        self._failing.pop(message.source, None)
        source = self._sources[message.source]
        before = self._records.get(message.source)
        if isinstance(message, Listed):
            listed = {_name(found): source.record(found) for found in message.manifests}
            after = {name: record for name, record in listed.items() if record is not None}
        else:
            after = dict(before or {})
            name = _name(message.manifest)
            record = None if message.gone else source.record(message.manifest)
            if record is None:
                after.pop(name, None)
            else:
                after[name] = record
        self._records[message.source] = after
        return before != after

    def fails(self, message: Failed) -> bool:
        """Remember the failure; whether it is news."""
        news = self._failing.get(message.source) != message.reason
        self._failing[message.source] = message.reason
        return news

    def failing(self, source: str) -> bool:
        """Whether the last attempt to read the source failed."""
        return source in self._failing

    def facts(self) -> facts.Facts:
        """What is known now."""
        found: Mapping[str, dict[str, Any]] = self._records
        nodes: dict[str, facts.Node] = {}
        for name, records in found.items():
            if name.startswith("nodes "):
                nodes |= records
        return facts.Facts(
            vendor=self._vendor,
            nodes=tuple(nodes.values()),
            daemon_sets=tuple(found["daemonsets"].values()),
            pods=tuple(found["pods"].values()),
            revisions=tuple(found["controllerrevisions"].values()),
            drivers=tuple(found[DRIVERS].values()),
            policies=tuple(found[POLICIES].values()),
        )


def _name(manifest: Manifest) -> str:
    return str(manifest["metadata"]["name"])
