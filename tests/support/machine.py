"""An embedded cluster in tests: its commands, and waiting that tells what it saw."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchain import engine
from toolchain.cluster import lifecycle, processes
from toolchain.cluster.spec import ClusterSpec, Layout, Record
from toolchain.progress import to_stderr

PROJECT = Path(__file__).parents[2]
WAIT_S = 120


def run(*argv: str, env: dict[str, str] | None = None, text: str | None = None) -> str:
    """Run a command that must succeed; its output is in the failure."""
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        check=False,
        input=text,
        env={**os.environ, **(env or {})},
        timeout=300,
        cwd=PROJECT,
    )
    assert done.returncode == 0, f"{' '.join(argv)}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class Machine:
    """A running cluster."""

    record: Record
    environment: dict[str, str]

    @classmethod
    def make(cls, name: str, **wanted: Any) -> Machine:
        record = lifecycle.up(ClusterSpec(name=name, **wanted), to_stderr)
        return cls(record, engine.prepare(Layout.of(name), to_stderr))

    @property
    def layout(self) -> Layout:
        return Layout.of(self.record.spec.name)

    def remove(self) -> None:
        lifecycle.down(self.record.spec.name, to_stderr)

    def kubectl(self, *argv: str, text: str | None = None) -> str:
        return run("kubectl", *argv, env=self.environment, text=text)

    def get(self, *argv: str) -> Any:
        return json.loads(self.kubectl("get", *argv, "-o", "json"))

    def apply(self, *objects: dict[str, Any]) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "-f", "-", text=json.dumps(listed))

    def pulumi(self, *argv: str) -> str:
        return run("pulumi", *argv, "--non-interactive", env=self.environment)

    def wait(self, what: str, condition: str, namespace: str = "default") -> None:
        """Wait for an object's condition; on time-out show the object."""
        flags = (f"--namespace={namespace}", what)
        try:
            self.kubectl("wait", *flags, f"--for={condition}", f"--timeout={WAIT_S}s")
        except AssertionError as error:
            seen = self.kubectl("describe", *flags)
            raise AssertionError(f"{error}\n{seen}") from None

    def on_node(self, node: str, *argv: str) -> str:
        """Run a command inside a node, as its administrator would."""
        init = processes.node_inits(processes.of_cluster(self.layout.root))[node]
        enter = ("--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd")
        return run("nsenter", f"--target={init.pid}", *enter, *argv)
