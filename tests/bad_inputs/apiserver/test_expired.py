"""Credentials that were good a second ago: tokens and certificates end at their time, on open connections too."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.apiserver.wire import Wire, connected

from hortus.apiserver.clusters.issuing import IssuedCertificate, issue
from hortus.testing import FakeClock
from hortus.testing.apiserver import TestServer, started_apiserver

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(now=time.time())


@pytest.fixture
def server(clock: FakeClock) -> Iterator[TestServer]:
    with started_apiserver(clock=clock) as running:
        yield running


def _advance(server: TestServer, clock: FakeClock, seconds: float) -> None:
    async def advance() -> None:
        await clock.advance(seconds)

    server.run(advance())


async def _code(wire: Wire) -> int:
    answer = await wire.post(WHOAMI, {})
    assert answer.code == 201 or answer.body["reason"] == "Unauthorized", answer.body
    return answer.code


async def test_a_token_is_none_from_the_second_in_which_it_ends(server: TestServer, clock: FakeClock) -> None:
    async with connected(server.url, server.token, server.tls()) as admin:
        made = await admin.post(f"{ACCOUNTS}/default/token", {"spec": {"expirationSeconds": 600}})
        token = made.body["status"]["token"]
        async with connected(server.url, token, server.tls()) as robot:
            assert await _code(robot) == 201
            _advance(server, clock, 598)
            assert await _code(robot) == 201
            _advance(server, clock, 3)
            assert await _code(robot) == 401, "a second after its end, on a connection that is open"
        async with connected(server.url, token, server.tls()) as robot:
            assert await _code(robot) == 401
        review = await admin.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}})
        assert not review.body["status"].get("authenticated")


def _with_certificate(server: TestServer, folder: Path, *, seconds: float) -> ssl.SSLContext:
    issued = server.server.clusters.issue("root", username="jane", groups=("system:masters",), seconds=seconds)
    return _presenting(server, issued, folder)


def _presenting(server: TestServer, issued: IssuedCertificate, folder: Path) -> ssl.SSLContext:
    pem = folder / "jane.pem"
    pem.write_bytes(issued.key + issued.certificate)
    tls = server.tls()
    tls.load_cert_chain(pem)
    return tls


async def test_a_certificate_is_none_after_its_end_on_a_connection_that_is_open(
    server: TestServer, clock: FakeClock, tmp_path: Path
) -> None:
    tls = _with_certificate(server, tmp_path, seconds=600)
    async with connected(server.url, "", tls) as jane:
        assert await _code(jane) == 201
        _advance(server, clock, 599)
        assert await _code(jane) == 201
        _advance(server, clock, 3)
        assert await _code(jane) == 401
    async with connected(server.url, "", tls) as jane:
        assert await _code(jane) == 401


async def test_a_certificate_of_our_own_authority_that_ended_a_second_ago_opens_nothing(tmp_path: Path) -> None:
    """The clock is this machine's; a certificate that ends later, made in the same way, is good."""
    with started_apiserver() as server:
        keys = server.server.clusters.keys("root")
        assert keys is not None
        for seconds, code in ((600.0, 401), (1200.0, 201)):
            issued = issue(keys, username="jane", groups=("system:masters",), seconds=seconds, now=time.time() - 601)
            async with connected(server.url, "", _presenting(server, issued, tmp_path)) as jane:
                assert await _code(jane) == code
