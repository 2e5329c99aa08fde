from __future__ import annotations

import io
import json
import queue
from typing import Any

import httpx
import pytest

from agents.common import api, log
from agents.common.exits import Exit
from agents.node_state import shell, view, watching
from tests.unit.agents.node_state_fleet import RBLN, Cluster, node

POLICY = "/apis/rebellions.ai/v1beta1/rblnclusterpolicies"
DRIVER = "/apis/rebellions.ai/v1alpha1/rblndrivers"


class Server:
    """An API over HTTP: lists, and status patches that stick."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.patched: list[str] = []
        self.answer: httpx.Response | None = None

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if self.answer:
            return self.answer
        path, found = request.url.path, self.objects(request.url.path)
        if request.method == "PATCH":
            self.patched.append(path)
            found[0]["status"] = json.loads(request.content)["status"]
            return httpx.Response(200, json=found[0])
        return httpx.Response(200, json={"items": found, "metadata": {"resourceVersion": "7"}})

    def objects(self, path: str) -> list[dict[str, Any]]:
        kinds = {
            "/nodes": self.cluster.nodes,
            "/daemonsets": self.cluster.daemon_sets,
            "/controllerrevisions": self.cluster.revisions,
            "/pods": self.cluster.pods,
            "/rblndrivers": self.cluster.drivers,
            "/rblnclusterpolicies": self.cluster.policies,
        }
        return next(found for key, found in kinds.items() if key in path)


def client(server: Any) -> api.Api:
    return api.Api(httpx.Client(transport=httpx.MockTransport(server), base_url="http://api.test"))


def picture() -> view.View:
    return view.View(RBLN, view.sources(RBLN, "rbln-system"))


def once(server: Server) -> tuple[int, list[dict[str, Any]]]:
    stream = io.StringIO()
    code = shell.once(client(server), picture(), log.logger("node-state", stream))
    return code, [json.loads(line) for line in stream.getvalue().splitlines()]


def test_refusal_is_an_exit_code() -> None:
    server = Server(Cluster())
    server.answer = httpx.Response(403, json={"message": "no"})
    code, (line,) = once(server)
    assert (code, line["level"], line["agent"]) == (Exit.API, "error", "node-state")


def test_unready_then_ready_and_nothing_twice() -> None:
    server = Server(Cluster(node("a", allocatable="0")))
    assert once(server)[0] == Exit.NOT_READY
    server.cluster.nodes = [node("a")]
    code, lines = once(server)
    assert code == Exit.DONE
    assert [(line["step"], line["ready"], line["nodes"]) for line in lines] == [
        ("policy", True, "1/1")
    ]
    before = list(server.patched)
    assert once(server) == (Exit.DONE, [])
    assert server.patched == before


def test_heartbeat_is_no_change() -> None:
    shown = picture()
    source = next(found.name for found in shown.sources if found.path.endswith("/nodes"))
    assert shown.apply(view.Listed(source, (node("a"),)))
    beat = node("a")
    beat["status"]["conditions"][0]["lastHeartbeatTime"] = "later"
    assert not shown.apply(view.Changed(source, beat))
    assert shown.apply(view.Changed(source, beat, gone=True))
    assert not shown.complete


def keeper(server: Server, inbox: queue.SimpleQueue[view.Message]) -> tuple[shell.Keeper, Any]:
    stream = io.StringIO()
    made = shell.Keeper(
        api=client(server),
        picture=picture(),
        log=log.logger("node-state", stream),
        inbox=inbox,
        recheck_s=0.0,
    )
    return made, stream


def test_stop_ends_with_zero() -> None:
    inbox: queue.SimpleQueue[view.Message] = queue.SimpleQueue()
    inbox.put(view.Stop())
    made, _ = keeper(Server(Cluster()), inbox)
    assert made.take_in(1.0) == Exit.DONE


def test_refusal_before_anything_was_read_ends_but_an_outage_does_not() -> None:
    inbox: queue.SimpleQueue[view.Message] = queue.SimpleQueue()
    made, stream = keeper(Server(Cluster()), inbox)
    for _ in range(2):
        inbox.put(view.Failed("pods", "out of reach", final=False))
    assert made.take_in(0.0) is None
    assert made.take_in(0.0) is None
    assert stream.getvalue().count("source cannot be read") == 1
    inbox.put(view.Failed("pods", "403", final=True))
    assert made.take_in(0.0) == Exit.API


def test_status_that_cannot_be_written_is_told_once() -> None:
    server = Server(Cluster(node("a")))
    made, stream = keeper(server, queue.SimpleQueue())
    for source in made.picture.sources:
        made.picture.apply(view.Listed(source.name, tuple(server.objects(source.path))))
    server.answer = httpx.Response(500, text="<html>")
    assert [made.write(), made.write()] == [False, False]
    assert stream.getvalue().count("status not written") == 1
    server.answer = httpx.Response(404, json={"message": "gone"})
    assert made.write()
    server.answer = None
    assert made.write()
    assert {path.rpartition("/status")[0].rpartition("/")[0] for path in server.patched} == {
        POLICY,
        DRIVER,
    }


def test_watch_goes_on_from_the_list() -> None:
    events = [
        {"type": "BOOKMARK", "object": {}},
        {"type": "MODIFIED", "object": node("b")},
        {"type": "DELETED", "object": node("a")},
    ]

    def server(request: httpx.Request) -> httpx.Response:
        if "watch" in request.url.params:
            assert request.url.params["resourceVersion"] == "7"
            return httpx.Response(200, text="\n".join(map(json.dumps, events)))
        return httpx.Response(
            200, json={"items": [node("a")], "metadata": {"resourceVersion": "7"}}
        )

    sent: list[view.Message] = []
    source = picture().sources[0]
    watching.follow_once(client(server), source, sent.append, 1)
    assert [type(message).__name__ for message in sent] == ["Listed", "Changed", "Changed"]
    assert isinstance(sent[-1], view.Changed)
    assert sent[-1].gone


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (httpx.Response(410, json={"message": "old"}), api.ExpiredError),
        (httpx.Response(404, json={}), api.MissingError),
        (httpx.Response(401, text="?"), api.RefusedError),
        (httpx.Response(200, text="<html>"), api.ApiError),
    ],
)
def test_answers_become_errors(answer: httpx.Response, error: type[Exception]) -> None:
    with pytest.raises(error):
        client(lambda _: answer).list("/api/v1/nodes")


def test_expired_watch_is_told_apart() -> None:
    line = json.dumps({"type": "ERROR", "object": {"code": 410, "message": "too old"}})
    with pytest.raises(api.ExpiredError, match="too old"):
        list(client(lambda _: httpx.Response(200, text=line)).watch("/x", version="1", seconds=1))


def test_no_credentials(tmp_path: Any) -> None:
    with pytest.raises(api.SettingsError, match="no usable credentials"):
        api.connect({"KUBECONFIG": str(tmp_path / "none")}, account=tmp_path)
