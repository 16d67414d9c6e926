"""Sources of a namespace that is not trusted add nothing to the profile of a cluster that others named."""

from __future__ import annotations

import pytest
from tests.domains.inventory.world import HOME, InventoryWorld, condition, is_joined

from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.domains.credentials.types import Label as KymaLabel
from hortus.domains.inventory.claims import checksum
from hortus.domains.inventory.types import CLUSTER_PROFILES, SourceLabel
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube import Resource
from hortus.kube.objects import Object

FLEET, TEAM, OTHER = "fleet", "team", "other-team"
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
EVIL = {"kyma-project.io/platform-region": "evil", "kyma-project.io/broker-plan-name": "evil"}


@pytest.fixture
async def shared(here: InventoryWorld) -> InventoryWorld:
    """Only the operator's namespace is trusted; two teams have one each."""
    here.trusted = HOME
    for name in (TEAM, OTHER):
        await here.client.create(NAMESPACES, {"metadata": {"name": name}})
    return here


async def _names_secret(here: InventoryWorld, namespace: str, name: str, secret: str, of: str = HOME) -> None:
    """A GardenerCluster of a team that names a Secret."""
    labels = {KymaLabel.RUNTIME_ID: name, **EVIL}
    place = {"name": secret, "namespace": of, "key": "config"}
    await here.create(
        GARDENER_CLUSTERS,
        {
            "metadata": {"name": f"{name}-{secret}", "namespace": namespace, "labels": labels},
            "spec": {"shoot": {"name": name}, "kubeconfig": {"secret": place}},
        },
    )


def _suffixed(namespace: str, kind: str, name: str, choice: str) -> str:
    return f"{choice}-{checksum(f'{kind}/{namespace}/{name}')}"


def _identity(profile: Object) -> Object:
    metadata = profile["metadata"]
    return {
        "uid": metadata["uid"],
        "labels": metadata["labels"],
        "sources": metadata["annotations"],
        "access": profile["status"]["accessProviders"],
        "name": profile["spec"].get("displayName"),
    }


async def test_a_cluster_that_names_the_secret_of_another_adds_nothing_to_it(shared: InventoryWorld) -> None:
    """Labels decide which agents, stages and policies a cluster falls under."""
    for name in ("prod-a", "prod-b"):
        await shared.workload(name)
        await shared.secret(f"kubeconfig-{name}", name)
    async with shared.controllers() as manager:
        before = {name: _identity(await shared.profile(name, is_joined)) for name in ("prod-a", "prod-b")}
        for name in ("prod-a", "prod-b"):
            await _names_secret(shared, TEAM, "evil", f"kubeconfig-{name}")
        found = await shared.profile(
            _suffixed(TEAM, "GardenerCluster", "evil-kubeconfig-prod-a", "evil"),
            lambda one: condition(one, "Joined")[0],
        )
        await shared.at_rest(manager)
        for name in ("prod-a", "prod-b"):
            assert _identity(await shared.profile(name)) == before[name]
    assert "accessProviders" not in found["status"]


async def test_a_way_of_ones_own_into_the_cluster_of_another_is_a_profile_of_its_own(shared: InventoryWorld) -> None:
    await shared.workload("prod-a")
    await shared.secret("kubeconfig-prod-a", "prod-a")
    async with shared.controllers() as manager:
        before = _identity(await shared.profile("prod-a", is_joined))
        metadata = {"name": "weak", "namespace": TEAM, "labels": {SourceLabel.KUBECONFIG: "true", **EVIL}}
        await shared.client.create(SECRETS, {"metadata": metadata, "data": {"config": shared.kubeconfig("prod-a")}})
        name = _suffixed(TEAM, "Secret", "weak", "weak")
        await shared.profile(name, is_joined)
        await shared.at_rest(manager)
        assert _identity(await shared.profile("prod-a")) == before
        await shared.client.delete(SECRETS, "weak", TEAM)
        await shared.no_profile(name)
        assert _identity(await shared.profile("prod-a")) == before


async def test_teams_add_nothing_to_the_clusters_of_each_other(shared: InventoryWorld) -> None:
    await shared.workload("theirs")
    labels = {SourceLabel.KUBECONFIG: "true"}
    secret = {"metadata": {"name": "kubeconfig-theirs", "namespace": OTHER, "labels": labels}}
    await shared.client.create(SECRETS, {**secret, "data": {"config": shared.kubeconfig("theirs")}})
    name = _suffixed(OTHER, "Secret", "kubeconfig-theirs", "theirs")
    async with shared.controllers() as manager:
        before = _identity(await shared.profile(name, is_joined))
        await _names_secret(shared, TEAM, "evil", "kubeconfig-theirs", of=OTHER)
        await shared.profile(_suffixed(TEAM, "GardenerCluster", "evil-kubeconfig-theirs", "evil"))
        await shared.at_rest(manager)
        assert _identity(await shared.profile(name)) == before


async def test_a_name_is_not_taken_by_a_team_before_the_operator_wants_it(shared: InventoryWorld) -> None:
    await shared.workload("prod-b")
    await shared.workload("own")
    labels = {SourceLabel.KUBECONFIG: "true", SourceLabel.NAME: "prod-b"}
    secret = {"metadata": {"name": "squatter", "namespace": TEAM, "labels": labels}}
    await shared.client.create(SECRETS, {**secret, "data": {"config": shared.kubeconfig("own")}})
    async with shared.controllers():
        await shared.profile(_suffixed(TEAM, "Secret", "squatter", "prod-b"), is_joined)
        await shared.secret("kubeconfig-prod-b", "prod-b")
        await shared.profile("prod-b", is_joined)
        names = [one["metadata"]["name"] for one in (await shared.client.list(CLUSTER_PROFILES, FLEET)).items]
    assert sorted(names) == ["prod-b", _suffixed(TEAM, "Secret", "squatter", "prod-b")]
