"""Requests of a namespace that is not trusted reach the clusters that it may access, and no others."""

from __future__ import annotations

from tests.domains.access.world import NAMESPACES, World
from tests.domains.granting import grant

from hortus.domains.access.controller import ROLE_PAUSE
from hortus.domains.access.types import CLUSTER_ACCESSES
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine.deputies import Action
from hortus.kube import Resource

BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")


def accesses(here: World, cluster: str = "tulip") -> Action:
    """The action that is asked for."""
    return Action("access", GARDENER_CLUSTERS.group, GARDENER_CLUSTERS.plural, here.namespace, cluster)


async def test_a_grant_lets_the_requests_of_a_namespace_in_and_takes_with_it_what_it_gave(here: World) -> None:
    here.trusted = here.namespace
    await here.cluster()
    other = f"{here.namespace}-b"
    await here.client.create(NAMESPACES, {"metadata": {"name": other}})
    async with here.controlled():
        await here.ask()
        await here.until_reason("Issued")
        await here.ask(namespace=other, clusterRef={"name": "tulip", "namespace": here.namespace})
        condition = await here.until_reason("NotPermitted", namespace=other)
        assert f"namespace {other} may not access gardenerclusters/tulip of" in condition["message"]
        assert len(await here.objects_inside()) == 3, "of the request in the trusted namespace alone"
        await grant(here.client, other, accesses(here))
        await here.clock.advance(70.0)
        await here.until_reason("Issued", namespace=other)
        await here.until_secret(namespace=other)
        # The grant is taken back, and with it what was granted.
        await here.client.delete(BINDINGS, f"{other}-gardenerclusters-access-tulip", here.namespace)
        await here.clock.advance(ROLE_PAUSE + 60.0)
        await here.until_reason("NotPermitted", namespace=other)
        await here.until_gone("Secret", "access-reader", namespace=other)
        assert len(await here.objects_inside()) == 3
        await here.client.delete(CLUSTER_ACCESSES, "reader", other)
        await here.until_gone("ClusterAccess", "reader", other)


async def test_a_deletion_takes_back_without_a_grant(here: World) -> None:
    await here.cluster()
    async with here.controlled():
        await here.ask()
        await here.until_reason("Issued")
    here.trusted = "none"
    async with here.controlled():
        await here.delete()
        await here.until_gone()
    assert await here.objects_inside() == []


async def test_a_namespace_does_not_learn_which_clusters_another_has(here: World) -> None:
    """One that exists and one that does not get the same answer."""
    here.trusted = "none"
    await here.cluster()
    other = f"{here.namespace}-b"
    await here.client.create(NAMESPACES, {"metadata": {"name": other}})
    answers = []
    async with here.controlled():
        for cluster in ("tulip", "nothing"):
            await here.ask(cluster, namespace=other, clusterRef={"name": cluster, "namespace": here.namespace})
            condition = await here.until_reason("NotPermitted", cluster, other)
            answers.append(condition["message"].replace(cluster, "CLUSTER"))
    assert answers[0] == answers[1]
