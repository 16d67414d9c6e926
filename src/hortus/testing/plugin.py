"""Fixtures for the tests of controllers; pytest loads this module wherever Hortus is installed.

It imports nothing of Hortus until a test asks for a fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from hortus.testing.apiserver import TestServer
    from hortus.testing.clock import FakeClock
    from hortus.testing.clusters import TestCluster

_numbers = count(1)


@pytest.fixture(scope="session")
def hortus_apiserver() -> Iterator[TestServer]:
    """An API server in memory, for all tests of the session (`hortus.testing.apiserver.TestServer`)."""
    from hortus.testing.apiserver import started_apiserver

    with started_apiserver() as server:
        yield server


@pytest.fixture
def hortus_cluster(hortus_apiserver: TestServer) -> TestCluster:
    """A cluster of that server for one test, empty at its start (`hortus.testing.TestCluster`)."""
    from hortus.testing.clusters import TestCluster

    name = f"test-{next(_numbers)}"
    hortus_apiserver.create_cluster(name)
    return TestCluster(hortus_apiserver.kubeconfig_for(name))


@pytest.fixture
def hortus_clock() -> FakeClock:
    """A clock that stands still until the test moves it (`hortus.testing.FakeClock`)."""
    from hortus.testing.clock import FakeClock

    return FakeClock()
