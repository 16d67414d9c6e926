"""Bytes that are altered, cut, removed, moved or added: none of it unseen, and all other lines still read."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.domains.garden.audit.spool.spools import KEYED, PLAIN, confirm_all, opened, put, read_back, segments

from hortus.domains.garden.audit.buffer.spool import HashChain, SpoolError, SpoolSettings, verify
from hortus.domains.garden.audit.buffer.spool.frames import (
    HEADER_SIZE,
    FrameHeader,
    FrameKind,
    decode_header,
    encode_header,
)


def spooled(folder: Path, count: int = 100, *, clean: bool = True) -> None:
    spool = opened(folder)
    put(spool, *range(count))
    spool.close() if clean else spool._release()


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("original")
    spooled(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def copied(original: dict[str, bytes], folder: Path) -> Path:
    for name, content in original.items():
        (folder / name).write_bytes(content)
    return folder


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_no_altered_byte_is_unseen(
    original: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = copied(original, tmp_path_factory.mktemp("altered"))
    path = data.draw(st.sampled_from(segments(folder)))
    content = bytearray(path.read_bytes())
    # Bytes that were reserved and not written follow the frames of the last segment.
    at = data.draw(st.integers(0, len(bytes(content).rstrip(b"\0")) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    assert verify(folder, PLAIN).findings
    numbers, _, _ = read_back(folder)
    lost = set(range(100)) - set(numbers)
    assert len(lost) <= 1 and numbers == sorted(set(numbers))


@pytest.mark.parametrize("name", ["head.json", "spool.json"])
def test_an_altered_mark_is_seen(original: dict[str, bytes], tmp_path: Path, name: str) -> None:
    copied(original, tmp_path)
    text = (tmp_path / name).read_text()
    (tmp_path / name).write_text(text.replace('"body":{', '"body":{ '))
    if name == "spool.json":
        with pytest.raises(Exception, match="does not check"):
            verify(tmp_path, PLAIN)
    else:
        assert any("does not check" in finding for finding in verify(tmp_path, PLAIN).findings)


def test_a_frame_that_was_removed_is_seen_and_named(original: dict[str, bytes], tmp_path: Path) -> None:
    copied(original, tmp_path)
    path = segments(tmp_path)[0]
    content = path.read_bytes()
    header = decode_header(content)
    assert header is not None
    second = decode_header(content[header.size :])
    assert second is not None
    path.write_bytes(content[: header.size] + content[header.size + second.size :])
    found = verify(tmp_path, PLAIN)
    assert found.findings == [
        "segment 1, offset 230: the chain is broken: the frame does not follow on the one before; "
        "1 lines from sequence 1 on cannot be read"
    ]


def test_a_segment_that_was_removed_is_seen(original: dict[str, bytes], tmp_path: Path) -> None:
    copied(original, tmp_path)
    segments(tmp_path)[1].unlink()
    findings = verify(tmp_path, PLAIN).findings
    assert any("segment 2 is missing" in finding for finding in findings)
    assert any("the chain is broken" in finding for finding in findings)


def test_two_segments_that_changed_places_are_seen(original: dict[str, bytes], tmp_path: Path) -> None:
    copied(original, tmp_path)
    first, second = segments(tmp_path)[:2]
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)
    assert any("go back" in finding for finding in verify(tmp_path, PLAIN).findings)


def test_lines_cut_off_at_the_end_are_seen_at_the_verification_and_at_the_start(
    original: dict[str, bytes], tmp_path: Path
) -> None:
    copied(original, tmp_path)
    last = segments(tmp_path)[-1]
    content = last.read_bytes()
    header = decode_header(content)
    assert header is not None
    last.write_bytes(content[: header.size])
    lost = 100 - header.end
    assert f"the last {lost} lines are missing: head.json is at sequence 100" in verify(tmp_path, PLAIN).findings
    spool = opened(tmp_path)
    put(spool, 500)
    spool.close()
    numbers, _, reports = read_back(tmp_path)
    assert (numbers, reports) == ([*range(header.end), 500], ["CutShort"])


def test_the_last_segment_removed_with_the_head_is_seen_by_a_cursor(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    put(spool, *range(100))
    confirm_all(spool)
    spool.close()
    segments(tmp_path)[-1].unlink()
    (tmp_path / "head.json").unlink()
    findings = verify(tmp_path, PLAIN).findings
    assert any("the cursor of archive is at sequence 100" in finding for finding in findings)
    spool = opened(tmp_path)
    put(spool, 500)
    spool.close()
    assert set(read_back(tmp_path)[2]) == {"CutShort", "Mark"}


def test_segments_and_head_that_were_all_deleted_are_seen(original: dict[str, bytes], tmp_path: Path) -> None:
    copied(original, tmp_path)
    end = verify(tmp_path, PLAIN).end
    for path in (*segments(tmp_path), tmp_path / "head.json", *tmp_path.glob("cursor-*")):
        path.unlink()
    emptied = [
        "no segment is there: all lines may have been removed",
        "head.json is missing: lines at the end, or all of them, may have been removed",
    ]
    assert verify(tmp_path, PLAIN).findings == emptied
    spool = opened(tmp_path)
    spool.close()
    assert read_back(tmp_path)[2] == ["Mark"]
    noted = {end: ""}
    assert verify(tmp_path, PLAIN, expected=noted).findings == [
        f"the spool ends at sequence {spool.committed.sequence}, and was at {end} before"
    ]


@pytest.mark.parametrize("chain", [PLAIN, KEYED], ids=["plain", "keyed"])
def test_a_spool_in_the_place_of_another_is_seen_by_a_place_that_was_noted(tmp_path: Path, chain: HashChain) -> None:
    """The receiver begins a new spool in an empty folder: nothing inside of it shows that."""
    spool = opened(tmp_path, chain=chain)
    put(spool, *range(20))
    spool.close()
    noted = spool.committed
    for path in tmp_path.iterdir():
        path.unlink()
    with pytest.raises(SpoolError, match="holds no spool"):
        verify(tmp_path, chain)
    spool = opened(tmp_path, chain=chain)
    put(spool, *range(10))
    spool.close()
    assert verify(tmp_path, chain).findings == []
    assert verify(tmp_path, chain, expected={noted.sequence: ""}).findings == [
        "the spool ends at sequence 10, and was at 20 before"
    ]
    spool = opened(tmp_path, chain=chain)
    put(spool, *range(10, 20))
    spool.close()
    assert verify(tmp_path, chain, expected={noted.sequence: ""}).findings == []
    [finding] = verify(tmp_path, chain, expected={noted.sequence: noted.digest}).findings
    assert finding.endswith(f"expected is {noted.digest}")


def test_a_place_that_was_noted_may_be_the_begin_of_what_is_kept(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    assert verify(tmp_path, PLAIN, expected={0: spool.committed.digest}).findings == []
    assert len(verify(tmp_path, PLAIN, expected={0: "0" * 64}).findings) == 1
    spool.close()


def test_a_write_that_a_crash_ended_is_set_aside_and_reported(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    put(spool, 0, 1, 2)
    committed = spool.committed
    spool.append((b'{"auditID":"000003"}\n',), 1)
    spool._release()
    path = segments(tmp_path)[-1]
    content = path.read_bytes()
    cut = committed.offset + HEADER_SIZE + 5
    path.write_bytes(content[:cut] + bytes(len(content) - cut))
    found = verify(tmp_path, PLAIN)
    assert (found.findings, len(found.notes)) == ([], 1)
    spool = opened(tmp_path)
    put(spool, 4)
    spool.close()
    assert read_back(tmp_path) == ([0, 1, 2, 4], [], ["TornTail"])
    (aside,) = tmp_path.glob("torn-*.bin")
    assert aside.read_bytes() == content[committed.offset : cut]


def test_an_altered_last_frame_is_no_torn_write(original: dict[str, bytes], tmp_path: Path) -> None:
    copied(original, tmp_path)
    path = segments(tmp_path)[-1]
    content = path.read_bytes()
    at = content.rindex(b"auditID")
    path.write_bytes(content[:at] + b"X" + content[at + 1 :])
    spool = opened(tmp_path)
    put(spool, 500)
    spool.close()
    assert set(read_back(tmp_path)[2]) == {"Altered", "CutShort"}


def test_a_forged_frame_passes_without_a_key_and_not_with_one(tmp_path: Path) -> None:
    """The limit of a chain without a key: all digests can be computed again. A digest that was noted finds it."""
    noted: dict[bool, dict[int, str]] = {}
    for chain in (PLAIN, KEYED):
        folder = tmp_path / str(chain.keyed)
        spool = opened(folder, chain=chain)
        put(spool, 0)
        spool.close()
        noted[chain.keyed] = {1: spool.committed.digest}
        path = segments(folder)[-1]
        header = decode_header(path.read_bytes())
        assert header is not None
        payload = b'{"auditID":"999999"}\n'
        forged, _ = encode_header(
            FrameKind.EVENTS, (payload,), count=1, first=0, time=header.time, previous=header.previous, chain=PLAIN
        )
        path.write_bytes(forged + payload)
    assert verify(tmp_path / "False", PLAIN).findings == []
    assert "expected is" in verify(tmp_path / "False", PLAIN, expected=noted[False]).findings[0]
    assert verify(tmp_path / "True", KEYED).findings
    findings = verify(tmp_path / "True", KEYED, expected=noted[True]).findings
    assert any(finding.startswith("no frame ends before sequence 1") for finding in findings)


def test_a_receiver_may_delete_segments_while_they_are_verified(tmp_path: Path) -> None:
    spool = opened(tmp_path, SpoolSettings(max_bytes=64 * 1024, segment_bytes=8 * 1024, retain_bytes=0))
    put(spool, *range(150))

    class Deleting(HashChain):
        """Has the receiver delete all but the last segment once the first frames were read."""

        reads = 0

        def holds(self, raw: bytes, header: FrameHeader, payload: bytes) -> bool:
            self.reads += 1
            if self.reads == 40:
                confirm_all(spool)
                put(spool, *range(150, 200))
            return super().holds(raw, header, payload)

    found = verify(tmp_path, Deleting())
    assert (found.findings, found.end, found.first > 0) == ([], 200, True)
    spool.close()


def test_rubbish_is_no_spool(tmp_path: Path) -> None:
    opened(tmp_path).close()
    (tmp_path / "0000000000000001.segment").write_bytes(b"HAB1" + b"\xff" * 5000)
    (tmp_path / "cursor-archive.json").write_bytes(b"[]")
    assert len(verify(tmp_path, PLAIN).findings) == 2
    spool = opened(tmp_path)
    put(spool, 7)
    spool.close()
    numbers, _, reports = read_back(tmp_path)
    assert (numbers, sorted(reports)) == ([7], ["Altered", "Mark"])


def test_a_report_is_one_line_of_json(tmp_path: Path) -> None:
    spooled(tmp_path, 1)
    path = segments(tmp_path)[-1]
    path.write_bytes(path.read_bytes()[:100])
    opened(tmp_path).close()
    found = verify(tmp_path, PLAIN)
    (torn, cut) = [msgspec.json.decode(report) for report in found.reports]
    assert (torn["report"]["reason"], cut["report"]["reason"]) == ("TornTail", "CutShort")
    assert (cut["report"]["end"], cut["spool"], cut["apiVersion"]) == (1, found.spool, "audit.hortus.dev/v1alpha1")
