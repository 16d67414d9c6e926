"""Claims about printing large values."""

from __future__ import annotations

import time

from hortus.render.gotemplate.formatting import sprintf


def test_bytes_are_printed_in_the_time_their_text_takes() -> None:
    data = bytes(range(256)) * 4000
    for verb, baseline in (("%v", "{}"), ("%x", "{:x}"), ("%#v", "0x{:x}"), ("%3d", "{:3d}")):
        began = time.process_time()
        found = sprintf(verb, [data])
        taken = time.process_time() - began
        began = time.process_time()
        expected = [baseline.format(byte) for byte in data]
        assert taken < time.process_time() - began, verb
        assert len(found) > len(expected)
