"""Batches that are halved: each line keeps the sequence number that it has in the spool."""

from __future__ import annotations

import pytest
from tests.domains.garden.audit.sinks.servers import LINES, batch

from hortus.domains.garden.audit.buffer.sinks import SinkBatch


@pytest.mark.parametrize(
    ("whole", "expected"),
    [
        (batch(*LINES), [(7, 8, (7,)), (8, 10, (8, 9))]),
        (batch(*LINES)._replace(end=21, numbers=(7, 19, 20)), [(7, 8, (7,)), (19, 21, (19, 20))]),
    ],
)
def test_halves_keep_the_numbers_of_their_lines(
    whole: SinkBatch, expected: list[tuple[int, int, tuple[int, ...]]]
) -> None:
    halves = list(whole.halves())
    assert [(half.first, half.end, tuple(half.sequence)) for half in halves] == expected
    assert [half.lines for half in halves] == [len(half.split()) for half in halves] == [1, 2]
    assert b"".join(half.payload for half in halves) == whole.payload
