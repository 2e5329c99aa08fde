"""`rbln-agent <agent>`: the one program of the agent image.

Agents are listed as data and imported when they are asked for, so that one agent's dependencies
never slow down or break another.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import traceback
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Final, Protocol, cast

from agents.common.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Sequence


class Shell(Protocol):
    """What the module of an agent offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the agent's settings."""

    def run(self, settings: argparse.Namespace) -> int:
        """Do the agent's work and return its exit code."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An entry of the registry."""

    name: str
    module: str
    summary: str


AGENTS: Final = (
    Agent("inventory", "agents.inventory.shell", "list the node's accelerators"),
    Agent("node-state", "agents.node_state.shell", "say whether the stack is ready, and why not"),
    Agent("stand-in", "agents.stand_in.shell", "wait for files and publish files"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one agent; every exit code but that of a bug is the agent's own."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    chosen = _parser().parse_args(arguments[:1])
    agent = next(agent for agent in AGENTS if agent.name == chosen.agent)
    shell = cast("Shell", importlib.import_module(agent.module))
    parser = argparse.ArgumentParser(prog=f"rbln-agent {agent.name}", description=agent.summary)
    shell.add_arguments(parser)
    settings = parser.parse_args(arguments[1:])
    try:
        return int(shell.run(settings))
    except Exception:  # noqa: BLE001 - the outermost frame: anything that arrives here is a bug
        traceback.print_exc()
        return Exit.BUG


def _parser() -> argparse.ArgumentParser:
    listing = "\n".join(f"  {agent.name:<20}{agent.summary}" for agent in AGENTS)
    parser = argparse.ArgumentParser(
        prog="rbln-agent",
        description="Agents that prepare and watch accelerator nodes.",
        epilog=f"agents:\n{listing}\n\n`rbln-agent <agent> --help` shows an agent's settings.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"rbln-agent {_version()}")
    parser.add_argument("agent", choices=[agent.name for agent in AGENTS], metavar="agent")
    return parser


def _version() -> str:
    try:
        return metadata.version("rbln-stack")
    except metadata.PackageNotFoundError:
        return "(not installed)"


if __name__ == "__main__":
    sys.exit(main())
