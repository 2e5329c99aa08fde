"""Where this project keeps things outside its own folder: per user, by the XDG rules."""

from __future__ import annotations

import os
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
NAME = "rbln-stack"


def _xdg(variable: str, fallback: str) -> Path:
    value = os.environ.get(variable, "")
    # The XDG rules say that a relative path counts as unset.
    base = Path(value) if value.startswith("/") else Path.home() / fallback
    return base / NAME


def cache_root() -> Path:
    """Built tools, images and Go's caches: costly to make, safe to delete."""
    return _xdg("XDG_CACHE_HOME", ".cache")


def state_root() -> Path:
    """Running clusters: removed by `cluster down`."""
    return _xdg("XDG_STATE_HOME", ".local/state")
