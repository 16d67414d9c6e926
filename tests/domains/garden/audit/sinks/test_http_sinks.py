"""Sinks over HTTP: the requests that they send, and the answers that are no confirmation."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import socket
from datetime import UTC, datetime

import msgspec
import pytest
from aiohttp import web
from tests.domains.garden.audit.sinks.servers import LINES, Seen, batch, sink_server
from tests.waiting import PATIENCE, until

from hortus.domains.garden.audit.buffer.sinks import AuditSink, SinkError
from hortus.domains.garden.audit.buffer.sinks.calling import SinkCaller
from hortus.domains.garden.audit.buffer.sinks.http import HttpSink
from hortus.domains.garden.audit.buffer.sinks.loki import LokiSink
from hortus.domains.garden.audit.buffer.sinks.s3 import S3Sink
from hortus.domains.garden.audit.buffer.sinks.signing import AwsCredentials, signed_headers
from hortus.domains.garden.audit.buffer.sinks.splunk import SplunkSink
from hortus.kube.secret import Secret
from hortus.testing import FakeClock

NOW = 1_795_428_000.0
"""2026-11-23T10:00:00Z"""


def ok(seen: Seen) -> web.Response:
    return web.Response()


async def refused(sink: AuditSink) -> SinkError:
    """The error that the sink raises for a batch."""
    with pytest.raises(SinkError) as caught:
        await sink.send(batch())
    await sink.close()
    return caught.value


async def test_http_sends_lines_with_their_place_in_the_chain() -> None:
    async with sink_server(ok) as server:
        sink = HttpSink(f"{server.url}/in", SinkCaller(timeout=PATIENCE), headers={"X-Token": Secret("t0ken")})
        await sink.send(batch())
        await sink.close()
    (seen,) = server.seen
    digest = f"sha-256=:{base64.b64encode(hashlib.sha256(seen.body).digest()).decode()}:"
    wanted = {
        "content-type": "application/x-ndjson",
        "content-digest": digest,
        "x-token": "t0ken",
        "hortus-audit-spool": "5p00l",
        "hortus-audit-sequence": "7-10",
        "hortus-audit-digest": "d1935t",
    }
    assert (seen.path, seen.body.splitlines()) == ("/in", list(LINES))
    assert wanted.items() <= seen.headers.items()


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (429, {"Retry-After": "7"}, (7.0, False, False)),
        (503, {}, (0.0, False, False)),
        (413, {}, (0.0, True, False)),
        (400, {}, (0.0, False, True)),
        (401, {}, (0.0, False, False)),
        (404, {}, (0.0, False, False)),
        (405, {}, (0.0, False, False)),
        (301, {"Location": "/elsewhere"}, (0.0, False, False)),
    ],
)
async def test_a_status_says_what_to_do_next(
    status: int, headers: dict[str, str], expected: tuple[float, bool, bool]
) -> None:
    async with sink_server(lambda seen: web.Response(status=status, headers=headers, text="no")) as server:
        error = await refused(HttpSink(f"{server.url}/in?token=secret", SinkCaller(timeout=PATIENCE)))
    assert f"status {status}: no" in str(error)
    assert (error.retry_after, error.too_large, error.refused) == expected
    assert (len(server.seen), "secret" in str(error)) == (1, False)


async def test_a_receipt_of_other_bytes_and_a_missing_one_confirm_nothing() -> None:
    async with sink_server(ok) as server:
        server.answers = [web.Response(headers={"Hortus-Audit-Receipt": "sha-256=:AAAA:"}), web.Response()]
        sink = HttpSink(server.url, SinkCaller(timeout=PATIENCE), require_receipt=True)
        assert "a receipt of other bytes" in str(await refused(sink))
        assert "no receipt" in str(await refused(sink))
        server.usual = lambda seen: web.Response(headers={"Hortus-Audit-Receipt": seen.headers["content-digest"]})
        await sink.send(batch())
        await sink.close()
    assert [seen.body.splitlines() for seen in server.seen] == [list(LINES)] * 3


async def test_a_sink_that_is_away_is_an_error() -> None:
    async with sink_server(ok) as server:
        address = server.url
    error = await refused(HttpSink(address, SinkCaller(timeout=PATIENCE)))
    assert "Cannot connect" in str(error)
    assert (error.too_large, error.refused) == (False, False)


async def test_a_sink_that_is_slow_is_an_error() -> None:
    """The kernel takes the connection, and no program answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        error = await refused(HttpSink(f"{address}/in", SinkCaller(timeout=0.1)))
    assert str(error) in (
        f"{address}/in: no answer within 0.1 s",
        f"{address}/in: Connection timeout to host {address}/in",
    )
    assert (error.too_large, error.refused) == (False, False)


async def test_splunk_gets_envelopes_around_the_bytes_of_events() -> None:
    async with sink_server(lambda seen: web.json_response({"text": "Success", "code": 0})) as server:
        sink = SplunkSink(
            server.url,
            Secret("t0ken"),
            SinkCaller(timeout=PATIENCE),
            clock=FakeClock(),
            index="audit",
            host="shoot--a--b",
            fields={"team": "x"},
        )
        await sink.send(batch())
        await sink.close()
    (seen,) = server.seen
    rest = b'"host":"shoot--a--b","source":"kube-apiserver","sourcetype":"_json","index":"audit","fields":{"team":"x"}'
    assert seen.path == "/services/collector/event"
    assert seen.headers["authorization"] == "Splunk t0ken"
    assert seen.body == b"".join(
        b'{"time":%b,%b,"event":%b}' % (time, rest, line)
        for time, line in zip((b"1795428000.250000", b"1795428001.000000", b"1795428000.500000"), LINES, strict=True)
    )


@pytest.mark.parametrize(
    ("answer", "problem"),
    [('{"text":"Server is busy","code":9}', "code 9: Server is busy"), ("<html>", "not one of an event collector")],
)
async def test_a_success_that_is_not_splunks_confirms_nothing(answer: str, problem: str) -> None:
    async with sink_server(lambda seen: web.Response(text=answer)) as server:
        error = await refused(SplunkSink(server.url, Secret("t"), SinkCaller(timeout=PATIENCE), clock=FakeClock()))
    assert problem in str(error)


async def test_splunk_confirms_when_events_are_indexed() -> None:
    acks = [False, False, True]

    def answer(seen: Seen) -> web.Response:
        if seen.path.endswith("/event"):
            return web.json_response({"text": "Success", "code": 0, "ackId": 4})
        assert msgspec.json.decode(seen.body) == {"acks": [4]}
        return web.json_response({"acks": {"4": acks.pop(0)}})

    async with sink_server(answer) as server:
        clock = FakeClock()
        sink = SplunkSink(server.url, Secret("t"), SinkCaller(timeout=PATIENCE), clock=clock, acknowledged=True)
        sending = asyncio.create_task(sink.send(batch()))
        while not sending.done():
            await until(lambda: clock.sleepers or sending.done())
            await clock.advance(1.0)
        await sending
        await sink.close()
    assert (acks, len({seen.headers["x-splunk-request-channel"] for seen in server.seen})) == ([], 1)


async def test_loki_gets_one_stream_with_times_in_order() -> None:
    async with sink_server(lambda seen: web.Response(status=204)) as server:
        sink = LokiSink(server.url, SinkCaller(timeout=PATIENCE), labels={"job": "audit"}, tenant="garden")
        await sink.send(batch())
        await sink.close()
    (seen,) = server.seen
    assert (seen.path, seen.headers["x-scope-orgid"]) == ("/loki/api/v1/push", "garden")
    values = [[str(1_795_428_000_500_000_000 + n), line.decode()] for n, line in enumerate(LINES)]
    assert msgspec.json.decode(seen.body) == {"streams": [{"stream": {"job": "audit"}, "values": values}]}


async def test_a_success_that_is_not_lokis_confirms_nothing() -> None:
    async with sink_server(ok) as server:
        error = await refused(LokiSink(server.url, SinkCaller(timeout=PATIENCE), labels={}))
    assert "status 200" in str(error)


def s3(url: str, *, compressed: bool = False) -> S3Sink:
    return S3Sink(
        url,
        "my-audit-logs",
        AwsCredentials("AKIA", Secret("s3cret")),
        SinkCaller(timeout=PATIENCE),
        clock=FakeClock(now=NOW),
        region="eu-west-1",
        compressed=compressed,
    )


def stored(seen: Seen) -> web.Response:
    return web.Response(headers={"ETag": f'"{hashlib.md5(seen.body).hexdigest()}"'})


async def test_s3_gets_an_object_whose_name_follows_from_its_lines() -> None:
    async with sink_server(stored) as server:
        sink = s3(server.url, compressed=True)
        await sink.send(batch())
        await sink.send(batch())
        await sink.send(batch(LINES[0], first=10))
        await sink.close()
    one, same, other = server.seen
    assert one.path.startswith("/my-audit-logs/audit-logs/2026/11/23/10/00/00/")
    assert (one.path == same.path, one.path == other.path, one.body == same.body) == (True, False, True)
    assert gzip.decompress(one.body).splitlines() == list(LINES)
    assert one.headers["x-amz-meta-hortus-sequence"] == "7-10"
    assert one.headers["x-amz-content-sha256"] == hashlib.sha256(one.body).hexdigest()
    assert one.headers["authorization"].startswith(
        "AWS4-HMAC-SHA256 Credential=AKIA/20261123/eu-west-1/s3/aws4_request"
    )


@pytest.mark.parametrize(
    ("headers", "problem"), [({}, "has no ETag"), ({"ETag": '"' + "0" * 32 + '"'}, "the ETag is that of other bytes")]
)
async def test_an_answer_that_is_no_object_stores_confirms_nothing(headers: dict[str, str], problem: str) -> None:
    async with sink_server(lambda seen: web.Response(headers=headers)) as server:
        error = await refused(s3(server.url))
    assert problem in str(error)


async def test_the_etag_of_an_encrypted_object_is_not_compared() -> None:
    headers = {"ETag": '"' + "0" * 32 + '"', "x-amz-server-side-encryption": "aws:kms"}
    async with sink_server(lambda seen: web.Response(headers=headers)) as server:
        sink = s3(server.url)
        await sink.send(batch())
        await sink.close()
    assert len(server.seen) == 1


def test_a_signature_is_that_of_the_published_example() -> None:
    """The PUT example of https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html."""
    headers = signed_headers(
        "PUT",
        "https://examplebucket.s3.amazonaws.com/test%24file.text",
        {"Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
        b"Welcome to Amazon S3.",
        AwsCredentials("AKIAIOSFODNN7EXAMPLE", Secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")),
        region="us-east-1",
        now=datetime(2013, 5, 24, tzinfo=UTC),
    )
    assert headers["authorization"].endswith(
        "Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
    )
    assert headers["x-amz-date"] == "20130524T000000Z"
