"""Releases as folders, and the libraries that read them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.domains.stacks.releasing import write_release


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """A folder with two releases of one stack."""
    folder = tmp_path / "published"
    for tag in ("docker-ferrol-1-27-v1", "docker-ferrol-1-27-v2"):
        write_release(folder, tag)
    return folder


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a release into the folder of the fixture `published`."""
    return lambda tag, **files: write_release(tmp_path / "published", tag, **files)
