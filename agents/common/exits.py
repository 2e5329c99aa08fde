"""Exit codes of all agents; scripts and probes rely on them."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """How an agent ended."""

    DONE = 0
    NOT_READY = 1
    BAD_SETTINGS = 2
    API = 3
    BUG = 70
