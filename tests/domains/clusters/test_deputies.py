"""A Runtime of a namespace that is not trusted does what the deputy of its namespace may, and no more."""

from __future__ import annotations

import pytest
from tests.domains.clusters.test_claims import foreign
from tests.domains.clusters.test_inside import keep, look_inside, pooled
from tests.domains.clusters.world import NAMESPACES, World, condition
from tests.domains.granting import grant_verbs, take_back

from hortus.domains.clusters.debts import RELEASE_AFTER
from hortus.domains.clusters.garden import SHOOTS
from hortus.domains.clusters.inside import NotPermitted
from hortus.domains.clusters.shoot import authentication_name
from hortus.domains.clusters.types import FINALIZER, RUNTIMES
from hortus.engine import read
from hortus.engine.deputies import deputy_of
from hortus.engine.leftovers.types import LEFTOVERS, Leftover
from hortus.kube import Resource, yaml
from hortus.kube.errors import NotFound
from hortus.kube.objects import parse_time
from hortus.schema import crd

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
REFUSED = "NotPermitted"


async def allow(here: World, *verbs: str, resource: str = "shoots") -> str:
    group = "" if resource in ("configmaps", "secrets") else "core.gardener.cloud"
    return await grant_verbs(here.client, here.namespace, group, resource, *verbs)


async def allow_growth(here: World) -> None:
    await allow(here, "create", "patch")
    await allow(here, "get", resource="secretbindings")
    await allow(here, "patch", resource="configmaps")


async def test_no_shoot_is_created_that_the_deputy_may_not_create(here: World) -> None:
    here.trusted = "kcp-system"
    async with here.controlled():
        await here.create()
        shown = await here.until_reason(REFUSED)
        assert shown["message"] == (
            f"namespace {here.namespace} may not create shoots of core.gardener.cloud in namespace "
            f"{here.garden_namespace}: its objects act with the permissions of ServiceAccount hortus-deputy in it; "
            f"grant them to {deputy_of(here.namespace)}, or add the namespace to --trusted-namespaces"
        )
        made = await here.client.get(RUNTIMES, "rt-1", here.namespace)
        assert (made["status"]["state"], made["metadata"].get("finalizers")) == ("Failed", None)
        await allow(here, "create", "patch")
        await here.advance(61)
        await here.until_said("may not get secretbindings/")
        await allow(here, "get", resource="secretbindings")
        await here.advance(61)
        await here.until_said(f"may not patch configmaps/{authentication_name('c-1')} in namespace")
        assert here.garden_requests.writes == 0
        await allow(here, "patch", resource="configmaps")
        await here.advance(61)
        assert await here.until("Shoot", "c-1", lambda found: found)


async def test_no_shoot_is_patched_that_the_deputy_may_not_patch(here: World) -> None:
    async with here.controlled():
        await here.grow()
    here.trusted = ""
    async with here.controlled():
        await here.rest()
        before = await here.shoot()
        await here.resize(5)
        shown = await here.until_reason(REFUSED)
        assert "may not patch shoots/c-1 of core.gardener.cloud" in shown["message"]
        assert await here.shoot() == before
        await allow(here, "patch")
        await allow(here, "patch", resource="configmaps")
        await here.advance(61)
        await here.until_patched(2)


async def test_a_runtime_at_rest_asks_for_no_permission(here: World) -> None:
    async with here.controlled():
        await here.grow()
    here.trusted = ""
    async with here.controlled():
        await here.rest()
        before = here.requests.answers.copy()
        await here.rest()
        assert here.requests.answers == before


async def test_a_shoot_of_nobody_is_not_adopted_without_permission(here: World) -> None:
    """Nor does the message report that there is one, and its uid."""
    here.trusted = ""
    shoot = foreign(here, "")
    del shoot["metadata"]["annotations"]
    made = await here.garden.create(SHOOTS, shoot)
    async with here.controlled():
        adopted = here.runtime()
        adopted["metadata"]["annotations"] = {"clusters.hortus.dev/adopt-shoot": made["metadata"]["uid"]}
        adopted["metadata"]["finalizers"] = [FINALIZER]
        await here.create(adopted)
        shown = await here.until_reason(REFUSED)
        assert "may not patch shoots/c-1" in shown["message"]
        assert await here.shoot() == made


async def test_a_name_written_without_permission_keeps_nobody_from_a_shoot(here: World) -> None:
    """The older of two Runtimes has a Shoot: the first to write its name, who may have no right to it."""
    other = f"{here.namespace}-squatter"
    await here.client.create(NAMESPACES, {"metadata": {"name": other}})
    squatter = here.runtime("rt-1")
    squatter["metadata"]["namespace"] = other
    await here.create(squatter)
    here.trusted = here.namespace
    here.choices["namespace"] = ""
    here.clock.skip(60)
    async with here.controlled():
        await here.create()
        made = await here.until("Shoot", "c-1", lambda found: found)
        found = await here.client.get(RUNTIMES, "rt-1", other)
    assert made["metadata"]["annotations"]["infrastructuremanager.kyma-project.io/runtime-id"] == "rt-1"
    assert condition(found, "Provisioned")["reason"] == REFUSED


async def test_the_inside_of_a_cluster_needs_the_secret_with_its_kubeconfig(here: World) -> None:
    here.trusted = ""
    document = here.server.kubeconfig_dict(f"inside-{here.number}")
    await keep(here, "rt-1", yaml.dump(document).encode())
    async with pooled(here) as workloads:
        with pytest.raises(NotPermitted, match="may not get secrets/kubeconfig-rt-1 in namespace"):
            await look_inside(workloads, here.runtime())
        await allow(here, "get", resource="secrets")
        here.clock.skip(31)
        await look_inside(workloads, here.runtime())


async def test_a_cluster_is_not_equipped_without_permission(here: World) -> None:
    here.inside.failure = NotPermitted("namespace team may not get secrets/kubeconfig-rt-1")
    async with here.controlled():
        await here.create()
        await here.until("Shoot", "c-1", lambda found: found)
        await here.operate("Create", "Succeeded")
        await here.until("GardenerCluster", "rt-1", lambda found: found)
        await here.connect()
        shown = await here.until_reason(REFUSED, "Configured")
        assert "may not get secrets/kubeconfig-rt-1" in shown["message"]
        here.inside.failure = None
        await here.advance(61)
        await here.until_state("Ready")


async def test_a_deletion_leaves_a_shoot_that_the_deputy_may_not_delete_and_records_it(here: World) -> None:
    await here.client.apply(CRDS, crd(Leftover), field_manager="tests")
    here.leftovers = True
    async with here.controlled():
        await here.grow()
    here.trusted = ""
    binding = await allow(here, "delete")
    await take_back(here.client, binding)
    await here.delete()
    deleted = (await here.client.get(RUNTIMES, "rt-1", here.namespace))["metadata"]["deletionTimestamp"]
    here.clock.jump(parse_time(deleted) - here.clock.now())
    async with here.controlled():
        shown = await here.until_reason(REFUSED, "Deprovisioned")
        assert "may not delete shoots/c-1 of core.gardener.cloud" in shown["message"]
        here.clock.skip(RELEASE_AFTER)
        await here.advance(61)
        await here.until_gone()
        assert "deletionTimestamp" not in (await here.shoot())["metadata"]
    [found] = (await here.client.list(LEFTOVERS, here.namespace)).items
    leftover = read(Leftover, found)
    assert leftover.spec.reason == "ShootNotDeleted"
    assert [item.what for item in leftover.spec.items] == [f"Shoot {here.garden_namespace}/c-1"]


async def test_a_deletion_deletes_no_config_map_that_the_deputy_may_not_delete(here: World) -> None:
    """The name of a Shoot that is not there leads to it."""
    here.trusted = ""
    name = authentication_name("c-1")
    await here.garden.create(CONFIG_MAPS, {"metadata": {"name": name, "namespace": here.garden_namespace}})
    runtime = here.runtime()
    runtime["metadata"]["finalizers"] = [FINALIZER]
    await here.create(runtime)
    await here.delete()
    async with here.controlled():
        await here.until_gone()
    assert await here.garden.get(CONFIG_MAPS, name, here.garden_namespace)


async def test_a_deletion_records_no_shoot_of_somebody_else(here: World) -> None:
    """Somebody whose Runtime was there first, with the id of another one, and who may nothing."""
    await here.client.apply(CRDS, crd(Leftover), field_manager="tests")
    here.leftovers = True
    other = f"{here.namespace}-squatter"
    await here.client.create(NAMESPACES, {"metadata": {"name": other}})
    squatter = here.runtime("rt-1")
    squatter["metadata"] |= {"namespace": other, "finalizers": [FINALIZER]}
    await here.create(squatter)
    here.trusted = here.namespace
    here.choices["namespace"] = ""
    async with here.controlled():
        await here.create()
        await here.until("Shoot", "c-1", lambda found: found)
        await here.operate("Create", "Succeeded")
        await here.client.delete(RUNTIMES, "rt-1", other)
        here.clock.skip(RELEASE_AFTER + 3600)
        with pytest.raises(NotFound):
            while True:
                await here.client.get(RUNTIMES, "rt-1", other)
                await here.advance(61)
    assert (await here.client.list(LEFTOVERS, here.namespace)).items == []
    assert "deletionTimestamp" not in (await here.shoot())["metadata"]


async def test_a_deletion_is_not_held_by_a_shoot_that_the_deputy_may_not_delete(here: World) -> None:
    """Otherwise the condition names the shoot to whoever writes a runtime-id."""
    here.trusted = ""
    made = await here.garden.create(SHOOTS, foreign(here, "rt-1"))
    runtime = here.runtime()
    del runtime["spec"]
    runtime["metadata"]["finalizers"] = [FINALIZER]
    await here.create(runtime)
    await here.delete()
    async with here.controlled():
        await here.until_gone()
    assert await here.shoot() == made
