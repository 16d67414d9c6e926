"""Random histories over HTTP against a model: lists, pages and watches of the server agree with what it answered."""

from __future__ import annotations

import base64
import http.client
import itertools
import json
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.apiserver.store.etcdserver import find_etcd, free_port, running_etcd

from hortus.apiserver.store import EtcdBackend
from hortus.testing.apiserver import TestServer, started_apiserver

_NUMBERS = itertools.count()
_NAMES = st.sampled_from([f"m{number}" for number in range(6)])
_VALUES = st.text("ab", max_size=2)


class Event(NamedTuple):
    revision: int
    type: str
    name: str
    labels: dict[str, str]


class Http:
    """One keep-alive connection, synchronously, as Hypothesis' machines are."""

    def __init__(self, server: TestServer) -> None:
        self._server = server
        self._connection = self.connect()
        self._headers = {"Authorization": f"Bearer {server.token}"}

    def connect(self) -> http.client.HTTPSConnection:
        address = self._server.url.removeprefix("https://")
        return http.client.HTTPSConnection(address, context=self._server.tls(), timeout=60)

    def send(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> tuple[int, Any]:
        headers = self._headers | ({"Content-Type": content_type} if body is not None else {})
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = self._connection.getresponse()
        return response.status, json.loads(response.read())

    def watch(self, path: str, until: int) -> list[dict[str, Any]]:
        """The events of a watch up to the one of revision `until`."""
        connection = self.connect()
        connection.request("GET", path, headers=self._headers)
        response = connection.getresponse()
        assert response.status == 200
        found = []
        while not found or revision(found[-1]["object"]) < until:
            found.append(json.loads(response.readline()))
            assert found[-1]["type"] != "ERROR", found[-1]
        connection.sock.close() if connection.sock else None
        response.close()
        return found

    def close(self) -> None:
        self._connection.close()


def revision(obj: Any) -> int:
    return int(obj["metadata"]["resourceVersion"])


class HistoryMachine(RuleBasedStateMachine):
    """Config maps of one namespace; every write's answer goes into `history`."""

    server: ClassVar[TestServer]

    @initialize()
    def begin(self) -> None:
        self.http = Http(self.server)
        namespace = f"history-{next(_NUMBERS)}"
        code, made = self.http.send("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        assert code == 201
        self.path = f"/api/v1/namespaces/{namespace}/configmaps"
        self.start = revision(made)
        self.last = self.start
        self.model: dict[str, Any] = {}
        self.stale: dict[str, Any] = {}
        self.history: list[Event] = []
        self.states: list[tuple[int, dict[str, Any]]] = [(self.start, {})]

    def teardown(self) -> None:
        if hasattr(self, "http"):
            self.http.close()

    def wrote(self, type_: str, obj: Any) -> None:
        name = obj["metadata"]["name"]
        if type_ != "DELETED":
            if name in self.model:
                self.stale[name] = self.model[name]
            self.model[name] = obj
        assert revision(obj) > self.last
        self.last = revision(obj)
        self.history.append(Event(self.last, type_, name, obj["metadata"].get("labels", {})))
        self.states.append((self.last, dict(self.model)))

    @rule(name=_NAMES, value=_VALUES)
    def create(self, name: str, value: str) -> None:
        obj = {"metadata": {"name": name, "labels": {"v": value}}, "data": {"a": value}}
        code, answer = self.http.send("POST", self.path, obj)
        assert code == (409 if name in self.model else 201), answer
        if code == 201:
            self.wrote("ADDED", answer)

    @rule(name=_NAMES, value=_VALUES, stale=st.booleans())
    def update(self, name: str, value: str, *, stale: bool) -> None:
        known = (self.stale if stale else self.model).get(name)
        if known is None:
            return
        current = self.model.get(name)
        metadata = {**known["metadata"], "labels": {"v": value}}
        code, answer = self.http.send("PUT", f"{self.path}/{name}", {**known, "metadata": metadata})
        if current is None:
            assert code in (404, 409), answer
        elif revision(known) != revision(current):
            assert code == 409, answer
        else:
            assert code == 200, answer
            if revision(answer) != revision(current):
                self.wrote("MODIFIED", answer)

    @rule(name=_NAMES, value=_VALUES)
    def patch(self, name: str, value: str) -> None:
        body = {"data": {"a": value}, "metadata": {"labels": {"v": value}}}
        code, answer = self.http.send("PATCH", f"{self.path}/{name}", body, "application/merge-patch+json")
        assert code == (200 if name in self.model else 404), answer
        if code == 200 and revision(answer) != revision(self.model[name]):
            self.wrote("MODIFIED", answer)

    @rule(name=_NAMES)
    def delete(self, name: str) -> None:
        code, answer = self.http.send("DELETE", f"{self.path}/{name}")
        assert code == (200 if name in self.model else 404), answer
        if code == 200:
            gone = self.model.pop(name)
            events = self.http.watch(f"{self.path}?watch=true&resourceVersion={self.last}", self.last + 1)
            assert [event["type"] for event in events] == ["DELETED"]
            final = events[0]["object"]
            assert {**final, "metadata": {**final["metadata"], "resourceVersion": ""}} == {
                **gone,
                "metadata": {**gone["metadata"], "resourceVersion": ""},
            }
            self.wrote("DELETED", final)

    @precondition(lambda self: self.history)
    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        """A watch from any revision shows exactly what came after it; with a selector what that lets through."""
        after = data.draw(st.sampled_from([self.start, *(event.revision for event in self.history[:-1])]))
        expected = [event for event in self.history if event.revision > after]
        events = self.http.watch(f"{self.path}?watch=true&resourceVersion={after}", self.last)
        assert [
            Event(
                revision(each["object"]),
                each["type"],
                each["object"]["metadata"]["name"],
                each["object"]["metadata"].get("labels", {}),
            )
            for each in events
        ] == expected

    @rule(data=st.data())
    def snapshot(self, data: st.DataObject) -> None:
        """A list at any revision is the state of then."""
        at, state = data.draw(st.sampled_from(self.states))
        code, answer = self.http.send("GET", f"{self.path}?resourceVersion={at}&resourceVersionMatch=Exact")
        assert code == 200, answer
        assert {item["metadata"]["name"]: revision(item) for item in answer["items"]} == {
            name: revision(obj) for name, obj in state.items()
        }

    @rule(limit=st.integers(1, 4), name=_NAMES)
    def pages(self, limit: int, name: str) -> None:
        """Pages are one snapshot, whatever is written between them."""
        expected = {each: revision(obj) for each, obj in self.model.items()}
        found: dict[str, int] = {}
        query = ""
        while True:
            code, page = self.http.send("GET", f"{self.path}?limit={limit}{query}")
            assert code == 200, page
            assert len(page["items"]) <= limit
            found |= {item["metadata"]["name"]: revision(item) for item in page["items"]}
            token = page["metadata"].get("continue")
            left = page["metadata"].get("remainingItemCount", 0)
            assert left == len(expected) - len(found)
            if not token:
                break
            if not query:
                self.patch(name, "page")
                self.create(name, "page")
            query = f"&continue={token}"
        assert found == expected

    @rule(data=st.data(), text=st.text("AZaz09-_", max_size=8))
    def forged_tokens(self, data: st.DataObject, text: str) -> None:
        """Forged and altered tokens are 400, expired ones are 410; neither shows objects."""
        start = data.draw(st.sampled_from(["m0\0", "zz", "../x\0", "", "../../kube-system/a\0", "m0/../m1\0"]))
        number = data.draw(st.sampled_from([self.last, 1, 0, -2, 1 << 70, "x", None]))
        made = {"v": data.draw(st.sampled_from(["meta.k8s.io/v1", "v2"])), "rv": number, "start": start}
        token = base64.urlsafe_b64encode(json.dumps(made).encode()).decode().rstrip("=")
        for forged in (token, token[:-3], token + text, text or "A"):
            code, answer = self.http.send("GET", f"{self.path}?limit=2&continue={forged}")
            assert code in (200, 400, 410, 504), answer
            if code == 200:
                assert {item["metadata"]["name"] for item in answer["items"]} <= {
                    name for _, state in self.states for name in state
                }
            else:
                assert answer["reason"] in ("BadRequest", "Expired", "Timeout")

    @invariant()
    def list_get_and_model_agree(self) -> None:
        if not hasattr(self, "model"):
            return
        code, answer = self.http.send("GET", self.path)
        assert code == 200
        assert revision(answer) >= self.last
        assert [item["metadata"]["name"] for item in answer["items"]] == sorted(self.model)
        for item in answer["items"]:
            known = self.model[item["metadata"]["name"]]
            assert item == {key: value for key, value in known.items() if key not in ("apiVersion", "kind")}


class MemoryHistory(HistoryMachine):
    pass


class SqliteHistory(HistoryMachine):
    pass


class EtcdHistory(HistoryMachine):
    pass


@pytest.fixture(scope="module")
def memory() -> Iterator[None]:
    with started_apiserver() as MemoryHistory.server:
        yield


@pytest.fixture(scope="module")
def sqlite() -> Iterator[None]:
    with started_apiserver(store="sqlite") as SqliteHistory.server:
        yield


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    binary, port = find_etcd(), free_port()
    if binary is None:
        pytest.skip("no etcd here: put it on the PATH (Debian: etcd-server) or name it in HORTUS_ETCD")
    with (
        running_etcd(binary, tmp_path_factory.mktemp("etcd"), port),
        started_apiserver(backend=EtcdBackend([f"http://127.0.0.1:{port}"])) as EtcdHistory.server,
    ):
        yield


_SETTINGS = settings(max_examples=20, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.usefixtures("memory")
class TestMemory(MemoryHistory.TestCase):  # type: ignore[name-defined,misc]
    settings = _SETTINGS


@pytest.mark.usefixtures("sqlite")
class TestSqlite(SqliteHistory.TestCase):  # type: ignore[name-defined,misc]
    settings = _SETTINGS


@pytest.mark.usefixtures("etcd")
class TestEtcd(EtcdHistory.TestCase):  # type: ignore[name-defined,misc]
    settings = _SETTINGS
