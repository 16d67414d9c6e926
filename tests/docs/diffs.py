"""Applies a unified diff to the files of a folder, so that a test needs no `patch` on the machine.

A hunk is found by its text, wherever it stands: lines may have moved since the diff was made, its context may not have
changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path


def applied(diff: str, root: Path) -> Iterator[tuple[str, str]]:
    """Path and new text of every file that `diff` makes or changes. Raises AssertionError where it does not fit."""
    for part in re.split(r"^diff --git .*\n", diff, flags=re.MULTILINE)[1:]:
        head, *hunks = re.split(r"^@@ .*\n", part, flags=re.MULTILINE)
        target = re.search(r"^\+\+\+ b/(.+)$", head, re.MULTILINE)
        assert target is not None, f"no target in:\n{head}"
        path = target[1]
        text = "" if "\n--- /dev/null\n" in head else (root / path).read_text()
        for hunk in hunks:
            old, new = _sides(hunk)
            assert text.count(old) == 1 or not old, f"{path}: this hunk of the diff does not fit any more:\n{hunk}"
            text = text.replace(old, new) if old else new
        yield path, text


def _sides(hunk: str) -> tuple[str, str]:
    lines = [line for line in hunk.splitlines(keepends=True) if not line.startswith("\\")]
    old = "".join(line[1:] for line in lines if line[0] in " -")
    new = "".join(line[1:] for line in lines if line[0] in " +")
    return old, new
