"""Charts are rendered in the process of the test: a worker process takes longer to start than most tests take."""

from __future__ import annotations

import pytest
from tests.domains.stacks.addons.releases import DirectRenderer

from hortus.domains.garden.gardenlets import comparing, composition


@pytest.fixture
def render_workers() -> None:
    """Charts are rendered in worker processes after all, as the operator does it."""


@pytest.fixture(autouse=True)
def rendering(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "render_workers" not in request.fixturenames:
        for module in (comparing, composition):
            monkeypatch.setattr(module, "BuiltinRenderer", DirectRenderer)
