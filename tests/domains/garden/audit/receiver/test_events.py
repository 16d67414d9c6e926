"""Bodies of webhooks become lines that hold the API server's own bytes."""

from __future__ import annotations

import msgspec
import pytest

from hortus.domains.garden.audit.buffer.events import NotEventsError, lines_of

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
