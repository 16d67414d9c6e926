"""History forgets by the bytes that it keeps alive, a little more than it has to at a time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hortus.apiserver.store._history import BucketDrop, Entry, History, HistoryLimits
from hortus.apiserver.store.backend import Commit, StoredRecord
from hortus.testing import FakeClock

BUCKET = "root/core/pods"


class Stage:
    def __init__(self, **limits: float) -> None:
        self.gone: list[int] = []
        self.clock = FakeClock()
        chosen = HistoryLimits(**{name: int(value) for name, value in limits.items()})
        self.history = History(chosen, self.clock, forgotten=self._forgotten)

    def _forgotten(self, entries: Sequence[Entry]) -> None:
        self.gone += [entry.revision for entry in entries]


def change(revision: int, *, replaced: int = 0, final: int = 0) -> Commit:
    """A change that keeps so many bytes of the object before it and of its last state alive."""
    before = StoredRecord(BUCKET, "/a", b"x" * replaced, revision - 1) if replaced else None
    return Commit(revision, None, before, b"x" * final if final else None)


def test_changes_are_forgotten_down_to_seven_eighths_of_their_number() -> None:
    stage = Stage(changes=80)
    for revision in range(1, 81):
        stage.history.add(change(revision))
    assert stage.gone == []
    stage.history.add(change(81))
    assert stage.gone == list(range(1, 12))
    assert stage.history.compacted == 11


@pytest.mark.parametrize("kept", [{"replaced": 10_000}, {"final": 10_000}, {"replaced": 5_000, "final": 5_000}])
def test_bytes_that_a_change_keeps_alive_count(kept: dict[str, int]) -> None:
    stage = Stage(bytes=700_000)
    for revision in range(1, 80):
        stage.history.add(change(revision, **kept))
        if stage.gone:
            break
    assert 60 < revision <= 70, "about ten thousand bytes each"
    left = revision - len(stage.gone)
    assert left * 10_000 <= 612_500
    assert (left + 2) * 10_400 >= 612_500, "and no more than needed"


def test_a_drop_costs_by_the_objects_that_it_names() -> None:
    stage = Stage(bytes=800_000)
    stage.history.add(BucketDrop(1, "root/", range(100)))
    assert stage.gone == []
    stage.history.add(BucketDrop(2, "root/", range(20_000)))
    assert stage.gone == [1, 2]
    assert not stage.history.dropped_since(BUCKET, 1)


def test_what_is_old_is_forgotten_with_the_next_change() -> None:
    stage = Stage(seconds=160)
    stage.history.add(change(1))
    stage.clock.skip(100)
    stage.history.add(change(2))
    stage.clock.skip(100)
    stage.history.add(change(3))
    assert stage.gone == [1]
    assert stage.history.compacted == 1
