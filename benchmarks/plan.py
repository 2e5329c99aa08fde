"""How long a plan for a large fleet takes and what it holds, beside a floor from the same run.

The floor is parsing the recorded list, which a plan from a file cannot do without.

Example: python benchmarks/plan.py --nodes 10000 --pools 40 -o json
"""

from __future__ import annotations

import argparse
import json
import time
import tracemalloc
from typing import TYPE_CHECKING, Any

from rbln_stack import contract, discovery
from rbln_stack.config.load import load
from rbln_stack.plan import make_plan
from rbln_stack.planview import PlanView
from rbln_stack.profiles import RBLN

if TYPE_CHECKING:
    from collections.abc import Callable

# A node that NFD has labelled carries about as many.
MORE_LABELS = 90
SECONDS_LIMIT, MIB_LIMIT = 2.0, 150.0
REPEATS = 3


def node(number: int, pools: int) -> dict[str, Any]:
    """Form one node of a recorded list."""
    pool = number % pools
    labels = {
        contract.OS_ID_LABEL: "ubuntu",
        contract.OS_VERSION_LABEL: "22.04" if pool % 2 else "24.04",
        contract.KERNEL_LABEL: f"6.8.0-{pool}-generic",
        contract.ARCH_LABEL: "amd64",
        "kubernetes.io/hostname": f"node-{number:05}",
        RBLN.present_labels[0]: "true",
    }
    labels |= {f"{contract.NFD_PREFIX}cpu-cpuid.FLAG{flag}": "true" for flag in range(MORE_LABELS)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number:05}", "labels": labels},
        "spec": {},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {
                "containerRuntimeVersion": "containerd://2.1.4",
                "kubeletVersion": "v1.34.2",
            },
        },
    }


def planned(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    """Plan and show, as `rbln-stack plan -o json` does."""
    found = discovery.from_manifests(manifests, RBLN, source="benchmark")
    plan = make_plan(load({}), found, RBLN)
    view = PlanView(
        profile=RBLN, source=found.source, nodes=found.nodes, pools=plan.pools, plan=plan
    )
    return view.as_json()


def seconds(action: Callable[[], object]) -> float:
    """Time the best of a few calls: the machine may be busy with other things."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_mib(action: Callable[[], object]) -> float:
    """Tell how far one call, its result included, takes memory above what was there before."""
    tracemalloc.start()
    kept = action()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    del kept
    return peak / 2**20


def measured(nodes: int, pools: int) -> list[dict[str, Any]]:
    """Measure floor and plan."""
    text = json.dumps({"items": [node(number, pools) for number in range(nodes)]})
    manifests: list[dict[str, Any]] = json.loads(text)["items"]
    floor = {
        "seconds": seconds(lambda: json.loads(text)),
        "MiB": peak_mib(lambda: json.loads(text)),
    }
    took = {
        "seconds": seconds(lambda: planned(manifests)),
        "MiB": peak_mib(lambda: planned(manifests)),
    }
    size = len(text) / 2**20
    return [
        {"what": f"floor: parse the list ({size:.0f} MiB)", **floor},
        {
            "what": f"plan, {nodes:,} nodes in {pools} pools",
            **took,
            "ratio": took["seconds"] / floor["seconds"],
            "met": took["seconds"] < SECONDS_LIMIT and took["MiB"] < MIB_LIMIT,
        },
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time and memory of a plan for a large fleet.")
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--pools", type=int, default=40)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    arguments = parser.parse_args()
    rows = measured(arguments.nodes, arguments.pools)
    if arguments.output == "json":
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        ratio = f"{row['ratio']:.2f} x floor" if "ratio" in row else ""
        print(f"{row['what']:34} {row['seconds']:8.2f} s {row['MiB']:8.1f} MiB  {ratio}")
    met = "met" if rows[-1]["met"] else "missed"
    print(f"target: under {SECONDS_LIMIT:g} s and {MIB_LIMIT:g} MiB: {met}")


if __name__ == "__main__":
    main()
