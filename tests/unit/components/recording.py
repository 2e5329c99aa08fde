"""A mock monitor that keeps what each resource was registered with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi.runtime import mocks
from pulumi.runtime.rpc import deserialize_properties
from pulumi.runtime.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Callable


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


class Echo(mocks.Mocks):
    """Every resource comes out as it went in."""

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        return f"{args.name}-id", args.inputs

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], None]:  # noqa: ARG002 - no calls are made
        return {}, None


class Recorder(mocks.MockMonitor):
    """Sees the requests that `Mocks` does not show in full."""

    def __init__(self) -> None:
        super().__init__(Echo())
        self.seen: list[Registered] = []
        self.outputs: dict[str, dict[str, Any]] = {}
        self.exports: dict[str, Any] = {}

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the wire's own name
        answer = super().RegisterResource(request)  # type: ignore[no-untyped-call]  # not annotated
        if request.type == "pulumi:pulumi:Stack":
            return answer  # made once per process, by whichever test is first
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

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802 - as above
        self.outputs[request.urn] = deserialize_properties(request.outputs)
        return super().RegisterResourceOutputs(request)  # type: ignore[no-untyped-call]  # as above

    def one(self, kind: str, name: str) -> Registered:
        """The resource of a kind (`DaemonSet`) and name."""
        (found,) = [r for r in self.seen if r.type.endswith(f":{kind}") and r.name == name]
        return found

    def kinds(self, kind: str) -> list[Registered]:
        """All resources of a kind."""
        return [r for r in self.seen if r.type.endswith(f":{kind}")]


def record(program: Callable[[], None], config: dict[str, str] | None = None) -> Recorder:
    """Run a program to its end under a fresh monitor."""
    recorder = Recorder()
    mocks.set_mocks(Echo(), project="rbln-stack", stack="test", preview=False, monitor=recorder)
    pulumi.runtime.set_all_config(config or {}, [])
    stack = pulumi.runtime.get_root_resource()
    assert isinstance(stack, Stack)
    stack.outputs.clear()
    pulumi.runtime.test(program)()  # type: ignore[no-untyped-call]  # not annotated
    recorder.exports = dict(stack.outputs)
    return recorder
