"""The locks pin what is installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

LOCKS = sorted((Path(__file__).resolve().parents[2] / "locks").glob("*.txt"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_pin_has_a_hash(lock: Path) -> None:
    entries = re.split(r"\n(?=[A-Za-z0-9])", re.sub(r"^\s*#.*\n", "", lock.read_text(), flags=re.MULTILINE).strip())
    assert entries
    loose = [entry for entry in entries if "==" not in entry or "--hash=sha256:" not in entry]
    assert loose == []
