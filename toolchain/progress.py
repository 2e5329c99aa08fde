"""Progress of long work: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PLAIN_INTERVAL_S = 20.0


Reporter: TypeAlias = "Callable[[str], None]"
"""Takes one line of news at a time."""


def to_stderr(line: str) -> None:
    """Show a line where results are not disturbed: standard output stays machine-readable."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def span(seconds: float) -> str:
    """Say a duration the way people do.

    >>> span(4.2), span(75)
    ('4.2 s', '1 min 15 s')
    """
    if seconds < 60:  # noqa: PLR2004 - seconds in a minute
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


@contextmanager
def ticking(say: Callable[[float], None], interval_s: float = PLAIN_INTERVAL_S) -> Iterator[None]:
    """Call `say` with the seconds gone by, every interval, until the block ends."""
    start = time.monotonic()
    done = threading.Event()

    def tick() -> None:
        while not done.wait(interval_s):
            say(time.monotonic() - start)

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
