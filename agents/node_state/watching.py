"""One thread per source: list, then watch, then list again; what it sees goes into the queue.

A source that cannot be read is tried again with growing pauses, for ever: an outage of the API
must not end the agent.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from agents.common.api import ApiError, RefusedError
from agents.node_state.view import Changed, Failed, Listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agents.common.api import Api
    from agents.node_state.view import Message, Source

LONGEST_PAUSE_S: Final = 60.0
_FIRST_PAUSE_S: Final = 1.0


def start(
    api: Api, watched: Iterable[Source], send: Callable[[Message], None], resync_s: int
) -> threading.Event:
    """Start all threads; setting the event that comes back ends them."""
    stop = threading.Event()
    for source in watched:
        thread = threading.Thread(
            target=follow, args=(api, source, send, stop, resync_s), name=source.name, daemon=True
        )
        thread.start()
    return stop


def follow(
    api: Api,
    source: Source,
    send: Callable[[Message], None],
    stop: threading.Event,
    resync_s: int,
) -> None:
    """Follow one source until told to stop; every watch ends after `resync_s` with a new list."""
    pause_s = _FIRST_PAUSE_S
    while not stop.is_set():
        try:
            follow_once(api, source, send, resync_s)
            pause_s = _FIRST_PAUSE_S
        except ApiError as error:
            if stop.is_set():
                return
            send(Failed(source.name, str(error), isinstance(error, RefusedError)))
            stop.wait(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)


def follow_once(api: Api, source: Source, send: Callable[[Message], None], resync_s: int) -> None:
    """One list and the watch that goes on from it."""
    manifests, version = api.list(source.path, selector=source.selector)
    send(Listed(source.name, tuple(manifests)))
    events = api.watch(source.path, version=version, seconds=resync_s, selector=source.selector)
    for kind, manifest in events:
        if kind != "BOOKMARK":
            send(Changed(source.name, manifest, gone=kind == "DELETED"))
