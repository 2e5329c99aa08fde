"""The monitor that the tests of components record with is the one `rbln-stack render` uses."""

from __future__ import annotations

from rbln_stack.cli.rendering import Recorder, Registered, record

__all__ = ["Recorder", "Registered", "record"]
