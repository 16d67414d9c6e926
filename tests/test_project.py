"""Claims about the project as a whole."""

from __future__ import annotations

import hortus


def test_the_package_tells_its_version() -> None:
    assert hortus.__version__.count(".") == 2
