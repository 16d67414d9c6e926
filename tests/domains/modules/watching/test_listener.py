"""The listener through real sockets: limits, identity and bad input."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from multidict import MultiDict
from prometheus_client import CollectorRegistry
from tests.domains.modules.watching.certificates import DOMAIN, HOUR, RUNTIME, authority, client, nameless
from tests.waiting import until

from hortus.domains.modules.types import Kyma
from hortus.domains.modules.watching.authorities import IssuedPair, issued_client
from hortus.domains.modules.watching.events import WatchedEvent, encode
from hortus.domains.modules.watching.listener import MOST_OF_SENDER, EventListener
from hortus.domains.modules.watching.metrics import WatcherMetrics
from hortus.domains.modules.watching.receiving import EventReceiver
from hortus.engine.health import Address
from hortus.kube.clock import SystemClock
from hortus.kube.objects import ObjectKey
from hortus.kube.secret import Secret
from hortus.kube.tls import client_context, server_context
from hortus.schema import ObjectMeta

PATH = "/v2/lifecycle-manager/event"
EVENT = encode(WatchedEvent("kyma-system", "default", "operator.kyma-project.io", "v1beta2", "Kyma"))


def kyma(name: str, runtime: str = RUNTIME, domain: str = DOMAIN) -> Kyma:
    return Kyma(
        metadata=ObjectMeta(
            name=name,
            namespace="kcp-system",
            labels={"kyma-project.io/runtime-id": runtime},
            annotations={"skr-domain": domain},
        )
    )


class Listening:
    """A listener, the Kymas that it knows, and the events that it took."""

    def __init__(self, *, tls: bool) -> None:
        self.ca = authority()
        self.bundle = self.ca.certificate.decode()
        self.kymas = [kyma("kyma-1")]
        self.taken: list[tuple[ObjectKey, bool]] = []
        self.registry = CollectorRegistry()
        self.metrics = WatcherMetrics(self.registry)
        receiver = EventReceiver(
            kymas=lambda runtime: [
                one for one in self.kymas if one.metadata.labels["kyma-project.io/runtime-id"] == runtime
            ],
            bundle=lambda: self.bundle,
            accept=self._accept,
            metrics=self.metrics,
            clock=SystemClock(),
        )
        context = server_context(
            certificate=self.ca.certificate, key=Secret(self.ca.key.decode()), client_ca=self.ca.certificate
        )
        self.listener = EventListener(
            Address("127.0.0.1", 0), receiver, self.metrics, clock=SystemClock(), tls=context if tls else None
        )

    def _accept(self, kyma: ObjectKey, *, is_probe: bool) -> None:
        self.taken.append((kyma, is_probe))

    async def post(
        self,
        body: Any = EVENT,
        *,
        certificate: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        path: str = PATH,
        method: str = "POST",
    ) -> tuple[int, str]:
        """Sends a request as the gateway does, with the certificate in a header."""
        given = {"X-Forwarded-Client-Cert": forwarded(certificate)} if certificate else {}
        async with (
            aiohttp.ClientSession(max_field_size=100_000) as session,
            session.request(
                method, f"http://127.0.0.1:{self.listener.port}{path}", data=body, headers=headers or given
            ) as answer,
        ):
            return answer.status, await answer.text()

    def count(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, {"server_name": "kcp", **labels}) or 0.0


def forwarded(certificate: bytes) -> str:
    """The header as Envoy writes it."""
    pem = quote(certificate.decode(), safe="")
    return f'By=spiffe://x;Hash=abc;Subject="CN=a,O=\\"b;Cert=no\\"";Cert="{pem}"'


@asynccontextmanager
async def listening(*, tls: bool = False) -> AsyncIterator[Listening]:
    made = Listening(tls=tls)
    await made.listener.start()
    try:
        yield made
    finally:
        await made.listener.stop()


@pytest.fixture
async def world() -> AsyncIterator[Listening]:
    async with listening() as made:
        yield made


async def test_an_event_of_a_known_runtime_is_accepted(world: Listening) -> None:
    """2.5: 200 on success; the Kyma is found by the label runtime-id."""
    assert await world.post(certificate=client(world.ca).certificate) == (200, "")
    assert world.taken == [(ObjectKey("kcp-system", "kyma-1"), False)]
    assert world.count("watcher_listener_requests_total") == 1
    assert world.count("watcher_listener_inflight_requests") == 0


@pytest.mark.parametrize("keys", [("watched", "name"), ("Watched", "Name"), ("WATCHED", "NAME")])
async def test_both_spellings_of_keys_are_accepted(world: Listening, keys: tuple[str, str]) -> None:
    body = f'{{"{keys[0]}": {{"{keys[1]}": "default"}}, "owner": {{"name": "other"}}}}'.encode()
    assert (await world.post(body, certificate=client(world.ca).certificate))[0] == 200
    assert len(world.taken) == 1


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", PATH, 405),
        ("PUT", PATH, 405),
        ("DELETE", PATH, 405),
        ("POST", "/v1/lifecycle-manager/event", 400),
        ("POST", "/lifecycle-manager/event", 404),
        ("POST", "/v2/other/event", 404),
    ],
)
async def test_another_method_or_path_is_refused(world: Listening, method: str, path: str, status: int) -> None:
    """2.5: POST only (405); bad version part 400."""
    found, _ = await world.post(certificate=client(world.ca).certificate, method=method, path=path)
    assert (found, world.taken) == (status, [])


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "Hash=abc",
        'Subject="Cert=x"',
        "Cert=",
        'Cert="not a certificate"',
        "Cert=-----BEGIN%20CERTIFICATE-----AAAA-----END%20CERTIFICATE-----",
        "Cert=" + "A" * (33 * 1024),
    ],
)
async def test_a_missing_or_bad_header_is_401(world: Listening, value: str | None) -> None:
    """2.5: missing or bad header 401; the header is at most 32 KiB."""
    headers = {} if value is None else {"X-Forwarded-Client-Cert": value}
    assert (await world.post(headers=headers))[0] == 401
    assert (world.taken, world.count("watcher_listener_request_errors_total")) == ([], 1)


async def test_of_several_proxies_the_last_one_says_who_sends(world: Listening) -> None:
    """A client may send elements of its own: the gateway's is appended, or is a header of its own."""
    known = forwarded(client(world.ca).certificate)
    foreign = forwarded(client(authority()).certificate)

    async def answered(*headers: str) -> int:
        given = MultiDict(("X-Forwarded-Client-Cert", one) for one in headers)
        return (await world.post(headers=given))[0]

    assert await answered(f"{known},{foreign}") == await answered(known, foreign) == 401
    assert await answered(f"{known},By=spiffe://x;Hash=abc") == 401
    assert world.taken == []
    assert await answered(f"{foreign},{known}") == await answered(foreign, known) == 200
    assert len(world.taken) == 2


async def test_a_header_of_nearly_32_kib_is_read(world: Listening) -> None:
    pem = quote(client(world.ca).certificate.decode(), safe="")
    padding = "A" * (32 * 1024 - len(pem) - 20)
    headers = {"X-Forwarded-Client-Cert": f'Hash={padding};Cert="{pem}"'}
    assert (await world.post(headers=headers))[0] == 200


async def test_a_certificate_without_a_common_name_is_400(world: Listening) -> None:
    """2.5: empty CN 400."""
    assert await world.post(certificate=nameless(world.ca)) == (400, "the certificate has no common name\n")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b'{"watched": 5}', b"\xff"])
async def test_a_body_that_is_no_event_is_500(world: Listening, body: bytes) -> None:
    """2.5: bad JSON 500."""
    assert (await world.post(body, certificate=client(world.ca).certificate))[0] == 500
    assert world.taken == []


async def _pieces() -> AsyncIterator[bytes]:
    for _ in range(5):
        yield b" " * 4096


async def test_a_long_body_is_413_with_a_length_and_without(world: Listening) -> None:
    """2.5: body limit 16384 bytes (413)."""
    certificate = client(world.ca).certificate
    assert (await world.post(EVENT.ljust(16384), certificate=certificate))[0] == 200
    assert (await world.post(EVENT.ljust(16385), certificate=certificate))[0] == 413
    assert (await world.post(_pieces(), certificate=certificate))[0] == 413
    assert world.count("watcher_listener_exceeding_size_limit_requests_total") == 2


async def test_a_certificate_of_another_authority_or_of_the_past_is_401(world: Listening) -> None:
    """A header alone proves nothing: the certificate in it must be signed by the watcher's authority, and valid."""
    foreign = client(authority()).certificate
    past = issued_client(world.ca, RUNTIME, [DOMAIN], now=time.time() - 3 * HOUR, seconds=HOUR).certificate
    future = issued_client(world.ca, RUNTIME, [DOMAIN], now=time.time() + 2 * HOUR, seconds=HOUR).certificate
    for certificate in (foreign, past, future):
        assert (await world.post(certificate=certificate))[0] == 401
    assert world.taken == []


async def test_an_authority_that_leaves_the_bundle_is_not_trusted_any_more(world: Listening) -> None:
    certificate = client(world.ca).certificate
    assert (await world.post(certificate=certificate))[0] == 200
    world.bundle = authority().certificate.decode()
    assert (await world.post(certificate=certificate))[0] == 401


async def test_a_certificate_of_another_clusters_domain_is_403(world: Listening) -> None:
    """A cluster whose certificate names another runtime's id cannot reconcile that runtime."""
    spoofed = client(world.ca, domain="c-2.shoot.example.org").certificate
    status, text = await world.post(certificate=spoofed)
    assert (status, text) == (403, "the certificate does not name the domain of the runtime's cluster\n")
    name = "watcher_listener_failed_verification_requests_total"
    assert (world.taken, world.count(name, request_uri_label=PATH)) == ([], 1)


async def test_an_event_that_names_another_sender_is_403(world: Listening) -> None:
    event = WatchedEvent("kyma-system", "default", "g", "v1", "Kyma")
    certificate = client(world.ca).certificate
    assert (await world.post(encode(event, sender="runtime-2"), certificate=certificate))[0] == 403
    assert (await world.post(encode(event, sender=RUNTIME), certificate=certificate))[0] == 200
    assert len(world.taken) == 1


async def test_an_event_of_an_unknown_runtime_or_of_two_kymas_is_dropped_and_counted(world: Listening) -> None:
    """2.5: exactly one Kyma must match. The agent gets 200: to send it again would change nothing."""
    certificate = client(world.ca).certificate
    world.kymas.append(kyma("kyma-2"))
    assert (await world.post(certificate=certificate))[0] == 200
    world.kymas.clear()
    assert (await world.post(certificate=certificate))[0] == 200
    assert world.taken == []
    for reason in ("unknown", "ambiguous"):
        assert world.registry.get_sample_value("hortus_watcher_unmatched_events_total", {"reason": reason}) == 1


async def test_one_sender_cannot_take_all_places(world: Listening) -> None:
    """A sender whose bodies do not arrive has a few requests in work; others are served."""
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n"
        f"X-Forwarded-Client-Cert: {forwarded(client(world.ca).certificate)}\r\n\r\n"
    ).encode()
    slow = []
    try:
        for _ in range(MOST_OF_SENDER):
            connection = socket.create_connection(("127.0.0.1", world.listener.port))
            slow.append(connection)
            await asyncio.to_thread(connection.sendall, head)
        await until(lambda: world.count("watcher_listener_inflight_requests") == MOST_OF_SENDER)
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"http://127.0.0.1:{world.listener.port}{PATH}",
                data=EVENT,
                headers={"X-Forwarded-Client-Cert": forwarded(client(world.ca).certificate)},
            ) as answer,
        ):
            assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
        world.kymas.append(kyma("kyma-2", "runtime-2", "c-2.example.org"))
        other = client(world.ca, name="runtime-2", domain="c-2.example.org").certificate
        assert (await world.post(certificate=other))[0] == 200
    finally:
        for connection in slow:
            connection.close()


async def _direct(world: Listening, pair: IssuedPair | None) -> int:
    context = client_context(
        ca=world.ca.certificate,
        certificate=pair.certificate if pair else b"",
        key=Secret(pair.key.decode()) if pair else None,
    )
    url = f"https://127.0.0.1:{world.listener.port}{PATH}"
    async with (
        aiohttp.ClientSession() as session,
        # The header proves nothing here: any client could write it.
        session.post(
            url, data=EVENT, ssl=context, headers={"X-Forwarded-Client-Cert": forwarded(client(world.ca).certificate)}
        ) as answer,
    ):
        return answer.status


async def test_without_istio_the_handshake_proves_the_sender() -> None:
    async with listening(tls=True) as world:
        assert await _direct(world, client(world.ca)) == 200
        assert world.taken == [(ObjectKey("kcp-system", "kyma-1"), False)]
        for pair in (None, client(authority())):
            with pytest.raises((aiohttp.ClientError, OSError)):
                await _direct(world, pair)
        assert await _direct(world, client(world.ca, name="runtime-2")) == 200
        assert len(world.taken) == 1
