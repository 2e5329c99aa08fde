"""The Kubernetes API for agents: list, watch, patch a status. JSON in, JSON out.

In a pod the account's token is read for every request, because the kubelet replaces the file about
once an hour; elsewhere KUBECONFIG or the default kubeconfig counts. Every failure comes out as one
of three errors, so that a caller knows whether waiting can help.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import httpx
from lightkube.config.client_adapter import Client, ConnectionParams
from lightkube.config.kubeconfig import SERVICE_ACCOUNT, KubeConfig
from lightkube.config.models import User
from lightkube.core.exceptions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from lightkube.config.kubeconfig import SingleConfig

Manifest = dict[str, Any]

PAGE_SIZE: Final = 500
_TIMEOUT_S: Final = 10.0
_SHORT: Final = 200
_DEFAULT_KUBECONFIG: Final = "~/.kube/config"


class ApiError(Exception):
    """The API did not do what was asked; waiting may help."""


class SettingsError(ApiError):
    """There are no usable credentials."""


class RefusedError(ApiError):
    """The API answered no: the account lacks the right, or its credentials are not accepted."""


class ExpiredError(ApiError):
    """The version to watch from is too old; list again."""


class MissingError(ApiError):
    """There is no such object or kind."""


class FileToken(httpx.Auth):
    """Sends the token that is in the file at the time of the request."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the header."""
        token = self._path.read_text(encoding="utf-8").strip()
        request.headers["Authorization"] = f"Bearer {token}"
        yield request


class Api:
    """A connection; safe to use from several threads."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all requests, also those that other threads wait for."""
        self._http.close()

    def list(self, path: str, *, selector: str = "") -> tuple[list[Manifest], str]:
        """All objects of a collection, and the version to watch from."""
        params: dict[str, str | int] = {"limit": PAGE_SIZE}
        if selector:
            params["labelSelector"] = selector
        found: list[Manifest] = []
        while True:
            page = self._json("GET", path, params=params)
            found += page.get("items") or []
            metadata = page.get("metadata") or {}
            if not metadata.get("continue"):
                return found, str(metadata.get("resourceVersion", ""))
            params["continue"] = metadata["continue"]

    def watch(
        self, path: str, *, version: str, seconds: int, selector: str = ""
    ) -> Iterator[tuple[str, Manifest]]:
        """Every change of a collection since the version, until the seconds are over."""
        params: dict[str, str | int] = {
            "watch": "true",
            "resourceVersion": version,
            "timeoutSeconds": seconds,
            "allowWatchBookmarks": "true",
        }
        if selector:
            params["labelSelector"] = selector
        # The server ends the stream; it must get the time to do so.
        timeout = httpx.Timeout(_TIMEOUT_S, read=seconds + _TIMEOUT_S)
        try:
            with self._http.stream("GET", path, params=params, timeout=timeout) as answer:
                if not answer.is_success:
                    answer.read()
                    raise _refusal(path, answer)
                for line in answer.iter_lines():
                    yield _event(path, line)
        except (httpx.HTTPError, httpx.StreamError, OSError, RuntimeError) as error:
            raise ApiError(_text(error)) from error

    def patch_status(self, path: str, status: Manifest) -> Manifest:
        """Replace the given fields of an object's status; the object as it is then."""
        headers = {"Content-Type": "application/merge-patch+json"}
        body = json.dumps({"status": status})
        return self._json("PATCH", f"{path}/status", content=body, headers=headers)

    def _json(self, method: str, path: str, **request: Any) -> Manifest:  # noqa: ANN401
        try:
            answer = self._http.request(method, path, **request)
        except (httpx.HTTPError, ConfigError, OSError, RuntimeError) as error:
            # The client says by a RuntimeError that it was closed meanwhile.
            raise ApiError(_text(error)) from error
        if not answer.is_success:
            raise _refusal(path, answer)
        try:
            body = answer.json()
        except ValueError:
            body = None
        if not isinstance(body, dict):
            msg = f"{path}: the answer is not that of a Kubernetes API"
            raise ApiError(msg)
        return body


def connect(
    environ: Mapping[str, str] = os.environ,
    *,
    account: Path = Path(SERVICE_ACCOUNT),
    transport: httpx.BaseTransport | None = None,
) -> Api:
    """A connection with the pod's account or, outside of a pod, with the kubeconfig."""
    params = ConnectionParams(timeout=httpx.Timeout(_TIMEOUT_S), transport=transport)
    try:
        named = environ.get("KUBECONFIG", "").partition(os.pathsep)[0]
        if not named and (account / "token").is_file():
            config = KubeConfig.from_service_account(account).get()
            http: httpx.Client = Client(_usable(config), params)
            http.auth = FileToken(account / "token")
        else:
            path = Path(named or _DEFAULT_KUBECONFIG).expanduser()
            http = Client(_usable(KubeConfig.from_file(path).get()), params)
    except (ConfigError, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        msg = f"no usable credentials: {_text(error)}"
        raise SettingsError(msg) from error
    return Api(http)


def _usable(config: SingleConfig | None) -> SingleConfig:
    if config is None:
        msg = "the kubeconfig names no context"
        raise ConfigError(msg)
    # The client insists on a user, but a context may have none.
    return config if config.user else config._replace(user=User())


def _event(path: str, line: str) -> tuple[str, Manifest]:
    try:
        event = json.loads(line)
        kind, content = event["type"], event["object"]
    except (ValueError, LookupError, TypeError) as error:
        msg = f"{path}: the watch sent something that is no event"
        raise ApiError(msg) from error
    if kind != "ERROR":
        return kind, content
    message = str(content.get("message", ""))[:_SHORT]
    if content.get("code") == httpx.codes.GONE:
        raise ExpiredError(message)
    raise ApiError(message)


def _refusal(path: str, answer: httpx.Response) -> ApiError:
    text = f"{path}: {answer.status_code} {_message(answer)}"
    match answer.status_code:
        case httpx.codes.UNAUTHORIZED | httpx.codes.FORBIDDEN:
            return RefusedError(text)
        case httpx.codes.NOT_FOUND:
            return MissingError(text)
        case httpx.codes.GONE:
            return ExpiredError(text)
        case _:
            return ApiError(text)


def _message(answer: httpx.Response) -> str:
    """The server's own words if it sent a Status; never a page of a proxy in between."""
    try:
        body = answer.json()
    except ValueError:
        body = None
    message = body.get("message") if isinstance(body, dict) else None
    return message[:_SHORT] if isinstance(message, str) else answer.reason_phrase


def _text(error: Exception) -> str:
    return (str(error) or type(error).__name__)[:_SHORT]
