"""The comparison of a page with what its commands print."""

from __future__ import annotations

import pytest
from tests.docs.consoles import agree


@pytest.mark.parametrize("printed", ["web   Ready   2m45s", "web   Ready   8s", "web   Ready   1h2m"])
def test_ages_may_differ_in_their_units(printed: str) -> None:
    assert agree("web  Ready  9s", printed)


@pytest.mark.parametrize("printed", ["web   Error   9s", "web   Ready", "web   Ready   9x"])
def test_words_may_not_differ(printed: str) -> None:
    assert not agree("web  Ready  9s", printed)
