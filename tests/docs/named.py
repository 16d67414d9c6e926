"""The tests that pages may name."""

from __future__ import annotations

import re
from functools import cache

from tests.docs.consoles import ROOT


@cache
def known_tests() -> frozenset[str]:
    """Returns the names of all test functions and of their files."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    functions = re.findall(r"def (test_\w+)", "\n".join(file.read_text() for file in files))
    return frozenset(functions) | {file.name for file in files}
