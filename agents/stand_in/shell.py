"""`rbln-agent stand-in`: waits for files, publishes files, withdraws them when it is stopped."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agents.common.exits import Exit
from agents.stand_in import core

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

# Ready files appear once per start of a pod: a poll this slow costs nothing and needs no inotify,
# whose watches a directory that is mounted over would lose.
POLL_S: Final = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the agent's settings."""
    parser.add_argument("--wait-for", nargs="*", type=Path, default=[], metavar="FILE")
    parser.add_argument("--publish", nargs="*", type=Path, default=[], metavar="FILE")
    parser.add_argument(
        "--once", action="store_true", help="end after publishing and leave the files"
    )


def run(settings: argparse.Namespace) -> int:
    """Serve until SIGTERM, or publish once; 1 if stopped before the files were there."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return serve(settings.wait_for, settings.publish, stop, once=settings.once)


def serve(
    wait_for: Sequence[Path], publish: Sequence[Path], stop: threading.Event, *, once: bool
) -> int:
    """Wait, publish, stay; what an earlier run left is no longer true while this one waits."""
    if _missing(wait_for):
        withdraw(publish)
    while _missing(wait_for):
        if stop.wait(POLL_S):
            return Exit.NOT_READY if once else Exit.DONE
    for path in publish:
        put(path, core.content(path.name))
    if once:
        return Exit.DONE
    stop.wait()
    withdraw(publish)
    return Exit.DONE


def put(path: Path, text: str) -> None:
    """Let a file appear in one step; one with the same content keeps its time (X-12)."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.chmod(0o644)
    temporary.rename(path)


def withdraw(paths: Sequence[Path]) -> None:
    """Take files away; those that are gone already are fine."""
    for path in paths:
        path.unlink(missing_ok=True)


def _missing(wait_for: Sequence[Path]) -> tuple[Path, ...]:
    return core.missing(wait_for, [path for path in wait_for if path.is_file()])
