"""Clients of the Shoots of a seed."""

from __future__ import annotations

import pytest

from hortus.domains.garden.extension.shoots import remote_settings
from hortus.kube import LOCAL_NETWORKS, METADATA_NETWORKS
from hortus.kube.dialing import Network


@pytest.mark.parametrize(("allowed", "denied"), [(False, LOCAL_NETWORKS), (True, METADATA_NETWORKS)])
def test_no_flag_lets_the_kubeconfig_of_a_shoot_lead_to_a_metadata_service(
    allowed: bool, denied: tuple[Network, ...]
) -> None:
    values = {
        "cluster-request-timeout": 30.0,
        "cluster-connections": 10,
        "allow-plain-http": False,
        "allow-local-clusters": allowed,
    }
    assert remote_settings(values).deny == denied
