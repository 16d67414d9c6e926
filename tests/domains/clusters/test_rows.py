"""The rarer rows of the contract's table of states: reason, message and consequence of each."""

from __future__ import annotations

import pytest
from tests.domains.clusters.shoot import samples
from tests.domains.clusters.world import CONFIG_MAPS, World, condition, said

from hortus.domains.clusters.garden import SHOOTS
from hortus.domains.clusters.inside import InsideError, NoWayIn
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.kube.errors import Forbidden
from hortus.kube.objects import Object

NO = Forbidden("no")


async def connected(here: World) -> None:
    """A Shoot that is there, and a kubeconfig for it."""
    await here.create()
    await here.until_said("Shoot is pending")
    await here.operate("Create", "Succeeded")
    await here.until("GardenerCluster", "rt-1", lambda found: found)
    await here.connect()


async def deleting(here: World) -> Object:
    return await here.until("Shoot", "c-1", lambda found: found["metadata"].get("deletionTimestamp"))


async def test_a_kubeconfig_that_cannot_be_asked_for_stops_the_runtime(here: World) -> None:
    here.own_failures["create", "gardenerclusters"] = NO
    async with here.controlled():
        await here.create()
        await here.until_said("Shoot is pending")
        await here.operate("Create", "Succeeded")
        found = await here.until_state("Failed")
        assert said(condition(found, "KubeconfigReady")) == ("KubeconfigReady", "False", "KubernetesErr", "no")
        await here.rest()
        assert here.stops() == 1


async def test_a_gardener_cluster_that_cannot_be_deleted_is_said_and_tried_again_after_10_s(here: World) -> None:
    async with here.controlled():
        await here.grow()
        here.own_failures["delete", "gardenerclusters"] = NO
        await here.delete()
        found = await here.until_state("Failed")
        expected = ("Deprovisioned", "False", "GardenerErr", "Gardener API delete error: no")
        assert said(condition(found, "Deprovisioned")) == expected
        here.own_failures.clear()
        await here.advance(9)
        assert (await here.client.list(GARDENER_CLUSTERS, here.namespace)).items
        await here.advance(1)
        await deleting(here)
        await here.vanish()
        await here.until_gone()


async def test_a_deletion_that_cannot_be_confirmed_is_tried_again_without_a_word(here: World) -> None:
    async with here.controlled():
        await here.grow()
        here.failures["patch", "shoots"] = NO
        await here.delete()
        await here.until("Runtime", "rt-1", lambda obj: condition(obj, "Deprovisioned").get("status") == "True")
        await here.rest()
        assert not (await here.shoot())["metadata"].get("deletionTimestamp")
        assert (await here.until_state("Terminating"))["status"]["conditions"][-1][
            "reason"
        ] == "GardenerClusterCRDeleted"
        here.failures.clear()
        await here.advance(60)
        await deleting(here)


async def test_a_config_map_that_cannot_be_deleted_keeps_the_shoot_for_90_s(here: World) -> None:
    async with here.controlled():
        await here.grow()
        here.failures["delete", "configmaps"] = NO
        await here.delete()
        found = await here.until_state("Failed")
        text = "Failed to delete structured authentication config map: no"
        expected = ("Deprovisioned", "False", "StructuredConfigDeleted", text)
        assert said(condition(found, "Deprovisioned")) == expected
        here.failures.clear()
        assert not (await here.shoot())["metadata"].get("deletionTimestamp")
        await here.advance(90)
        await deleting(here)


async def test_caches_that_cannot_be_read_stop_the_patch(here: World) -> None:
    async with here.controlled():
        await here.grow()
        before = await here.shoot()
        here.inside.failure = InsideError("forbidden", transient=False)
        await here.change({"spec": {"imageRegistryCache": {"enabled": True}}})
        found = await here.until_state("Failed")
        text = "Failed to configure registry cache"
        assert said(condition(found)) == ("Provisioned", "False", "RegistryCacheConfigurationErr", text)
        await here.rest()
        assert here.stops() > 0
        assert await here.shoot() == before


async def test_without_the_oidc_extension_no_provider_is_put_into_the_cluster(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_said("Shoot is pending")
        extensions = (await here.shoot())["spec"]["extensions"]
        off = [{**one, "disabled": one["type"] == "shoot-oidc-service"} for one in extensions]
        await here.garden.patch(SHOOTS, "c-1", {"spec": {"extensions": off}}, here.garden_namespace)
        await here.operate("Create", "Succeeded")
        await here.until("GardenerCluster", "rt-1", lambda found: found)
        here.inside_failures["list", "openidconnects"] = NO
        await here.connect()
        found = await here.until_state("Ready")
        expected = ("OidcConfigured", "True", "OidcConfigured", "OIDC extension disabled")
        assert said(condition(found, "OidcConfigured")) == expected


async def test_providers_that_cannot_be_set_up_are_shown_and_tried_again(here: World) -> None:
    here.inside_failures["list", "openidconnects"] = NO
    async with here.controlled():
        await connected(here)
        found = await here.until_reason("OidcConfigurationErr", "OidcConfigured")
        assert said(found) == ("OidcConfigured", "False", "OidcConfigurationErr", "OIDC configuration error: no")
        await here.until_state("Pending")
        here.inside_failures.clear()
        await here.advance(60)
        await here.until_state("Ready")
        assert here.stops() == 0


async def test_a_cluster_without_a_way_in_is_a_stop_by_an_error(here: World) -> None:
    here.inside.failure = NoWayIn("secret x/kubeconfig-rt-1 does not exist")
    async with here.controlled():
        await connected(here)
        await here.until_state("Failed")
        await here.rest()
        assert here.stops() > 0


async def test_pools_that_stay_as_they_were_are_looked_at_five_times_and_then_an_error(here: World) -> None:
    async with here.controlled():
        await here.grow()
    here.deaf = frozenset({("patch", "shoots")})
    async with here.controlled():
        before = here.garden_requests.answers["GET", "200"]
        await here.resize(9)
        for pause in (0.2, 0.4, 0.6, 0.8):
            await here.asleep(pause)
            await here.clock.advance(pause)
        found = await here.until_state("Failed")
        assert said(condition(found))[2:] == ("ProcessingErr", "Workers pool not synchronised")
        assert here.garden_requests.answers["GET", "200"] >= before + 5


async def test_no_seed_for_the_provider_is_an_end_that_was_to_be_expected(here: World) -> None:
    text = 'Failed to schedule Shoot: none out of the 3 seeds has a matching provider for "aws"'
    async with here.controlled():
        await here.create()
        await here.until_said("Shoot is pending")
        await here.operate("Create", "Pending", description=text)
        await here.until_state("Failed")
        await here.rest()
        assert here.stops() == 0


async def test_an_operation_in_a_state_that_nobody_knows_is_a_stop_without_a_word(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_said("Shoot is pending")
        trail = list(here.trail)
        await here.operate("Create", "Dreaming")
        await here.seen()
        await here.rest()
        assert here.stops() > 0
        assert here.trail == trail


async def test_a_shoot_with_an_unreadable_generation_is_looked_at_again_after_15_s(here: World) -> None:
    key = "infrastructuremanager.kyma-project.io/runtime-generation"

    async def mark(value: str) -> None:
        await here.garden.patch(SHOOTS, "c-1", {"metadata": {"annotations": {key: value}}}, here.garden_namespace)
        await here.seen()

    async with here.controlled():
        await here.grow()
        await mark("three")
        await here.resize(9)
        await here.rest()
        writes = here.garden_requests.writes
        await here.advance(30)
        assert here.garden_requests.writes == writes
        await mark("1")
        await here.until_patched(2)


@pytest.mark.parametrize("structured", [True, False])
async def test_structured_authentication_is_a_config_map_only_where_it_is_switched_on(
    here: World, structured: bool
) -> None:
    here.choices["structured_authentication"] = structured
    async with here.controlled():
        await here.grow()
        maps = (await here.garden.list(CONFIG_MAPS, here.garden_namespace)).items
        kept = [found["metadata"]["name"] for found in maps]
        assert kept == (["structured-auth-config-c-1"] if structured else [])
        api_server = (await here.shoot())["spec"]["kubernetes"]["kubeAPIServer"]
        assert ("structuredAuthentication" in api_server) is structured
        assert ("oidcConfig" in api_server) is not structured


async def test_from_1_32_on_structured_authentication_is_used_whatever_the_flag_says(here: World) -> None:
    """Gardener refuses the fields there: at creation, and where a cluster is raised to it."""
    here.choices["structured_authentication"] = False
    async with here.controlled():
        await here.grow(here.runtime(kubernetes={"version": "1.31"}))
        assert "oidcConfig" in (await here.shoot())["spec"]["kubernetes"]["kubeAPIServer"]
        await here.change({"spec": {"shoot": {"kubernetes": {"version": "1.32"}}}})
        await here.until_patched(2)
        api_server = (await here.shoot())["spec"]["kubernetes"]["kubeAPIServer"]
        assert "oidcConfig" not in api_server
        assert api_server["structuredAuthentication"] == {"configMapName": "structured-auth-config-c-1"}
        await here.create(here.runtime("rt-2", shoot="c-2", kubernetes={"version": "1.33"}))
        made = await here.until("Shoot", "c-2", lambda found: found)
        assert "oidcConfig" not in made["spec"]["kubernetes"]["kubeAPIServer"]
        maps = (await here.garden.list(CONFIG_MAPS, here.garden_namespace)).items
        kept = {found["metadata"]["name"] for found in maps}
        assert kept >= {"structured-auth-config-c-1", "structured-auth-config-c-2"}
        assert [event for event in await here.events() if event["reason"] == "NotApplied"] == []


async def test_the_operators_ranges_are_waited_for_and_let_in(here: World) -> None:
    here.choices["acl"] = True
    here.choices["configuration"] = samples.configuration(
        gardener__projectName=here.project, kubernetes__kubeApiServer={"acl": {"configMapName": "ranges"}}
    )
    ranges = {"acl-list.json": '["192.0.2.0/24"]', "kcp-external-nat-ip.json": '"203.0.113.7"'}
    kubernetes = {"kubeAPIServer": {"acl": {"allowedCIDRs": ["198.51.100.0/24"]}}}
    async with here.controlled():
        await here.create(here.runtime(kubernetes=kubernetes))
        missing = await here.until_reason("ConversionErr")
        assert missing["message"].startswith(f"configmap {here.namespace}/ranges with the operator's ranges: ")
        assert here.garden_requests.writes == 0
        place = {"name": "ranges", "namespace": here.namespace}
        for wrong, says in (("203.0.113.7", "is no JSON"), ('"here"', "must be a JSON text with an address")):
            await here.advance(15)
            body = {"metadata": place, "data": {**ranges, "kcp-external-nat-ip.json": wrong}}
            await here.client.apply(CONFIG_MAPS, body, field_manager="tests")
            await here.advance(15)
            await here.until_said(f"key kcp-external-nat-ip.json {says}")
        await here.client.apply(CONFIG_MAPS, {"metadata": place, "data": ranges}, field_manager="tests")
        await here.advance(15)
        await here.until_said("Shoot is pending")
    [acl] = [found for found in (await here.shoot())["spec"]["extensions"] if found["type"] == "acl"]
    assert acl["providerConfig"]["rule"]["cidrs"] == ["198.51.100.0/24", "192.0.2.0/24", "203.0.113.7/32"]
