"""Bodies of webhooks become lines that hold the API server's own bytes."""

from __future__ import annotations

import msgspec
import pytest

from hortus.domains.garden.audit.buffer.events import NotEventsError, lines_of
from hortus.domains.garden.audit.buffer.sinks.lines import seconds_of
from hortus.domains.garden.audit.buffer.spool.reports import is_report

EVENT = b'{"auditID":"1","note":"\\n \xc3\xa9","big":123456789012345678901234567890,"f":1.0}'


def body(*events: bytes) -> bytes:
    return b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[%b]}' % b",".join(events)


def test_events_keep_their_bytes() -> None:
    assert lines_of(body(EVENT, EVENT)) == (EVENT + b"\n" + EVENT + b"\n", 2)


def test_white_space_that_would_break_a_line_is_taken_out() -> None:
    spread = b'{\n  "auditID": "1",\n  "text": "a b"\n}'
    found = lines_of(body(EVENT, spread))
    assert found.payload.splitlines()[1] == b'{"auditID":"1","text":"a b"}'
    assert (found.lines, found.payload.splitlines()[0]) == (2, EVENT)


def test_an_empty_list_has_no_lines() -> None:
    assert lines_of(body()) == (b"", 0)


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        b"[]",
        b"{}",
        b'{"items":null}',
        b'{"items":[1]}',
        b'{"items":[{]}',
        b'{"items":[{"a":tru}]}',
        body(b'{"a":"\xff"}'),
        body(EVENT)[:-1],
        b'{"kind":"Pod","items":[]}',
        b'{"apiVersion":"v1","items":[]}',
    ],
)
def test_a_body_that_is_no_list_of_events_is_refused(wrong: bytes) -> None:
    with pytest.raises(NotEventsError):
        lines_of(wrong)


def test_numbers_and_texts_are_not_decoded() -> None:
    (line,) = lines_of(body(EVENT)).payload.splitlines()
    assert msgspec.json.decode(line)["note"] == "\n é"
    assert b"123456789012345678901234567890" in line


@pytest.mark.parametrize("depth", [50, 1_500, 9_000])
def test_an_event_that_is_nested_deeply_hides_neither_itself_nor_others(depth: int) -> None:
    """Users who may send an object to the API server decide how deep the event is that holds it."""
    deep = b'{"auditID":"2","text":"]}\\"[{","requestObject":%b}' % (b'{"a":[' * depth + b'"\\\\"' + b"]}" * depth)
    assert lines_of(body(EVENT, deep, EVENT)) == (b"\n".join((EVENT, deep, EVENT, b"")), 3)
    spread = deep.replace(b',"', b',\n"')
    found = lines_of(body(spread, EVENT))
    assert (found.lines, found.payload.count(b"\n")) == (2, 2)
    assert found.payload.startswith(deep)
    assert seconds_of(deep, 7.0) == 7.0
    assert not is_report(deep)
    with pytest.raises(NotEventsError):
        lines_of(body(deep)[:-2] + b"}")
    with pytest.raises(NotEventsError):
        lines_of(b'{"kind":"Pod","items":[%b]}' % deep)
