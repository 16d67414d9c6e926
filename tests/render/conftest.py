"""The real tools, as fixtures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.render.oracles import GoTemplates, find_gotemplate, find_helm, require


@pytest.fixture(scope="session")
def helm() -> str:
    """The path of a real helm."""
    return require(find_helm(), "helm")


@pytest.fixture(scope="session")
def go_templates() -> Iterator[GoTemplates]:
    """Go's own template libraries."""
    program = GoTemplates(require(find_gotemplate(), "Go oracle"))
    yield program
    program.close()
