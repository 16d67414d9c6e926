"""The benchmark of remote clusters in small: two hundred of them, a tenth of which stop to answer."""

from __future__ import annotations

import pytest
from tests.benchmarks import remote


@pytest.mark.soak
def test_two_hundred_clusters_are_watched_within_bounds_and_hanging_ones_hold_up_nobody() -> None:
    (figures,) = remote.run(clusters=200, seconds=3.0).values()
    assert 200 <= figures["sockets"] <= 400, "a watch each, and at most the connection of the list before it"
    assert figures["kib_per_watched_cluster"] < 250
    assert figures["reconciles_well"] > 100
    assert figures["reconciles_hanging"] > 100, "the well ones go on"
    assert figures["p50_ms_hanging"] < 5 * figures["p50_ms_well"] + 250
