"""How long the embedded cluster and the engine take, beside a floor measured in the same run.

Example: python benchmarks/start.py -o json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from toolchain import engine
from toolchain.cluster import lifecycle
from toolchain.cluster.spec import ClusterSpec, Layout

if TYPE_CHECKING:
    from collections.abc import Callable

PROJECT = Path(__file__).resolve().parents[1]
NAME = "bench"
EMPTY_PROGRAM = "name: empty\nruntime:\n  name: python\n  options:\n    virtualenv: {venv}\n"


def quiet(_line: str) -> None:
    """Say nothing: the numbers are the output."""


def seconds(action: Callable[[], object]) -> float:
    """Time one call."""
    start = time.monotonic()
    action()
    return time.monotonic() - start


def cluster_times() -> dict[str, float]:
    """Time the start and end of clusters; a control plane alone is the floor."""
    times = {}
    for label, spec in {
        "control plane alone": ClusterSpec(name=NAME, nodes=0, kwok=1),
        "two real nodes": ClusterSpec(name=NAME, nodes=2),
        "1,000 kwok nodes": ClusterSpec(name=NAME, nodes=0, kwok=1000),
    }.items():
        times[f"up, {label}"] = seconds(partial(lifecycle.up, spec, quiet))
        if spec.nodes:
            times |= preview_times()
            times["up again, two real nodes"] = seconds(partial(lifecycle.up, spec, quiet))
        times[f"down, {label}"] = seconds(lambda: lifecycle.down(NAME, quiet))
    return times


def preview_times() -> dict[str, float]:
    """Time a preview of the stack; that of an empty program is the floor."""
    environment = {**os.environ, **engine.prepare(Layout.of(NAME), quiet)}

    def preview(folder: Path, stack: str) -> None:
        for argv in (["stack", "select", "--create", stack], ["preview", "--stack", stack]):
            subprocess.run(
                ["pulumi", *argv], cwd=folder, env=environment, check=True, capture_output=True
            )

    with tempfile.TemporaryDirectory() as folder:
        text = EMPTY_PROGRAM.format(venv=Path(sys.executable).parents[1])
        (Path(folder) / "Pulumi.yaml").write_text(text)
        (Path(folder) / "__main__.py").write_text("")
        floor = seconds(lambda: preview(Path(folder), "empty"))
    return {
        "preview, empty program": floor,
        "preview, stack dev": seconds(lambda: preview(PROJECT, "dev")),
    }


FLOORS = {
    "up, two real nodes": "up, control plane alone",
    "preview, stack dev": "preview, empty program",
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Times of the embedded cluster and the engine.")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    wanted = parser.parse_args().output
    times = cluster_times()
    rows = [
        {"what": what, "seconds": round(took, 2), "ratio": round(took / times[FLOORS[what]], 2)}
        if what in FLOORS
        else {"what": what, "seconds": round(took, 2)}
        for what, took in times.items()
    ]
    if wanted == "json":
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        ratio = f"{row['ratio']:.2f} x floor" if "ratio" in row else ""
        print(f"{row['what']:34} {row['seconds']:8.2f} s  {ratio}")


if __name__ == "__main__":
    main()
