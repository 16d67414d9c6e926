"""Says once which servers the scenarios are not tried against, and why."""

from __future__ import annotations

import pytest
from tests.apiserver.store.etcdserver import find_etcd
from tests.conformance.api.conftest import EVERY_STORE, REAL, VARIANTS
from tests.oracles.controlplane import find_assets, why_none


def test_scenarios_run_over_etcd() -> None:
    if find_etcd() is None:
        pytest.skip("no etcd here, so no scenario over it: put it on the PATH (Debian: etcd-server) or `make oracles`")
    assert "etcd" in EVERY_STORE.args[1]


@pytest.mark.real_apiserver
def test_scenarios_run_against_the_original() -> None:
    if find_assets() is None:
        pytest.skip(why_none())
    assert REAL in VARIANTS
