"""Fixtures that every topic shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_UPSTREAM = Path(__file__).resolve().parents[2] / "shared" / "upstream"


@pytest.fixture(scope="session")
def upstream() -> Path:
    """The folder with the Go systems' own data. `HORTUS_CONFORMANCE_DATA` names another place."""
    folder = Path(os.environ.get("HORTUS_CONFORMANCE_DATA") or _UPSTREAM)
    if not folder.is_dir():
        pytest.skip(
            f"no conformance data at {folder}: set HORTUS_CONFORMANCE_DATA to compare with the Go systems' files"
        )
    return folder
