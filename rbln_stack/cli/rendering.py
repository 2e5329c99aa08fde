"""Runs the program under a monitor that records resources instead of making them.

Used by `rbln-stack render` and by the tests of the components. No engine runs and no cluster is
changed; the program itself may still read nodes.
"""

from __future__ import annotations

import runpy
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi.runtime import mocks
from pulumi.runtime.rpc import deserialize_properties, is_rpc_secret, unwrap_rpc_secret
from pulumi.runtime.stack import Stack

from rbln_stack import render

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

_KUBERNETES = "kubernetes:"


@dataclass
class Registered:
    """One resource: its inputs as the engine gets them, and its edges by URN."""

    urn: str
    type: str
    name: str
    inputs: dict[str, Any]
    parent: str
    provider: str
    after: set[str] = field(default_factory=set)

    def recorded(self) -> render.Recorded:
        """The resource as rendering orders it; components and providers are no objects."""
        is_object = self.type.startswith(_KUBERNETES) and "apiVersion" in self.inputs
        return render.Recorded(
            urn=self.urn,
            manifest=_without_secrets(self.inputs) if is_object else None,
            after=frozenset(self.after),
        )


class Echo(mocks.Mocks):
    """Every resource comes out as it went in; an object gets an identity, as in a cluster."""

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        """Answer with the inputs."""
        state = args.inputs
        if args.typ.startswith(_KUBERNETES) and isinstance(state.get("metadata"), dict):
            state = {**state, "metadata": {"uid": render.UNKNOWN_UID, **state["metadata"]}}
        return f"{args.name}-id", state

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], None]:  # noqa: ARG002 - no calls are made
        """Answer with nothing."""
        return {}, None


class Recorder(mocks.MockMonitor):
    """Sees the requests that `Mocks` does not show in full."""

    def __init__(self) -> None:
        super().__init__(Echo())
        self.seen: list[Registered] = []
        self.outputs: dict[str, dict[str, Any]] = {}
        self.exports: dict[str, Any] = {}

    def RegisterResource(self, request: Any) -> Any:  # noqa: ANN401, N802 - the wire's own
        """Keep the request."""
        answer = super().RegisterResource(request)  # type: ignore[no-untyped-call]  # not annotated
        if request.type == "pulumi:pulumi:Stack":
            return answer  # made once per process, by whichever program is first
        self.seen.append(
            Registered(
                urn=answer.urn,
                type=request.type,
                name=request.name,
                inputs=deserialize_properties(request.object),
                parent=request.parent,
                provider=request.provider,
                after=set(request.dependencies),
            )
        )
        return answer

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: ANN401, N802 - as above
        """Keep the outputs of a component."""
        self.outputs[request.urn] = deserialize_properties(request.outputs)
        return super().RegisterResourceOutputs(request)  # type: ignore[no-untyped-call]  # as above

    def one(self, kind: str, name: str) -> Registered:
        """The resource of a kind (`DaemonSet`) and name."""
        (found,) = [r for r in self.seen if r.type.endswith(f":{kind}") and r.name == name]
        return found

    def kinds(self, kind: str) -> list[Registered]:
        """All resources of a kind."""
        return [r for r in self.seen if r.type.endswith(f":{kind}")]

    def objects(self) -> list[render.Manifest]:
        """The Kubernetes objects in the order of their dependencies."""
        return render.in_order(resource.recorded() for resource in self.seen)


def record(
    program: Callable[[], None],
    config: Mapping[str, str] | None = None,
    *,
    secrets: Collection[str] = (),
    stack: str = "test",
    logger: logging.Logger | None = None,
) -> Recorder:
    """Run a program to its end under a fresh monitor."""
    recorder = Recorder()
    mocks.set_mocks(
        Echo(), project="rbln-stack", stack=stack, preview=False, monitor=recorder, logger=logger
    )
    pulumi.runtime.set_all_config(dict(config or {}), list(secrets))
    root = pulumi.runtime.get_root_resource()
    if not isinstance(root, Stack):
        raise TypeError(root)
    root.outputs.clear()
    pulumi.runtime.test(program)()  # type: ignore[no-untyped-call]  # not annotated
    recorder.exports = dict(root.outputs)
    return recorder


def run_program(directory: Path) -> None:
    """Run the project's program as the engine's language host does."""
    sys.path.insert(0, str(directory))
    try:
        runpy.run_path(str(directory / "__main__.py"), run_name="__main__")
    finally:
        sys.path.remove(str(directory))


def _without_secrets(value: Any) -> Any:  # noqa: ANN401 - anything that JSON can hold
    """Take the engine's wrapping off: what it hides is content of the object all the same."""
    if is_rpc_secret(value):
        return _without_secrets(unwrap_rpc_secret(value))
    if isinstance(value, dict):
        return {key: _without_secrets(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_secrets(part) for part in value]
    return value
