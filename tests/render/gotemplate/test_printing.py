"""Claims about printing large values."""

from __future__ import annotations

import time
from collections.abc import Callable

from hortus.render.gotemplate.formatting import sprintf


def test_bytes_are_printed_in_the_time_their_text_takes() -> None:
    data = bytes(range(256)) * 4000
    for verb, baseline in (("%v", "{}"), ("%x", "{:x}"), ("%#v", "0x{:x}"), ("%3d", "{:3d}")):
        taken = _least(lambda verb=verb: sprintf(verb, [data]))
        expected = _least(lambda baseline=baseline: [baseline.format(byte) for byte in data])
        assert taken < expected, verb
        assert len(sprintf(verb, [data])) > len(data)


def _least(work: Callable[[], object]) -> float:
    """The least CPU seconds of several times: the machine does other things as well."""
    found = []
    for _ in range(3):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)
