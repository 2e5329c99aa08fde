"""Logs of agents: one JSON object per line on standard error, a constant message plus fields."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import TextIO

# What a record has anyway; everything else came in by `extra`.
_OWN: Final = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"})


class JsonLines(logging.Formatter):
    """Writes a record and its extra fields as one line."""

    def format(self, record: logging.LogRecord) -> str:
        """One JSON object."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        line |= {key: value for key, value in vars(record).items() if key not in _OWN}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class _Fields(logging.LoggerAdapter[logging.Logger]):
    """Adds the agent's own fields to those of the call."""

    def process(
        self,
        msg: Any,  # noqa: ANN401 - as the base has it
        kwargs: MutableMapping[str, Any],
    ) -> tuple[Any, MutableMapping[str, Any]]:
        return msg, {**kwargs, "extra": {**(self.extra or {}), **(kwargs.get("extra") or {})}}


def logger(
    agent: str, stream: TextIO | None = None, **fields: str
) -> logging.LoggerAdapter[logging.Logger]:
    """The agent's logger; `fields`, for example the node, stand in every line."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    base = logging.getLogger(f"rbln-agent.{agent}")
    base.handlers = [handler]
    base.propagate = False
    base.setLevel(logging.INFO)
    return _Fields(base, {"agent": agent, **fields})
