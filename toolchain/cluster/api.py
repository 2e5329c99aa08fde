"""Talk to a cluster's API: a client for its kubeconfig, and waiting by watch."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

import httpx
from lightkube import ApiError, Client, KubeConfig
from lightkube.core.resource import GlobalResource, NamespacedResource

from toolchain.errors import ToolchainError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Kind = TypeVar("Kind", bound=GlobalResource | NamespacedResource)
CONNECT_TIMEOUT_S = 5.0


def client(kubeconfig: Path) -> Client:
    """Make a client for the administrator of a cluster."""
    timeout = httpx.Timeout(30.0, connect=CONNECT_TIMEOUT_S)
    return Client(config=KubeConfig.from_file(kubeconfig), timeout=timeout, trust_env=False)


def is_ready(kubeconfig: Path) -> bool:
    """Ask the API server once whether it is ready to serve."""
    try:
        config = KubeConfig.from_file(kubeconfig)
        return bool(
            Client(config=config, timeout=httpx.Timeout(3.0), trust_env=False)
            ._client._client.get("/readyz")  # noqa: SLF001 - lightkube has no call for plain paths
            .is_success
        )
    except (httpx.HTTPError, OSError):
        return False


def wait_until(
    api: Client,
    kind: type[Kind],
    done: Callable[[dict[str, Kind]], bool],
    *,
    timeout_s: float,
    describe: Callable[[dict[str, Kind]], str],
    namespace: str | None = None,
) -> dict[str, Kind]:
    """Follow all objects of a kind until `done` says so; the time-out tells what was seen."""
    deadline = time.monotonic() + timeout_s
    objects: dict[str, Kind] = {}
    while (left := deadline - time.monotonic()) > 0:
        try:
            scope = {"namespace": namespace} if namespace else {}
            listed = api.list(kind, **scope)  # type: ignore[call-overload]  # one call, two scopes
            objects = {_key(item): item for item in listed}
            if done(objects):
                return objects
            for event, item in api.watch(  # type: ignore[call-overload]  # as above
                kind,
                resource_version=listed.resourceVersion,
                server_timeout=max(1, int(left)),
                **scope,
            ):
                objects.pop(_key(item), None)
                if event != "DELETED":
                    objects[_key(item)] = item
                if done(objects):
                    return objects
                if time.monotonic() > deadline:
                    break
        except (httpx.HTTPError, ApiError):
            time.sleep(0.1)  # the server is starting: there is nothing to watch yet
    raise ToolchainError(f"not reached within {timeout_s:.0f} s", describe(objects))


def _key(item: GlobalResource | NamespacedResource) -> str:
    metadata = item.metadata  # type: ignore[union-attr]  # every kind has it
    return f"{metadata.namespace or ''}/{metadata.name}"
