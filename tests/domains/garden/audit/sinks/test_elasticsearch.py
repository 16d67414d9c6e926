"""The sink for Elasticsearch: documents that are created once, and answers that are about each of them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest
from aiohttp import web
from tests.domains.garden.audit.receiver.receivers import events, numbers_in, passing, post, receiving, settings_in
from tests.domains.garden.audit.sinks.cluster import PARSING, Cluster
from tests.domains.garden.audit.sinks.servers import LINES, Seen, batch, sink_server
from tests.waiting import PATIENCE, until

from hortus.domains.garden.audit.buffer.making import sink_of
from hortus.domains.garden.audit.buffer.settings import BufferSettingsError, ElasticsearchPart, SinkPart
from hortus.domains.garden.audit.buffer.sinks import SinkError
from hortus.domains.garden.audit.buffer.sinks.calling import SinkCaller
from hortus.domains.garden.audit.buffer.sinks.elasticsearch import ElasticsearchSink
from hortus.testing import FakeClock


def sink(url: str) -> ElasticsearchSink:
    return ElasticsearchSink(url, "audit", SinkCaller(timeout=PATIENCE))


def to(url: str) -> list[dict[str, object]]:
    return [{"name": "remote", "elasticsearch": {"url": url, "index": "audit"}}]


async def failure(answer: Any, *lines: bytes, status: int = 200) -> SinkError:
    """The error of a batch that is answered so."""
    async with sink_server(lambda seen: web.json_response(answer, status=status)) as server:
        one = sink(server.url)
        with pytest.raises(SinkError) as caught:
            await one.send(batch(*lines))
        await one.close()
    return caught.value


async def test_events_are_created_under_their_place_in_the_spool() -> None:
    cluster = Cluster()
    async with sink_server(cluster.answer) as server:
        one = sink(f"{server.url}/es/")
        await one.send(batch(*LINES, b"{ }"))
        await one.close()
    (seen,) = server.seen
    assert unquote(seen.path) == (
        "/es/audit/_bulk?filter_path=errors,items.*.status,items.*.error.type,items.*.error.reason"
    )
    assert (seen.method, seen.headers["content-type"]) == ("POST", "application/x-ndjson")
    times = ("00.250000", "01.000000", "00.500000", "00.500000")
    assert cluster.documents == {
        f"5p00l-{number}": {"@timestamp": f"2026-11-23T10:00:{time}+00:00", **msgspec.json.decode(line)}
        for number, time, line in zip(range(7, 11), times, (*LINES, b"{}"), strict=True)
    }
    assert LINES[0][1:] in seen.body, "the bytes of an event are kept"


async def test_a_batch_that_is_sent_again_makes_no_second_document() -> None:
    cluster = Cluster()
    async with sink_server(cluster.answer) as server:
        one = sink(server.url)
        await one.send(batch())
        await one.send(batch())
        for half in batch().halves():
            await one.send(half)
        await one.close()
    assert (list(cluster.documents), cluster.conflicts) == (["5p00l-7", "5p00l-8", "5p00l-9"], 6)


async def test_lines_behind_a_gap_keep_their_numbers_when_a_batch_is_halved() -> None:
    cluster = Cluster()
    async with sink_server(cluster.answer) as server:
        one, given = sink(server.url), batch()._replace(end=21, numbers=(7, 19, 20))
        await one.send(given)
        for half in given.halves():
            await one.send(half)
        await one.close()
    assert (list(cluster.documents), cluster.conflicts) == (["5p00l-7", "5p00l-19", "5p00l-20"], 3)


BUSY = {"type": "es_rejected_execution_exception", "reason": "rejected execution"}
LIMIT = {"type": "illegal_argument_exception", "reason": "Limit of total fields [1000] has been exceeded"}
ALIAS = {"type": "illegal_argument_exception", "reason": "no write index is defined for alias [audit]"}


@pytest.mark.parametrize(
    ("items", "refused", "problem"),
    [
        (
            [(201, None), (400, PARSING)],
            True,
            "1 of 2 documents: status 400: mapper_parsing_exception: failed to parse",
        ),
        ([(400, LIMIT), (409, None)], True, "Limit of total fields"),
        ([(400, {"type": "document_parsing_exception", "reason": None}), (201, None)], True, "document_parsing"),
        ([(201, None), (429, BUSY)], False, "1 of 2 documents: status 429: es_rejected_execution_exception: rejected"),
        ([(400, PARSING), (503, None)], False, "2 of 2 documents: status 503"),
        ([(400, ALIAS), (400, PARSING)], False, "no write index"),
        ([(400, {"type": "index_closed_exception", "reason": "closed"})] * 2, False, "index_closed_exception"),
        ([(403, {"type": "cluster_block_exception", "reason": "blocked"})] * 2, False, "cluster_block_exception"),
        ([(404, {"type": "index_not_found_exception", "reason": "no such index"})] * 2, False, "no such index"),
    ],
)
async def test_a_batch_is_refused_only_for_documents_that_never_fit(
    items: list[tuple[int, Any]], refused: bool, problem: str
) -> None:
    made = [{"create": {"status": status} | ({"error": error} if error else {})} for status, error in items]
    error = await failure({"errors": True, "items": made}, *LINES[:2])
    assert problem in str(error)
    lines = tuple(index for index, (status, _) in enumerate(items) if status == 400) if refused else ()
    assert (error.refused, error.refused_lines, error.too_large) == (refused, lines, False)
    assert "c4n4ry" not in str(error), "a reason quotes values of the document"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({}, "not one of the bulk API"),
        (["x"], "not one of the bulk API"),
        ({"errors": False, "items": []}, "about 0 documents of 3"),
        ({"errors": False, "items": [{"create": {"status": 201}}] * 2}, "about 2 documents of 3"),
    ],
)
async def test_a_success_that_is_not_of_each_document_confirms_nothing(answer: Any, problem: str) -> None:
    error = await failure(answer)
    assert problem in str(error)
    assert (error.refused, error.too_large) == (False, False)


@pytest.mark.parametrize(
    ("status", "expected"), [(413, (True, False)), (429, (False, False)), (400, (False, True)), (401, (False, False))]
)
async def test_a_status_of_the_whole_request_counts_like_that_of_other_sinks(
    status: int, expected: tuple[bool, bool]
) -> None:
    error = await failure({"error": "x"}, status=status)
    assert (error.too_large, error.refused) == expected


async def test_an_answer_of_many_documents_is_read_whole() -> None:
    """Refusals of 2,000 documents, which are larger than what other sinks read, and come in parts."""
    cluster = Cluster(lambda document: {"status": 400, "error": PARSING | {"note": "x" * 200}})
    async with sink_server(cluster.answer) as server:
        one = sink(server.url)
        with pytest.raises(SinkError, match="2000 of 2000 documents") as caught:
            await one.send(batch(*[b'{"a":1}'] * 2000))
        await one.close()
    assert caught.value.refused


@pytest.mark.parametrize(
    ("files", "header"),
    [
        ({}, None),
        (
            {"username_file": "hortus\n", "password_file": "pä55\n"},
            f"Basic {base64.b64encode('hortus:pä55'.encode()).decode()}",
        ),
        ({"api_key_file": "aWQ6a2V5\n"}, "ApiKey aWQ6a2V5"),
    ],
)
async def test_a_user_and_an_api_key_are_read_from_files(
    tmp_path: Path, files: dict[str, str], header: str | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    async with sink_server(Cluster().answer) as server:
        part = ElasticsearchPart(url=server.url, index="audit", **{name: tmp_path / name for name in files})
        one = sink_of(SinkPart(name="remote", elasticsearch=part), FakeClock())
        await one.send(batch())
        await one.close()
    assert server.seen[0].headers.get("authorization") == header


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"index": ""}, "remote: elasticsearch.index: the name"),
        ({"index": "a", "usernameFile": "u"}, "remote: elasticsearch: usernameFile and passwordFile"),
        ({"index": "a", "passwordFile": "p"}, "remote: elasticsearch: usernameFile and passwordFile"),
        ({"index": "a", "usernameFile": "u", "passwordFile": "p", "apiKeyFile": "k"}, "exclude each other"),
    ],
)
def test_settings_that_cannot_be_used_name_the_field(tmp_path: Path, given: dict[str, str], problem: str) -> None:
    with pytest.raises(BufferSettingsError, match=problem):
        settings_in(tmp_path, sinks=[{"name": "remote", "elasticsearch": {"url": "http://x", **given}}])


async def test_refused_documents_are_set_aside_and_the_others_are_there_once(tmp_path: Path) -> None:
    def refusal(document: Any) -> dict[str, Any] | None:
        return {"status": 400, "error": PARSING} if document.get("auditID") in ("000001", "000003") else None

    cluster = Cluster(refusal)
    async with sink_server(cluster.answer) as server:
        clock = FakeClock()
        async with receiving(settings_in(tmp_path, sinks=to(server.url)), clock=clock) as running:
            assert await post(running, events(0, 1, 2, 3)) == 200
            await passing(clock, lambda: len(cluster.documents) == 4)
    assert numbers_in((tmp_path / "spool" / "refused-remote.ndjson").read_bytes()) == [1, 3]
    found = list(cluster.documents.values())
    assert [one.get("auditID") for one in found] == ["000000", "000002", None, None]
    assert [(one["report"]["reason"], one["report"]["first"]) for one in found[2:]] == [("Refused", 1), ("Refused", 3)]
    assert cluster.conflicts == 4 * 2, "five attempts of the whole batch, and no halves"


async def test_a_receiver_whose_answer_was_lost_leaves_each_event_once(tmp_path: Path) -> None:
    """The cluster keeps the documents and its answer is lost; the receiver ends, and another one goes on."""
    cluster = Cluster()

    def lost(seen: Seen) -> web.Response:
        cluster.answer(seen)
        return web.Response(status=502)

    async with sink_server(lost) as server:
        settings = settings_in(tmp_path, sinks=to(server.url))
        async with receiving(settings, clock=FakeClock()) as running:
            assert await post(running, events(*range(50))) == 200
            await until(lambda: len(cluster.documents) == 50)
        server.usual = cluster.answer
        async with receiving(settings) as running:
            assert await post(running, events(50)) == 200
            await until(lambda: len(cluster.documents) == 51)
    assert [int(one["auditID"]) for one in cluster.documents.values()] == list(range(51))
    assert cluster.conflicts == 50


async def test_events_behind_an_altered_frame_are_there_once(tmp_path: Path) -> None:
    """A batch with a gap in its middle: the lines behind it have the ids of their own sequence numbers."""
    cluster = Cluster()
    async with sink_server(lambda seen: web.Response(status=503)) as server:
        settings = settings_in(tmp_path, sinks=to(server.url))
        async with receiving(settings, clock=FakeClock()) as running:
            for number in range(3):
                assert await post(running, events(number)) == 200
        path = next((tmp_path / "spool").glob("*.segment"))
        path.write_bytes(path.read_bytes().replace(b'"000001"', b'"000009"'))
        server.usual = cluster.answer
        async with receiving(settings):
            await until(lambda: len(cluster.documents) == 3)
    places = {int(id_.rpartition("-")[2]): one.get("auditID") for id_, one in cluster.documents.items()}
    assert places == {0: "000000", 2: "000002", 3: None}
