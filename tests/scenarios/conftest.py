"""The clusters and the installers of scenarios that are about an installation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.oracles.controlplane import find_assets, running_control_plane, why_none
from tests.render.oracles import find_helm, require
from tests.scenarios.installers import Helm, Hortus, Site, Tool

from hortus.kube import Client
from hortus.testing.apiserver import started_apiserver

CONTROLLERS = ("deployment-controller", "replicaset-controller")


@pytest.fixture(params=["ours", pytest.param("original", marks=pytest.mark.real_apiserver)])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    if request.param == "ours":
        with started_apiserver() as server:
            async with Client.from_kubeconfig(server.kubeconfig) as client:
                yield Site(client, server.kubeconfig, counts_revisions=False)
        return
    assets = find_assets()
    if assets is None:
        pytest.skip(why_none())
    with running_control_plane(assets, tmp_path, more_controllers=CONTROLLERS) as real:
        async with Client.from_kubeconfig(real.kubeconfig) as client:
            yield Site(client, real.kubeconfig, counts_revisions=real.has_controllers)


@pytest.fixture(params=["hortus", pytest.param("helm", marks=pytest.mark.oracle)])
def tool(request: pytest.FixtureRequest, site: Site) -> Tool:
    return Hortus(site) if request.param == "hortus" else Helm(site, require(find_helm(), "helm"))
