"""The simulated kernel of one node: reads requests, keeps the node's files in step.

`serve` runs in a child of the node's first process, after the root has changed, so every import
stands at the top. It blocks until something is written to one of its pipes; it has no clock.
"""

import os
import re
import selectors
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from simulator.spec import NodeSpec
from simulator.state import (
    CONTROL,
    NO_OVERRIDE,
    PCI_DEVICES,
    REPLIES,
    Answer,
    Facts,
    Request,
    State,
    files,
    handle,
    initial_state,
    parse,
    pipes,
)
from simulator.tree import NodeMaker, apply, difference, make_null_device

_BDF = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_CHUNK = 65536
_ORDER = (("unbind",), ("bind",), ())
"""First words of what a pipe means; the control pipe has none."""
_PATIENCE_S = 30.0


class KernelError(OSError):
    """The simulated kernel refused a request or did not answer."""


class Kernel:
    """State of one node and the pipes on which it is asked to change."""

    def __init__(
        self, spec: NodeSpec, root: Path, make_device: NodeMaker = make_null_device
    ) -> None:
        self.spec = spec
        self.root = root
        self.state: State = initial_state(spec)
        self._make_device = make_device
        self._selector = selectors.DefaultSelector()
        self._rest = ""
        self._follow_pipes()

    def step(self) -> None:
        """Wait for something to be written and act on all of it."""
        ready = [key for key, _ in self._selector.select()]
        # What one writer does to several pipes arrives at once: it unbinds, then binds, then asks.
        for key in sorted(ready, key=lambda key: _ORDER.index(key.data[1][:1])):
            if self._selector.get_map().get(key.fileobj) != key:
                continue  # an earlier request of this round removed the pipe
            data = os.read(key.fd, _CHUNK).decode("utf-8", "replace")
            meaning: tuple[str, ...] = key.data[1]
            requests = self._written(data, *meaning) if meaning else self._asked(data)
            for request in requests:
                self._serve(request)

    def close(self) -> None:
        """Let go of all pipes."""
        for key in list(self._selector.get_map().values()):
            os.close(key.fd)
        self._selector.close()

    def _asked(self, data: str) -> Iterator[Request]:
        *lines, self._rest = (self._rest + data).split("\n")
        for line in lines:
            if (request := parse(line)) is None:
                print(f"request without a place to answer: {line!r}", file=sys.stderr)  # noqa: T201 - node log
            else:
                yield request

    @staticmethod
    def _written(data: str, verb: str, driver: str) -> Iterator[Request]:
        # Addresses have a fixed form, and a writer need not end one with a newline.
        for bdf in _BDF.findall(data):
            yield Request(verb, (driver, bdf) if verb == "bind" else (bdf, driver))

    def _serve(self, request: Request) -> None:
        try:
            state, answer = handle(self.spec, self.state, request, self._facts())
            before, after = files(self.spec, self.state), files(self.spec, state)
            apply(self.root, difference(before, after), self._make_device)
            self.state = state
            self._follow_pipes()
        except OSError as error:
            answer = Answer("EIO", str(error))
        if request.reply is not None:
            self._reply(request.reply, answer)

    def _facts(self) -> Facts:
        overrides = {}
        for npu in self.spec.npus():
            path = self.root / PCI_DEVICES / npu.bdf / "driver_override"
            value = path.read_text(encoding="utf-8").strip() if path.exists() else ""
            if value not in {"", NO_OVERRIDE}:
                overrides[npu.bdf] = value
        hardware = self.spec.hardware
        names = {npu.name for npu in self.spec.npus()} | {hardware.group_device}
        return Facts(handles=open_handles(self.root / "proc", names), overrides=overrides)

    def _follow_pipes(self) -> None:
        wanted = pipes(self.spec, self.state)
        current = {key.data[0]: key.fd for key in self._selector.get_map().values()}
        for path in current.keys() - wanted.keys():
            self._selector.unregister(current[path])
            os.close(current[path])
        for path in wanted.keys() - current.keys():
            # Also open for writing: else the last writer's leaving would read as end of file.
            fd = os.open(self.root / path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            self._selector.register(fd, selectors.EVENT_READ, (path, wanted[path]))

    def _reply(self, name: str, answer: Answer) -> None:
        try:
            # Does not wait: who asks has the pipe open already, or has gone.
            fd = os.open(self.root / REPLIES / name, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return
        with os.fdopen(fd, "w", encoding="utf-8") as pipe:
            pipe.write(answer.line())


def open_handles(proc: Path, names: set[str]) -> int:
    """Count the open files of these names in all processes of the node.

    By name, since the device number is that of /dev/null; only the last part, since a container
    has the device below a root of its own. An inherited handle counts once per process.
    """
    found = 0
    for folder in proc.glob("[0-9]*/fd"):
        try:
            handles = list(folder.iterdir())
        except OSError:
            continue  # the process has ended
        for link in handles:
            try:
                found += link.readlink().name in names
            except OSError:
                continue
    return found


def serve(spec: NodeSpec, root: Path = Path("/")) -> NoReturn:
    """Be the kernel of a node that `simulator.node.prepare` has made; never returns."""
    kernel = Kernel(spec, root)
    while True:
        kernel.step()


def ask(root: Path, verb: str, *args: str) -> None:
    """Send one request to the kernel of the node at `root`; refusal raises `KernelError`."""
    reply = root / REPLIES / uuid.uuid4().hex
    os.mkfifo(reply, 0o600)
    try:
        answers = os.open(reply, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        requests = os.open(root / CONTROL, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.write(requests, f"{verb} /{REPLIES}/{reply.name} {' '.join(args)}\n".encode())
            answer = _first_line(answers)
        finally:
            os.close(requests)
            os.close(answers)
    finally:
        reply.unlink()
    if answer != "0":
        raise KernelError(f"{verb} {' '.join(args)}: {answer}")


def set_fault(root: Path, name: str, *, on: bool) -> None:
    """Switch a fault of the node at `root`; `/proc/<pid>/root` of one of its processes will do."""
    ask(root, "fault", name, "on" if on else "off")


def _first_line(fd: int) -> str:
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        if not selector.select(_PATIENCE_S):
            raise KernelError(f"no answer from the simulated kernel in {_PATIENCE_S:.0f} s")
    return os.read(fd, _CHUNK).decode("utf-8").strip()
