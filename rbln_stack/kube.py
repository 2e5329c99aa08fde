"""Reads the cluster with the credentials the Kubernetes provider uses, or a recorded node list.

Called by discovery and by the command line. The order in which credentials are looked for is that
of the provider: the configured kubeconfig, KUBECONFIG, the default file, the pod's own account.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import httpx
import yaml
from lightkube.config.client_adapter import Client, ConnectionParams
from lightkube.config.kubeconfig import SERVICE_ACCOUNT, KubeConfig, SingleConfig
from lightkube.config.models import User
from lightkube.core.exceptions import ConfigError as AccessError

from rbln_stack.errors import DiscoveryError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PAGE_SIZE: Final = 500
METADATA_ONLY: Final = (
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json"
)
_DEFAULT_KUBECONFIG: Final = "~/.kube/config"
_FILE_KEYS: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_SHORT: Final = 200

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Access:
    """Which cluster, as both discovery and the provider are told; None means "as kubectl does"."""

    kubeconfig: str | None = None
    context: str | None = None


def access(kubeconfig: str | None, context: str | None) -> Access:
    """The one value both sides are built from; `~` is expanded here, once for both."""
    return Access(str(Path(kubeconfig).expanduser()) if kubeconfig else None, context or None)


class Cluster:
    """A connection that lists objects page by page; errors come out as `DiscoveryError`."""

    def __init__(
        self,
        access: Access,
        *,
        timeout_s: float,
        environ: Mapping[str, str] = os.environ,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        try:
            config = _credentials(access, environ)
            params = ConnectionParams(timeout=httpx.Timeout(timeout_s), transport=transport)
            self._http: httpx.Client = Client(config, params)
        except (AccessError, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise DiscoveryError([_unusable(error)]) from error
        except yaml.YAMLError as error:
            raise DiscoveryError([_unusable("it is not YAML")]) from error
        self.server = config.cluster.server
        self._timeout_s = timeout_s

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def list(
        self,
        path: str,
        *,
        selector: str = "",
        fields: str = "",
        accept: str = "application/json",
    ) -> Iterator[Manifest]:
        """All objects of a collection, of every page, as they arrive."""
        params: dict[str, str | int] = {"limit": PAGE_SIZE}
        if selector:
            params["labelSelector"] = selector
        if fields:
            params["fieldSelector"] = fields
        while True:
            page = self._get(path, params, accept)
            yield from page.get("items") or ()
            following = page.get("metadata", {}).get("continue")
            if not following:
                return
            params["continue"] = following

    def create(self, path: str, manifest: Manifest) -> None:
        """Create one object in a collection."""
        try:
            answer = self._http.post(path, json=manifest)
        except httpx.TransportError as error:
            raise DiscoveryError([self._unreachable(f"cannot be reached ({error})")]) from error
        if not answer.is_success:
            raise DiscoveryError([self._refused(path, answer)])

    def watch(
        self, path: str, *, selector: str = "", seconds: int
    ) -> Iterator[tuple[str, Manifest]]:
        """Every object of a collection and then every change of one, until the seconds are over."""
        params: dict[str, str | int] = {"watch": "true", "timeoutSeconds": seconds}
        if selector:
            params["labelSelector"] = selector
        # The server ends the stream; it must get the time to do so.
        timeout = httpx.Timeout(self._timeout_s, read=seconds + self._timeout_s)
        try:
            with self._http.stream("GET", path, params=params, timeout=timeout) as answer:
                if not answer.is_success:
                    answer.read()
                    raise DiscoveryError([self._refused(path, answer)])
                for line in answer.iter_lines():
                    event = json.loads(line)
                    yield event["type"], event["object"]
        except httpx.TransportError as error:
            raise DiscoveryError([self._unreachable(f"cannot be reached ({error})")]) from error

    def _get(self, path: str, params: Mapping[str, str | int], accept: str) -> Manifest:
        try:
            answer = self._http.get(path, params=params, headers={"Accept": accept})
        except httpx.TimeoutException as error:
            what = f"no answer within {self._timeout_s:g} s"
            raise DiscoveryError([self._unreachable(what)]) from error
        except httpx.TransportError as error:
            raise DiscoveryError([self._unreachable(f"cannot be reached ({error})")]) from error
        except (AccessError, OSError, ValueError, LookupError) as error:
            # Credential plugins run with the first request.
            raise DiscoveryError([_unusable(error)]) from error
        if answer.is_success:
            return self._body(answer)
        raise DiscoveryError([self._refused(path, answer)])

    def _body(self, answer: httpx.Response) -> Manifest:
        try:
            body = answer.json()
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise DiscoveryError([self._unreachable("answers, but not like a Kubernetes API")])
        return body

    def _unreachable(self, what: str) -> Problem:
        return Problem(
            f"API server {self.server}",
            what,
            "Check that the cluster runs and that kubeconfig and context name it; to preview "
            "without a cluster set discovery.source to snapshot",
            code="unreachable",
        )

    def _refused(self, path: str, answer: httpx.Response) -> Problem:
        collection = path.rsplit("/", 1)[-1]
        subject = f"API server {self.server}"
        if answer.status_code == httpx.codes.FORBIDDEN:
            return Problem(
                subject,
                f"access to {collection} is forbidden: {_message(answer)}",
                f"Give this user a ClusterRole with the verb list on {collection}; `kubectl auth "
                f"can-i list {collection}` must say yes",
                code="forbidden",
            )
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            return Problem(
                subject,
                f"the credentials are not accepted: {_message(answer)}",
                "Renew them, or choose another context",
                code="unauthorized",
            )
        return Problem(
            subject,
            f"asking for {collection} failed with status {answer.status_code}: {_message(answer)}",
            "Try again; if it stays, look at the API server's log",
            code="api",
        )


def read_snapshot(path: str) -> list[Manifest]:
    """The nodes in a file with what `kubectl get nodes -o json` (or yaml) printed."""

    def failure(what: str) -> DiscoveryError:
        remedy = "Record it with `kubectl get nodes -o json`"
        return DiscoveryError([Problem(f"snapshot {path}", what, remedy, code="snapshot")])

    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise failure("there is no such file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise failure(f"cannot be read ({error})") from error
    try:
        # A fleet's JSON has tens of megabytes; a YAML parser needs minutes for it.
        content = json.loads(text) if text.lstrip().startswith("{") else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        raise failure("is neither JSON nor YAML") from error
    nodes = _nodes_in(content)
    if nodes is None:
        raise failure("does not hold a list of nodes")
    return nodes


def _nodes_in(content: object) -> list[Manifest] | None:
    if not isinstance(content, dict):
        return None
    items = [content] if content.get("kind") == "Node" else content.get("items")
    if not isinstance(items, list) or not all(_is_node(item) for item in items):
        return None
    return items


def _is_node(item: object) -> bool:
    if not isinstance(item, dict) or item.get("kind", "Node") != "Node":
        return False
    metadata = item.get("metadata")
    return isinstance(metadata, dict) and isinstance(metadata.get("name"), str)


def _message(answer: httpx.Response) -> str:
    """The server's own words if it sent a Status; never a page of a proxy in between."""
    try:
        body = answer.json()
    except ValueError:
        body = None
    message = body.get("message") if isinstance(body, dict) else None
    return message[:_SHORT] if isinstance(message, str) else answer.reason_phrase or "no reason"


def _unusable(reason: object) -> Problem:
    return Problem(
        "cluster credentials",
        f"cannot be used: {_reason(reason)}",
        "Check the config keys kubeconfig and context, or the variable KUBECONFIG; `kubectl get "
        "nodes` must work with them",
        code="credentials",
    )


def _reason(reason: object) -> str:
    if isinstance(reason, KeyError):
        return f"the kubeconfig lacks {reason}"
    return (str(reason) or type(reason).__name__)[:_SHORT]


def _credentials(access: Access, environ: Mapping[str, str]) -> SingleConfig:
    paths = _kubeconfig_paths(access, environ)
    found = [path for path in paths if path.is_file()]
    if access.kubeconfig and not found:
        msg = f"there is no file {access.kubeconfig}"
        raise AccessError(msg)
    if found:
        merged = _merged([_read_kubeconfig(path) for path in found])
        config = KubeConfig.from_dict(merged).get(access.context)
    elif Path(SERVICE_ACCOUNT, "token").is_file():
        config = KubeConfig.from_service_account().get()
    else:
        tried = ", ".join(str(path) for path in paths)
        msg = f"no kubeconfig at {tried}, and this is no pod with a service account"
        raise AccessError(msg)
    if config is None:
        msg = "the kubeconfig names no context"
        raise AccessError(msg)
    # The client insists on a user, but a context may have none.
    return config if config.user else config._replace(user=User())


def _kubeconfig_paths(access: Access, environ: Mapping[str, str]) -> list[Path]:
    named = access.kubeconfig or ""
    listed = [named] if named else environ.get("KUBECONFIG", "").split(os.pathsep)
    paths = [Path(path).expanduser() for path in listed if path]
    return paths or [Path(_DEFAULT_KUBECONFIG).expanduser()]


def _read_kubeconfig(path: Path) -> Manifest:
    content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    if not isinstance(content, dict):
        msg = f"{path} is not a kubeconfig"
        raise AccessError(msg)
    for entry in content.get("clusters") or ():
        entry["cluster"] = _with_absolute_paths(entry.get("cluster") or {}, path.parent)
    for entry in content.get("users") or ():
        entry["user"] = _usable_user(_with_absolute_paths(entry.get("user") or {}, path.parent))
    return content


def _with_absolute_paths(section: Manifest, directory: Path) -> Manifest:
    files = {key: str(directory / section[key]) for key in _FILE_KEYS if section.get(key)}
    return {**section, **files}


def _usable_user(user: Manifest) -> Manifest:
    """Bring forms the client does not know, token files and newer plugins, into ones it does."""
    if user.get("tokenFile") and not user.get("token"):
        user = {**user, "token": Path(user["tokenFile"]).read_text(encoding="utf-8").strip()}
    plugin = user.get("exec")
    if not plugin:
        return user
    version = plugin.get("apiVersion", "client.authentication.k8s.io/v1beta1")
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
    env = [*(plugin.get("env") or ()), {"name": "KUBERNETES_EXEC_INFO", "value": json.dumps(info)}]
    # The answer has the same form in v1 and v1beta1, but the client refuses the name v1.
    accepted = "client.authentication.k8s.io/v1beta1" if version.endswith("/v1") else version
    args = plugin.get("args") or []
    return {**user, "exec": {**plugin, "apiVersion": accepted, "env": env, "args": args}}


def _merged(contents: list[Manifest]) -> Manifest:
    """Join kubeconfigs as kubectl does: the first file that names a thing wins."""
    merged: Manifest = {"clusters": [], "contexts": [], "users": [], "current-context": None}
    for content in contents:
        for kind in ("clusters", "contexts", "users"):
            known = {entry["name"] for entry in merged[kind]}
            merged[kind] += [e for e in content.get(kind) or () if e["name"] not in known]
        merged["current-context"] = merged["current-context"] or content.get("current-context")
    return merged
