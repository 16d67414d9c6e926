"""A GardenerCluster whose Secret cannot be deleted is released after an hour, and a Leftover names the Secret."""

from __future__ import annotations

import asyncio
import time
from itertools import count

import pytest
from tests.domains.credentials.world import CANARY, CRDS, NAMESPACES, World, world
from tests.domains.killing import Killer, killed_at

from hortus.domains.credentials.debts import RELEASE_AFTER
from hortus.domains.credentials.types import GARDENER_CLUSTERS, Reason
from hortus.engine import read
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.leftovers.types import LEFTOVERS, Leftover
from hortus.kube import Access, Resource
from hortus.kube.access import Credentials, Secret
from hortus.kube.errors import NotFound
from hortus.schema import crd
from hortus.testing.apiserver import TestServer

ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)


async def keeping(here: World) -> str:
    """A GardenerCluster being deleted by an account that may delete no Secret; returns the Secret's namespace."""
    await here.client.apply(CRDS, crd(Leftover), field_manager="tests")
    here.clock.jump(time.time() - here.clock.now())  # the time of the server, which stamps the deletion
    vault = f"{here.namespace}-vault"
    await here.client.create(NAMESPACES, {"metadata": {"name": vault}})
    here.leftovers = True
    async with here.controlled():
        await here.create(here.cluster(secret={"namespace": vault}))
        await here.until_condition("KubeconfigSecretCreated")
    here.access = await bounded(here)
    await here.client.delete(GARDENER_CLUSTERS, "rt-1", here.namespace)
    return vault


async def bounded(here: World) -> Access:
    """An account that may do all but delete Secrets."""
    name, group = here.namespace, "rbac.authorization.k8s.io"
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch", "create", "patch"]}
    await here.client.create(ACCOUNTS, {"metadata": {"name": name, "namespace": name}})
    await here.client.create(ROLES, {"metadata": {"name": name}, "rules": [everything]})
    subject = {"kind": "ServiceAccount", "name": name, "namespace": name}
    binding = {"roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name}, "subjects": [subject]}
    await here.client.create(BINDINGS, {"metadata": {"name": name}, **binding})
    issued = await here.client.create_subresource(ACCOUNTS, name, "token", {"spec": {}}, name)
    known = here.client.access
    return Access(server=known.server, ca=known.ca, credentials=Credentials(token=Secret(issued["status"]["token"])))


async def recorded(here: World) -> list[Leftover]:
    return [read(Leftover, one) for one in (await here.client.list(LEFTOVERS, here.namespace)).items]


async def witness(here: World) -> int:
    """The number of Leftovers at the moment at which the GardenerCluster is gone."""
    async with here.client.watch(GARDENER_CLUSTERS, here.namespace, initial_events=True) as events:
        async for event in events:
            if event.type == "DELETED":
                return len(await recorded(here))
    raise AssertionError("the watch ended")


async def test_a_secret_that_cannot_be_deleted_is_recorded_after_an_hour(here: World) -> None:
    vault = await keeping(here)
    async with here.controlled():
        await here.rest()
        await here.advance(RELEASE_AFTER - 300)
        assert (await recorded(here), here.requests.codes("403") > 0) == ([], True)
        await here.client.get(GARDENER_CLUSTERS, "rt-1", here.namespace)
        await here.advance(900)
        await here.until_gone("GardenerCluster", "rt-1")
        event = await here.until_event(Reason.DELETE_FAILED)
    [found] = await recorded(here)
    assert (found.spec.reason, found.spec.source.name, found.spec.cluster.shoot) == ("SecretNotDeleted", "rt-1", "c-1")
    [item] = found.spec.items
    assert (item.what, item.where, item.actor) == (f"Secret {vault}/kubeconfig-rt-1", "Management", "Operator")
    assert item.remove == f"kubectl delete secrets kubeconfig-rt-1 -n {vault}"
    assert f"{vault}/kubeconfig-rt-1" in event["message"]
    assert CANARY not in str(found)
    assert await here.client.get(SECRETS, "kubeconfig-rt-1", vault)


async def test_a_secret_that_can_be_deleted_in_time_is_no_debt(here: World) -> None:
    admin = here.access
    vault = await keeping(here)
    async with here.controlled():
        await here.rest()
        await here.advance(600)
    here.access = admin
    async with here.controlled():
        await here.until_gone("GardenerCluster", "rt-1")
    assert await recorded(here) == []
    with pytest.raises(NotFound):
        await here.client.get(SECRETS, "kubeconfig-rt-1", vault)


async def test_without_the_kind_a_cluster_waits_for_its_secret(here: World) -> None:
    await keeping(here)
    here.leftovers = False
    async with here.controlled():
        await here.rest()
        await here.advance(2 * RELEASE_AFTER)
        assert await here.client.get(GARDENER_CLUSTERS, "rt-1", here.namespace)
    assert await recorded(here) == []


async def test_killed_at_any_call_there_is_one_record_before_the_cluster_is_gone(server: TestServer) -> None:
    for calls in count():
        async with world(server) as here:
            await keeping(here)
            here.clock.skip(RELEASE_AFTER + 60)
            watching = asyncio.create_task(witness(here))
            killer = Killer("gardener-cluster-controller", here.requests)
            struck = await killed_at(killer, calls, here.controlled(), watching)
            if struck:
                killer.rest()
                async with here.controlled():
                    await watching
            assert await watching == 1, f"killed after {calls} calls"
            assert len(await recorded(here)) == 1
        if not struck:
            break
    assert calls >= 3, "the Secret is read, its deletion tried, the record written, the finalizer removed"
