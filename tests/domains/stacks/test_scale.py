"""The benchmark of cluster stacks on a small fleet: it runs, and nothing is done that need not be."""

from __future__ import annotations

import pytest
from tests.benchmarks import stacks
from tests.benchmarks.clusterstacks.catalog import CHARTS, OBJECTS

RELEASES, CLUSTERS = 2, 4


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, float]]:
    words = [str(RELEASES), str(CLUSTERS), "--rest", "1", "--pause", "1", "--patience", "250"]
    return stacks.run(words)


def test_each_phase_has_its_figures(found: dict[str, dict[str, float]]) -> None:
    phases = {"catalogue", "install", "rest", "upgrade", "minor", "restart", "cluster-stack-operator"}
    assert set(found) == phases
    assert found["install"]["created_to_installed_p50_s"] > 0
    assert found["upgrade"]["approved_to_installed_p50_s"] > 0
    assert found["minor"]["offered_to_installed_p50_s"] > 0


def test_nothing_is_written_rendered_or_asked_for_at_rest(found: dict[str, dict[str, float]]) -> None:
    rest = found["rest"]
    assert {name: rest[name] for name in ("writes", "renders_rendered", "renders_reused", "host_list")} == {
        "writes": 0,
        "renders_rendered": 0,
        "renders_reused": 0,
        "host_list": 0,
    }


def test_an_upgrade_renders_and_writes_what_has_changed(found: dict[str, dict[str, float]]) -> None:
    """The class of the new release once, and for each cluster the one chart that differs."""
    upgrade = found["upgrade"]
    assert upgrade["renders_rendered"] == 1 + CLUSTERS
    assert upgrade["sent_clusters_PATCH_per_cluster"] == 1
    assert upgrade["host_release"] == 1
    operator = found["cluster-stack-operator"]
    assert upgrade["renders_rendered"] / CLUSTERS < operator["renders_of_an_upgrade_per_cluster"]
    assert operator["writes_of_an_upgrade_per_cluster"] == len(CHARTS) * OBJECTS


def test_an_upgrade_of_kubernetes_writes_the_chart_that_differs(found: dict[str, dict[str, float]]) -> None:
    minor = found["minor"]
    assert minor["sent_clusters_PATCH_per_cluster"] == 1
    assert (minor["host_release"], minor["host_list"] <= 2) == (1, True)


def test_a_restart_downloads_nothing_and_applies_nothing(found: dict[str, dict[str, float]]) -> None:
    restart = found["restart"]
    assert restart["host_release"] == restart["host_download"] == 0
    assert "sent_clusters_PATCH" not in restart
    assert restart["renders_rendered"] == RELEASES + 1, "and the release for the next minor"
