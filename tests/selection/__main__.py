"""`make costs`: weigh what `--record` has written into `measured.json`.

`python -m tests.selection FOLDER...`: a file that a later folder has replaces the earlier records of that file, so that
a change of a few files needs no run of all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
from tests.selection.rule import ADDED, CHEAP, Measured, Record, is_selected, weighed, write_measured


def main() -> int:
    if sys.argv[1:] == ["enable"]:
        from tests.selection.reach import enable

        enable()
        return 0
    files: dict[str, list[Record]] = {}
    for folder in sys.argv[1:]:
        found: dict[str, list[Record]] = {}
        for record in _read(Path(folder)):
            found.setdefault(record.file, []).append(record)
        files |= found
    measured = weighed(record for records in files.values() for record in records)
    write_measured(measured)
    for line in _summary(measured, sum(len(records) for records in files.values())):
        print(line)
    return 0


def _read(folder: Path) -> Iterator[Record]:
    """Yields the tests of a folder; they share the texts of lines, of which there are tens of millions."""
    decoder = msgspec.json.Decoder(Record)
    for path in sorted(folder.glob("*.jsonl")):
        with path.open("rb") as rows:
            for row in rows:
                record = decoder.decode(row)
                yield msgspec.structs.replace(record, lines=frozenset(map(sys.intern, record.lines)))


def _summary(measured: Measured, tests: int) -> Iterator[str]:
    costly = measured.tests.values()
    left = [cost for cost in costly if not is_selected(cost)]
    everything, away = sum(measured.files.values()), sum(cost.seconds for cost in left)
    first = sum(cost.lines for cost in left)
    yield f"{tests:,} tests cost {everything:,.0f} s; {len(costly):,} of them more than {CHEAP} s each"
    yield f"make test-all alone: {len(left):,} tests, {away:,.0f} s, the first to reach {first:,} lines"
    yield f"make test: {tests - len(left):,} tests, {everything - away:,.0f} s ({ADDED:.0f} lines a second and more)"


if __name__ == "__main__":
    sys.exit(main())
