"""A CRD of ClusterProfiles that another program has installed stays as it is, and its gaps are named."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.production.rendering import objects

from hortus.cli.install.applying import Installation
from hortus.cli.install.chart import chart_folder
from hortus.cli.install.checks import check
from hortus.cli.install.removing import Removal
from hortus.cli.install.standards import foreign_definition
from hortus.domains.inventory.types import CLUSTER_PROFILES, ClusterProfile
from hortus.kube import Client, Resource
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object
from hortus.render.helm import Release, load_chart, render_chart
from hortus.schema import crd
from hortus.simulation.garden.workload import CRDS
from hortus.testing.apiserver import running_apiserver

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NAME = "clusterprofiles.multicluster.x-k8s.io"
TITLE = f"customresourcedefinition/{NAME}"
OTHER = "fleet-manager"


@pytest.fixture
async def fresh() -> AsyncIterator[Client]:
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as client:
        for name in ("kcp-system", "fleet"):
            await client.create(NAMESPACES, {"metadata": {"name": name}})
        yield client


def poor() -> Object:
    """The CRD as of a release before the access providers."""
    made = crd(ClusterProfile)
    [version] = made["spec"]["versions"]
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    del status["accessProviders"], status["version"]["properties"]["kubernetes"]
    return made


async def installed(client: Client) -> list[str]:
    said: list[str] = []
    values = {"config": {"inventory": True}}
    await Installation(client, objects("hortus-system", values), said.append, namespace="hortus-system").apply()
    return said


async def test_a_crd_of_another_program_is_left_alone(fresh: Client) -> None:
    await fresh.apply(CRDS, crd(ClusterProfile), field_manager=OTHER)
    before = await fresh.get(CRDS, NAME)
    said = await installed(fresh)
    assert f"{TITLE} left alone: {OTHER} made it, and it serves what Hortus needs" in said
    again = await installed(fresh)
    assert f"{TITLE} left alone: {OTHER} made it, and it serves what Hortus needs" in again
    after = await fresh.get(CRDS, NAME)
    assert (after["spec"], after["metadata"]) == (before["spec"], before["metadata"])
    assert TITLE in {change.title for change in await planned(fresh) if change.verb == "unchanged"}


async def planned(client: Client) -> list[object]:
    return list(
        await Installation(client, objects("hortus-system", {}), lambda _: None, namespace="hortus-system").plan()
    )


async def test_one_that_lacks_fields_is_left_alone_too_and_they_are_named(fresh: Client) -> None:
    await fresh.apply(CRDS, poor(), field_manager=OTHER)
    said = await installed(fresh)
    gaps = "it lacks status.accessProviders, status.version.kubernetes; have it updated there"
    assert f"{TITLE} left alone: {OTHER} made it, and {gaps}" in said
    found = [one async for one in check(fresh, objects("hortus-system", {}), "hortus-system")]
    [warning] = [one for one in found if one.subject == "CRDs" and one.state == "warning"]
    assert warning.text == f"{NAME} left alone: {OTHER} made it, and {gaps}"


async def test_one_of_ours_is_brought_up_to_date(fresh: Client) -> None:
    await installed(fresh)
    await fresh.apply(CRDS, poor(), field_manager="hortus-install", force=True)
    assert f"{TITLE} configured" in await installed(fresh)
    served = (await fresh.get(CRDS, NAME))["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert "accessProviders" in served["status"]["properties"]


async def test_an_uninstallation_deletes_none_of_another_program(fresh: Client) -> None:
    await fresh.apply(CRDS, crd(ClusterProfile), field_manager=OTHER)
    await installed(fresh)
    theirs = {"metadata": {"name": "a", "namespace": "fleet"}, "spec": {"clusterManager": {"name": OTHER}}}
    await fresh.create(
        CLUSTER_PROFILES, {"apiVersion": CLUSTER_PROFILES.api_version, "kind": "ClusterProfile", **theirs}
    )
    removal = Removal(fresh, "hortus-system", crds=True, own_namespace=False)
    plan = await removal.plan()
    assert TITLE not in plan.deleted
    await removal.apply(lambda _: None, timeout=60.0)
    assert await fresh.get(CLUSTER_PROFILES, "a", "fleet")
    with pytest.raises(NotFound):
        await fresh.get(CRDS, "runtimes.infrastructuremanager.kyma-project.io")


def test_only_standards_of_others_are_theirs() -> None:
    entry = {"manager": "helm", "operation": "Update", "fieldsV1": {"f:spec": {}}}
    ours = crd(ClusterProfile)
    ours["metadata"]["managedFields"] = [entry]
    assert str(foreign_definition(ours)).startswith("left alone: helm made it")
    ours["metadata"]["annotations"] = {"meta.helm.sh/release-name": "ocm"}
    assert str(foreign_definition(ours)).startswith("left alone: Helm release ocm made it")
    ours["metadata"]["labels"] = {"app.kubernetes.io/name": "hortus"}
    assert foreign_definition(ours) is None
    other = {"metadata": {"name": "runtimes.infrastructuremanager.kyma-project.io", "managedFields": [entry]}}
    assert foreign_definition(other) is None, "Hortus takes the place of the Go system"


@pytest.mark.parametrize(
    ("annotations", "made"), [({}, False), ({"meta.helm.sh/release-name": "hortus"}, True), (None, True)]
)
def test_helm_makes_no_crd_that_another_program_made(annotations: dict[str, str] | None, made: bool) -> None:
    def lookup(version: str, kind: str, namespace: str, name: str) -> Object:
        known = (version, kind, namespace) == (CRDS.api_version, CRDS.kind, "") and annotations is not None
        return {"metadata": {"name": name, "annotations": annotations}} if known else {}

    chart = load_chart(chart_folder())
    rendered = render_chart(chart, {}, release=Release("hortus", "hortus-system"), lookup=lookup)
    names = {obj["metadata"]["name"] for obj in rendered.objects if obj["kind"] == CRDS.kind}
    assert (NAME in names) is made
    assert "runtimes.infrastructuremanager.kyma-project.io" in names
