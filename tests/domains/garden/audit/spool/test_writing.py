"""Frames go in and come out in order, through rotations and restarts, within the bound."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.domains.garden.audit.spool.spools import (
    BROKEN,
    KEYED,
    NO_SPACE,
    PLAIN,
    SINK,
    FaultyDisk,
    confirm_all,
    line,
    opened,
    put,
    read_back,
    segments,
)

from hortus.domains.garden.audit.buffer.spool import (
    HashChain,
    Spool,
    SpoolError,
    SpoolFull,
    SpoolReader,
    SpoolSettings,
    reading,
    verify,
)
from hortus.domains.garden.audit.buffer.spool.recovery import FIRST_SEGMENT
from hortus.domains.garden.audit.buffer.spool.segments import SegmentFile

DROPPING = SpoolSettings(max_bytes=32 * 1024, segment_bytes=8 * 1024, retain_bytes=0, drop_oldest=True)
LARGE = SpoolSettings(max_bytes=1 << 20, segment_bytes=8 * 1024, retain_bytes=1 << 20)
REFUSING = SpoolSettings(max_bytes=32 * 1024, segment_bytes=8 * 1024, retain_bytes=0)


@pytest.mark.parametrize("chain", [PLAIN, KEYED], ids=["plain", "keyed"])
def test_lines_come_out_as_they_went_in_over_restarts_and_segments(tmp_path: Path, chain: HashChain) -> None:
    for start in (0, 100, 200):
        spool = opened(tmp_path, LARGE, chain=chain)
        put(spool, *range(start, start + 100))
        spool.close()
    assert read_back(tmp_path, chain=chain) == (list(range(300)), [], [])
    assert len(segments(tmp_path)) > 3
    found = verify(tmp_path, chain)
    assert (found.lines, found.end, found.findings, found.notes) == (300, 300, [], [])


def test_a_reader_sees_only_what_is_committed(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    with SpoolReader(tmp_path, PLAIN, spool.begin, live=spool) as reader:
        spool.append((line(0), line(1)), 2)
        assert reader.read(most_bytes=1 << 20) is None
        spool.sync()
        batch = reader.read(most_bytes=1 << 20)
        assert batch is not None
        assert (batch.payloads, batch.first, batch.end, batch.gaps) == ((line(0) + line(1),), 0, 2, ())
        put(spool, 2, 3)
        batch = reader.read(most_bytes=1)
        assert batch is not None and batch.payloads == (line(2),)
        assert reader.position.sequence == 3
    spool.close()


def test_a_read_that_fails_in_the_middle_loses_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = opened(tmp_path, LARGE)
    put(spool, *range(100))
    wanted = [line(number) for number in range(100)]
    with SpoolReader(tmp_path, PLAIN, spool.begin, live=spool) as reader:
        with monkeypatch.context() as patched:
            patched.setattr(reading, "SegmentFile", FailingSegment)
            with pytest.raises(OSError, match="Too many open files"):
                reader.read(most_bytes=1 << 20)
        batch = reader.read(most_bytes=1 << 20)
        assert batch is not None and list(batch.payloads) == wanted
    spool.close()


class FailingSegment(SegmentFile):
    """Opens the first segment and no other."""

    def __init__(self, folder: Path, number: int, chain: HashChain) -> None:
        if number > FIRST_SEGMENT:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        super().__init__(folder, number, chain)


def test_a_cursor_survives_a_restart_and_a_new_sink_begins_with_the_oldest_line(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    put(spool, *range(10))
    confirm_all(spool)
    put(spool, 10)
    spool.close()
    spool = opened(tmp_path, sinks=[SINK, "other"])
    assert (spool.cursor(SINK).sequence, spool.cursor("other").sequence) == (10, 0)
    spool.close()


def test_a_cursor_beyond_the_end_skips_no_line_after_two_restarts(tmp_path: Path) -> None:
    spool = opened(tmp_path, LARGE)
    put(spool, *range(100))
    confirm_all(spool)
    spool.close()
    for path in segments(tmp_path)[1:]:
        path.unlink()
    spool = opened(tmp_path, LARGE)
    put(spool, *range(200, 300))
    end = spool.cursor(SINK)
    spool._release()
    spool = opened(tmp_path, LARGE)
    assert spool.cursor(SINK) == end
    with SpoolReader(tmp_path, PLAIN, spool.cursor(SINK), live=spool) as reader:
        batch = reader.read(most_bytes=1 << 20)
        assert batch is not None and set(batch.payloads) >= {line(number) for number in range(200, 300)}
    spool.close()


def test_confirmed_segments_are_kept_up_to_the_retained_bytes(tmp_path: Path) -> None:
    spool = opened(tmp_path, SpoolSettings(max_bytes=64 * 1024, segment_bytes=8 * 1024, retain_bytes=20 * 1024))
    for number in range(200):
        put(spool, number, size=1000)
        confirm_all(spool)
    numbers, gaps, reports = read_back(tmp_path)
    assert (numbers, gaps, reports) == (list(range(numbers[0], 200)), [], [])
    assert 12 * 1024 <= (len(segments(tmp_path)) - 1) * 8 * 1024 <= 28 * 1024
    assert verify(tmp_path, PLAIN).findings == []
    spool.close()


def test_a_full_spool_refuses_and_accepts_again_once_lines_are_confirmed(tmp_path: Path) -> None:
    spool = opened(tmp_path, REFUSING)
    count = 0
    with pytest.raises(SpoolFull):
        while True:
            put(spool, count, size=1000)
            count += 1
    assert (spool.full, spool.bytes_used() <= REFUSING.max_bytes) == (True, True)
    confirm_all(spool)
    assert not spool.full
    put(spool, count, size=1000)
    assert (spool.full, spool.dropped) == (False, 0)
    numbers, gaps, _ = read_back(tmp_path)
    assert (numbers[-2:], gaps) == ([count - 1, count], [])
    spool.close()


def test_a_full_spool_that_drops_says_in_the_chain_which_lines_are_gone(tmp_path: Path) -> None:
    spool = opened(tmp_path, DROPPING)
    put(spool, *range(100), size=1000)
    assert spool.bytes_used() <= DROPPING.max_bytes
    numbers, gaps, reports = read_back(tmp_path)
    assert (gaps, set(reports), numbers) == ([], {"Dropped"}, list(range(numbers[0], 100)))
    # Reports that were dropped themselves count as lines, too.
    assert spool.dropped >= numbers[0] > 0
    assert verify(tmp_path, PLAIN).findings == []
    spool.close()
    # A reader that was behind continues with the oldest line.
    spool = opened(tmp_path, DROPPING)
    with SpoolReader(tmp_path, PLAIN, spool.cursor(SINK), live=spool) as reader:
        batch = reader.read(most_bytes=1)
        assert batch is not None and batch.gaps == ()
        assert batch.first == spool.begin.sequence
    spool.close()


@pytest.mark.parametrize("operation", ["reserve", "write"])
@pytest.mark.parametrize("partial", [False, True])
def test_a_full_disk_refuses_and_leaves_what_was_acknowledged(tmp_path: Path, operation: str, partial: bool) -> None:
    disk = FaultyDisk()
    spool = opened(tmp_path, disk=disk)
    put(spool, *range(20))
    disk.failing, disk.partial = {operation: NO_SPACE}, partial
    with pytest.raises(SpoolFull, match="No space left on device"):
        put(spool, *range(20, 200))
    kept = spool.committed.sequence
    spool.sync()
    disk.failing = {}
    put(spool, 1000)
    spool.close()
    numbers, gaps, reports = read_back(tmp_path)
    assert (numbers[:kept], numbers[-1], gaps, reports) == (list(range(kept)), 1000, [], [])
    assert verify(tmp_path, PLAIN).findings == []


def test_a_full_disk_is_emptied_by_what_is_confirmed(tmp_path: Path) -> None:
    disk = FaultyDisk()
    spool = opened(tmp_path, disk=disk)
    put(spool, *range(200))
    confirm_all(spool)
    before = len(segments(tmp_path))
    disk.failing = {"replace": NO_SPACE, "reserve": NO_SPACE}
    with pytest.raises(OSError):
        put(spool, *range(200, 400))
    assert len(segments(tmp_path)) < before
    disk.failing = {}
    put(spool, 1000)
    spool.close()


def test_a_failed_sync_takes_back_what_was_not_acknowledged(tmp_path: Path) -> None:
    disk = FaultyDisk()
    spool = opened(tmp_path, disk=disk)
    put(spool, 1, 2)
    disk.failing = {"sync": BROKEN}
    spool.append((line(3),), 1)
    with pytest.raises(OSError):
        spool.sync()
    disk.failing = {}
    put(spool, 4)
    spool.close()
    assert read_back(tmp_path) == ([1, 2, 4], [], [])
    assert verify(tmp_path, PLAIN).findings == []


def test_frames_of_a_process_that_ended_before_its_sync_are_synced_by_the_next(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    spool.append((line(1),), 1)
    spool._release()
    disk = FaultyDisk()
    spool = opened(tmp_path, disk=disk)
    assert (disk.syncs, spool.committed.sequence) == (1, 1)
    spool.close()


def test_a_segment_whose_name_cannot_be_synced_is_made_again(tmp_path: Path) -> None:
    disk = FaultyDisk()
    spool = opened(tmp_path, LARGE, disk=disk)
    disk.failing = {"sync_folder": BROKEN}
    with pytest.raises(OSError, match="Input/output error"):
        put(spool, *range(100))
    kept = spool.committed.sequence
    assert len(segments(tmp_path)) == 1
    disk.failing = {}
    put(spool, 1000)
    spool.close()
    assert read_back(tmp_path)[0] == [*range(kept), 1000]


def test_a_confirmation_counts_while_its_file_cannot_be_written(tmp_path: Path) -> None:
    disk = FaultyDisk()
    spool = opened(tmp_path, disk=disk)
    put(spool, 1)
    disk.failing = {"replace": NO_SPACE}
    with pytest.raises(OSError):
        confirm_all(spool)
    assert spool.cursor(SINK) == spool.committed
    disk.failing = {}
    spool.close()


def test_a_spool_has_one_writer(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    with pytest.raises(SpoolError, match="in use by another process"):
        opened(tmp_path)
    spool.close()
    opened(tmp_path).close()


def test_a_spool_is_not_opened_without_its_key_or_its_identity(tmp_path: Path) -> None:
    opened(tmp_path, chain=KEYED).close()
    with pytest.raises(SpoolError, match="made with a key"):
        opened(tmp_path)
    with pytest.raises(SpoolError, match="does not check"):
        opened(tmp_path, chain=HashChain(b"another key"))
    (tmp_path / "spool.json").unlink()
    with pytest.raises(SpoolError, match="is missing"):
        opened(tmp_path, chain=KEYED)


def test_a_bound_below_two_segments_is_refused() -> None:
    with pytest.raises(ValueError, match="must hold two segments"):
        SpoolSettings(max_bytes=100, segment_bytes=64)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.integers(1, 3000)),
            st.tuples(st.just("append"), st.integers(1, 300)),
            st.tuples(st.just("confirm"), st.just(0)),
            st.tuples(st.just("kill"), st.integers(0, 400)),
        ),
        max_size=40,
    )
)
def test_acknowledged_lines_are_all_there_after_any_kills(steps: list[tuple[str, int]]) -> None:
    """A kill leaves frames that were appended and not committed whole, cut at any byte, or not at all."""
    with TemporaryDirectory() as name:
        folder, acknowledged, appended = Path(name), list[int](), list[int]()
        spool = opened(folder, LARGE)
        for number, (step, argument) in enumerate(steps):
            if step in ("put", "append"):
                spool.append((line(number, argument),), 1)
                appended.append(number)
            if step == "put":
                spool.sync()
                acknowledged += appended
                appended = []
            elif step == "confirm":
                confirm_all(spool)
            elif step == "kill":
                killed(folder, spool, argument)
                spool, appended = opened(folder, LARGE), []
        spool.close()
        numbers, gaps, _ = read_back(folder)
        assert gaps == [] and set(acknowledged) <= set(numbers) and numbers == sorted(set(numbers))
        assert verify(folder, PLAIN).findings == []


def killed(folder: Path, spool: Spool, cut: int) -> None:
    """Ends the writer without a close, and cuts up to `cut` uncommitted bytes off."""
    spool._release()
    end, committed = spool._end, spool.committed
    path = segments(folder)[-1]
    first = committed.offset if committed.segment == end.segment else 0
    kept = max(end.offset - cut, first)
    content = path.read_bytes()
    path.write_bytes(content[:kept] + bytes(len(content) - kept))
