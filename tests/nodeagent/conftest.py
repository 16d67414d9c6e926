from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="package")
def quick_disk() -> Iterator[None]:
    """Syncs of thousands of files would wait for the machine's disk; no test here cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield
