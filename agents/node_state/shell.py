"""`rbln-agent node-state`: watches the cluster and writes the status of the stack's declarations.

It writes nothing else: no operand, no label, no declaration. One replica is enough; a second one
would write the same.
"""

from __future__ import annotations

import os
import queue
import signal
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from agents.common import log
from agents.common.api import ApiError, MissingError, SettingsError, connect
from agents.common.exits import Exit
from agents.node_state import facts, status, view, watching

if TYPE_CHECKING:
    import argparse
    import logging
    from collections.abc import Callable

    from agents.common.api import Api
    from agents.node_state.view import Message

NAMESPACE_ENV: Final = "POD_NAMESPACE"
DEFAULT_NAMESPACE: Final = "rbln-system"
RESYNC_S: Final = 300
# Changes come in bursts: wait until it is quiet, but not longer than the second number.
QUIET_S: Final = 0.3
LONGEST_BURST_S: Final = 3.0
# How often an unready stack is looked at anew, and a status that could not be written tried again.
RECHECK_S: Final = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the agent's settings."""
    parser.add_argument(
        "--namespace",
        default=os.environ.get(NAMESPACE_ENV) or DEFAULT_NAMESPACE,
        help=f"where the operands are (default: {NAMESPACE_ENV} or {DEFAULT_NAMESPACE})",
    )
    parser.add_argument("--profile", choices=sorted(facts.VENDORS), default="rbln")
    parser.add_argument("--resync-seconds", type=int, default=RESYNC_S)
    parser.add_argument(
        "--once", action="store_true", help="look once, write, and end with 1 if not ready"
    )


def run(settings: argparse.Namespace) -> int:
    """Serve until SIGTERM, or look once."""
    logger = log.logger("node-state", namespace=settings.namespace)
    vendor = facts.VENDORS[settings.profile]
    watched = view.sources(vendor, settings.namespace)
    try:
        api = connect()
    except SettingsError as error:
        logger.error("no access to the API", extra={"reason": str(error)})  # noqa: TRY400
        return Exit.BAD_SETTINGS
    with api:
        if settings.once:
            return once(api, view.View(vendor, watched), logger)
        inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: inbox.put(view.Stop()))
        stop = watching.start(api, watched, inbox.put, settings.resync_seconds)
        keeper = Keeper(
            api=api,
            picture=view.View(vendor, watched),
            log=logger,
            inbox=inbox,
            recheck_s=float(settings.resync_seconds),
        )
        try:
            return keeper.serve()
        finally:
            stop.set()


def once(
    api: Api,
    picture: view.View,
    logger: logging.LoggerAdapter[logging.Logger],
) -> int:
    """List everything, write what differs; 0 if every declaration is ready."""
    try:
        for source in picture.sources:
            manifests, _ = api.list(source.path, selector=source.selector)
            picture.apply(view.Listed(source.name, tuple(manifests)))
        write_all(api, picture, logger, _now())
    except ApiError as error:
        logger.error("the API did not answer as needed", extra={"reason": str(error)})  # noqa: TRY400
        return Exit.API
    return Exit.DONE if all_ready(picture) else Exit.NOT_READY


@dataclass(kw_only=True)
class Keeper:
    """The loop: take messages in, and when it is quiet write what changed."""

    api: Api
    picture: view.View
    log: logging.LoggerAdapter[logging.Logger]
    inbox: queue.SimpleQueue[Message]
    recheck_s: float
    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], str] = field(default_factory=lambda: _now)
    _failure: str = ""

    def serve(self) -> int:
        """Run until a Stop; 3 if the API refuses before anything could be read."""
        wait_s = self.recheck_s
        while True:
            end = self.take_in(wait_s)
            if end is not None:
                return end
            wait_s = self.recheck_s
            if self.picture.complete and not (self.write() and all_ready(self.picture)):
                wait_s = min(RECHECK_S, self.recheck_s)

    def take_in(self, wait_s: float) -> int | None:
        """Wait for a change and then for quiet; an exit code when it is time to end."""
        deadline = self.monotonic() + wait_s
        burst_end: float | None = None
        while True:
            left = deadline - self.monotonic()
            try:
                message = self.inbox.get(timeout=max(left, 0.0))
            except queue.Empty:
                return None
            if isinstance(message, view.Stop):
                self.log.info("told to stop")
                return Exit.DONE
            if isinstance(message, view.Failed):
                if self._note(message) and not self.picture.complete:
                    return Exit.API
                continue
            if self.picture.failing(message.source):
                self.log.info("source is back", extra={"source": message.source})
            if not self.picture.apply(message):
                continue
            burst_end = burst_end or self.monotonic() + LONGEST_BURST_S
            deadline = min(self.monotonic() + QUIET_S, burst_end)

    def write(self) -> bool:
        """Write what differs; False when the API did not take it."""
        try:
            write_all(self.api, self.picture, self.log, self.now())
        except ApiError as error:
            if str(error) != self._failure:
                self.log.warning("status not written", extra={"reason": str(error)})
            self._failure = str(error)
            return False
        self._failure = ""
        return True

    def _note(self, failure: view.Failed) -> bool:
        """Log a failure once; whether waiting cannot help."""
        if self.picture.fails(failure):
            fields = {"source": failure.source, "reason": failure.reason}
            self.log.warning("source cannot be read", extra=fields)
        return failure.final


def write_all(
    api: Api,
    picture: view.View,
    logger: logging.LoggerAdapter[logging.Logger],
    now: str,
) -> None:
    """Patch every status that differs and take the answer in, so that it is not written twice."""
    paths = {source.name: source.path for source in picture.sources}
    kinds = {status.POLICY: view.POLICIES, status.DRIVER: view.DRIVERS}
    for write in status.decide(picture.facts(), now):
        source = kinds[write.kind]
        try:
            manifest = api.patch_status(f"{paths[source]}/{write.name}", write.status)
        except MissingError:
            # It was deleted meanwhile; the watch will say so.
            continue
        picture.apply(view.Changed(source, manifest))
        fields = {
            "step": write.kind,
            "object": write.name,
            "ready": write.ready,
            "nodes": write.status["nodes"],
            "reason": write.reason,
            "detail": write.message,
        }
        logger.info("status changed", extra=fields)


def all_ready(picture: view.View) -> bool:
    """Whether every declaration says that it is ready; none at all is not ready."""
    found = picture.facts()
    declared = (*found.policies, *found.drivers)
    return bool(declared) and all(entry.status.get("state") == "ready" for entry in declared)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
