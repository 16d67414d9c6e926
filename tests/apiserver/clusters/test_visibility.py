"""A client without a credential of a logical cluster learns nothing of it, not even whether there is one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from tests.apiserver.wire import Answer, Wire, connected

from hortus.testing.apiserver import TestServer, started_apiserver

_PATHS = (
    "",
    "/",
    "/api",
    "/apis",
    "/api/v1",
    "/api/v1/namespaces",
    "/api/v1/namespaces/default",
    "/api/v1/namespaces/default/secrets/a",
    "/api/v1/watch/secrets",
    "/apis/example.com/v1/gardens",
    "/healthz",
    "/livez",
    "/readyz?verbose",
    "/metrics",
    "/version",
    "/openapi/v2",
    "/openapi/v3",
    "/.well-known/openid-configuration",
    "/openid/v1/jwks",
    "/ping",
    "/none",
)
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_CREDENTIALS: dict[str, dict[str, str]] = {
    "nobody": {},
    "somebody with a wrong token": {"Authorization": "Bearer wrong"},
    "somebody who claims to be another": {"Impersonate-User": "admin", "Impersonate-Group": "system:masters"},
}


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_apiserver(clusters=["there"]) as running:
        yield running


def _reported(answer: Answer, cluster: str) -> tuple[int, Any, set[str]]:
    body = answer.body.decode() if isinstance(answer.body, bytes) else str(answer.body)
    return answer.code, body.replace(cluster, "<cluster>"), set(answer.headers)


@pytest.mark.parametrize("who", _CREDENTIALS)
async def test_a_cluster_that_is_there_answers_like_one_that_is_not(server: TestServer, who: str) -> None:
    async with connected(server.url, "", server.tls()) as wire:
        for method, path in itertools.product(_METHODS, _PATHS):
            answers = []
            for cluster in ("there", "never"):
                body = None if method in ("GET", "HEAD") else {}
                sent = await wire.send(method, f"/clusters/{cluster}{path}", body, headers=_CREDENTIALS[who])
                answers.append(_reported(sent, cluster))
            assert answers[0] == answers[1], (method, path)


async def test_a_token_of_one_cluster_reveals_nothing_of_others(server: TestServer) -> None:
    account = "/clusters/there/api/v1/namespaces/default/serviceaccounts/default/token"
    async with connected(server.url, server.token_everywhere, server.tls()) as admin:
        made = await admin.post(account, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
        assert made.code == 201
        server.create_cluster("second")
        own = Wire(admin.session, admin.base, made.body["status"]["token"])
        assert (await own.get("/clusters/there/api")).code == 200
        for path in _PATHS:
            reported = [
                _reported(await own.get(f"/clusters/{cluster}{path}"), cluster) for cluster in ("second", "never")
            ]
            assert reported[0] == reported[1]
            assert reported[0][0] == 401


async def test_an_administrator_of_all_clusters_sees_missing_ones(server: TestServer) -> None:
    async with connected(server.url, server.token_everywhere, server.tls()) as wire:
        answer = await wire.get("/clusters/never/api")
        assert (answer.code, answer.message) == (404, 'logical cluster "never" not found')


async def test_metrics_are_the_management_clusters(server: TestServer) -> None:
    """They count the requests of all."""
    async with connected(server.url, server.token_everywhere, server.tls()) as wire:
        assert (await wire.get("/metrics")).code == 200
        assert (await wire.get("/clusters/there/metrics")).code == 404


async def test_names_that_are_made_up_do_not_fill_the_metrics(server: TestServer) -> None:
    async with connected(server.url, "", server.tls()) as wire:
        for number in range(50):
            for path in (
                f"/apis/made{number}.up/v1/ups",
                f"/api/v1/made{number}ups",
                f"/api/v1/namespaces/a/pods/b/made{number}ups",
            ):
                assert (await wire.get(path)).code == 403
    async with connected(server.url, server.token, server.tls()) as wire:
        assert (await wire.get("/api/v1/namespaces/default/pods/b/made0ups")).code == 404
        assert (await wire.get("/api/v1/pods")).code == 200
        text = (await wire.get("/metrics")).body.decode()
    assert "made" not in text
    assert 'apiserver_request_total{verb="LIST",group="",resource="pods",subresource="",code="200"}' in text
    assert 'resource="",subresource="",code="403"' in text
