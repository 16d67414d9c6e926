"""The identity of members: what a cluster says of itself takes nothing from another one."""

from __future__ import annotations

import base64

import orjson
from tests.domains.inventory.world import (
    HOME,
    InventoryWorld,
    condition,
    is_joined,
    properties,
)
from tests.fronts import Front, front
from tests.waiting import until

from hortus.domains.inventory.types import Property, SourceLabel
from hortus.engine import find_condition
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.remote.identity import MARK
from hortus.kube import yaml
from hortus.kube.objects import Object

PROVEN = "IdentityProven"


def content(kubeconfig: Object) -> dict[str, str]:
    return {"config": base64.b64encode(yaml.dump(kubeconfig).encode()).decode()}


async def source(here: InventoryWorld, name: str, kubeconfig: Object) -> None:
    metadata = {"name": name, "namespace": HOME, "labels": {SourceLabel.KUBECONFIG: "true"}}
    await here.client.create(SECRETS, {"metadata": metadata, "data": content(kubeconfig)})


async def lead_to(here: InventoryWorld, name: str, kubeconfig: Object) -> None:
    await here.client.patch(SECRETS, name, {"data": content(kubeconfig)}, HOME)


async def uid_of(here: InventoryWorld, workload: str) -> str:
    async with here.inside(workload) as client:
        found = await client.get_raw("/api/v1/namespaces/kube-system")
    uid: str = found["metadata"]["uid"]
    return uid


async def mark_in(here: InventoryWorld, workload: str) -> Object:
    async with here.inside(workload) as client:
        return await client.get(SECRETS, MARK.name, MARK.namespace)


def is_proven(profile: Object) -> bool:
    return condition(profile, PROVEN) == ("True", "MarkRead")


def message(profile: Object) -> str:
    text: str = (find_condition(profile, PROVEN) or {}).get("message", "")
    return text


def server_of(profile: Object) -> str:
    (provider,) = profile["status"]["accessProviders"]
    found: str = provider["cluster"]["server"]
    return found


def rest(profile: Object) -> Object:
    """The parts of a profile that another cluster could take."""
    return {
        "annotations": profile["metadata"]["annotations"],
        "properties": properties(profile),
        "access": profile["status"]["accessProviders"],
    }


async def test_a_member_with_the_uid_of_another_takes_nothing_from_it(here: InventoryWorld) -> None:
    await here.workload("a")
    impostor = await here.workload("b")
    async with here.controllers() as manager:
        await here.secret("real", "a")
        before = await here.profile("real", is_proven)
        async with front(here.server, impostor, uid=await uid_of(here, "a")) as lying:
            await source(here, "fake", lying.kubeconfig)
            fake = await here.profile("fake", lambda found: condition(found, PROVEN)[0] == "False")
            assert condition(fake, PROVEN) == ("False", "IdentityConflict")
            for named in ("ClusterProfile fleet/real", server_of(before), server_of(fake), f"{HOME}/fake"):
                assert named in message(fake)
            assert Property.UID not in properties(fake)
            assert is_joined(fake), "its source says that it is a cluster"
            await here.at_rest(manager)
            assert rest(await here.profile("real")) == rest(before)
            assert lying.marks("PATCH") == 0


async def test_a_source_of_a_higher_rank_does_not_make_an_impostor_the_first(here: InventoryWorld) -> None:
    await here.workload("a")
    impostor = await here.workload("b")
    async with here.controllers() as manager:
        await here.secret("real", "a")
        before = await here.profile("real", is_proven)
        async with front(here.server, impostor, uid=await uid_of(here, "a")) as lying:
            await here.gardener_cluster("rt-1", "b")
            await lead_to(here, "kubeconfig-rt-1", lying.kubeconfig)
            await here.profile("rt-1", lambda found: condition(found, PROVEN) == ("False", "IdentityConflict"))
            await here.at_rest(manager)
            assert rest(await here.profile("real")) == rest(before)


async def test_a_cluster_that_comes_after_its_impostor_is_in_the_inventory_as_well(here: InventoryWorld) -> None:
    await here.workload("a")
    impostor = await here.workload("b")
    async with here.controllers(), front(here.server, impostor, uid=await uid_of(here, "a")) as lying:
        await source(here, "fake", lying.kubeconfig)
        await here.profile("fake", is_proven)
        await here.secret("real", "a")
        real = await here.profile("real", lambda found: condition(found, PROVEN)[0] == "False")
        assert is_joined(real)
        assert "ClusterProfile fleet/fake" in message(real)
        assert server_of(real) == here.server.cluster_url(f"{here.name}-a")
        await here.client.delete(SECRETS, "fake", HOME)
        real = await here.profile("real", is_proven)
        assert properties(real)[Property.UID] == await uid_of(here, "a")


async def test_a_cluster_that_repeats_the_mark_of_another_is_not_that_one(here: InventoryWorld) -> None:
    await here.workload("a")
    copy = await here.workload("b")
    async with here.controllers():
        await here.secret("real", "a")
        await here.profile("real", is_proven)
        stolen = orjson.dumps(await mark_in(here, "a"))
        async with front(here.server, copy, uid=await uid_of(here, "a"), mark=stolen) as lying:
            await source(here, "copy", lying.kubeconfig)
            found = await here.profile("copy", lambda found: condition(found, PROVEN)[0] == "False")
            assert condition(found, PROVEN) == ("False", "IdentityConflict")


async def test_another_address_of_a_cluster_is_a_source_of_its_profile_once_that_is_proven(
    here: InventoryWorld,
) -> None:
    workload = await here.workload("a")
    async with here.controllers(), front(here.server, workload) as other:
        await here.secret("first", "a")
        await here.profile("first", is_proven)
        await source(here, "second", other.kubeconfig)
        await here.profile("first", lambda found: "Secret/kcp-system/second@" in str(found["metadata"]["annotations"]))
        assert await here.names() == ["first"]
        assert other.marks("POST") == other.marks("PATCH") == 0, "it is read there alone"


async def test_of_two_that_come_at_once_one_has_the_uid_and_both_stay(here: InventoryWorld) -> None:
    await here.workload("a")
    impostor = await here.workload("b")
    async with front(here.server, impostor, uid=await uid_of(here, "a")) as lying:
        await here.secret("real", "a")
        await source(here, "fake", lying.kubeconfig)
        async with here.controllers() as manager:
            found = [await here.profile(name, lambda one: condition(one, PROVEN)[0]) for name in ("real", "fake")]
            await here.at_rest(manager)
            found = [await here.profile(name, is_joined) for name in ("real", "fake")]
            assert sorted(condition(one, PROVEN)[1] for one in found) == ["IdentityConflict", "MarkRead"]
            assert sorted(Property.UID in properties(one) for one in found) == [False, True]
        asked = len(lying.requests)
        async with here.controllers() as manager:
            await until(lambda: len(lying.requests) > asked)
            await here.at_rest(manager)
            assert here.requests.writes == [], "a conflict at rest writes nothing, after a restart neither"


async def test_a_mark_that_somebody_deleted_is_no_conflict(here: InventoryWorld) -> None:
    workload = await here.workload("a")
    async with here.controllers(), front(here.server, workload) as other:
        await here.secret("first", "a")
        await here.profile("first", is_proven)
        async with here.inside("a") as client:
            await client.delete(SECRETS, MARK.name, MARK.namespace)
        await source(here, "second", other.kubeconfig)
        await here.profile("first", lambda found: "Secret/kcp-system/second@" in str(found["metadata"]["annotations"]))


async def test_a_second_address_that_may_not_read_the_mark_stays_a_profile_of_its_own(here: InventoryWorld) -> None:
    workload = await here.workload("a")
    refused = {"GET": 403, "POST": 403}
    async with here.controllers(), front(here.server, workload, status=refused) as other:
        await here.secret("first", "a")
        before = await here.profile("first", is_proven)
        await source(here, "second", other.kubeconfig)
        second = await here.profile("second", lambda found: condition(found, PROVEN)[1] == "IdentityUnproven")
        assert condition(second, PROVEN)[0] == "Unknown"
        assert "get, create and patch Secret kube-system/hortus-mark" in message(second)
        assert Property.UID not in properties(second)
        assert rest(await here.profile("first")) == rest(before)


async def test_a_cluster_without_a_readable_mark_is_known_and_unproven(here: InventoryWorld) -> None:
    workload = await here.workload("a")
    async with here.controllers() as manager, front(here.server, workload, status={"POST": 403}) as other:
        await source(here, "only", other.kubeconfig)
        found = await here.profile("only", lambda found: condition(found, PROVEN)[1] == "MarkRefused")
        assert condition(found, PROVEN)[0] == "Unknown"
        assert is_joined(found)
        assert properties(found)[Property.UID] == await uid_of(here, "a")
        assert Property.MARK not in properties(found)
        await here.at_rest(manager)
        tried = other.marks("POST")
        await here.client.patch(SECRETS, "only", {"metadata": {"labels": {"any": "change"}}}, HOME)
        await here.at_rest(manager)
        assert other.marks("POST") == tried == 1, "a refusal is remembered as long as the credential"


async def moved(here: InventoryWorld, name: str, to: Front) -> Object:
    await lead_to(here, name, to.kubeconfig)
    return await here.profile(name, lambda found: is_proven(found) and server_of(found) == to.address)


async def test_a_cluster_that_has_moved_is_the_same_by_its_mark(here: InventoryWorld) -> None:
    workload = await here.workload("a")
    async with front(here.server, workload) as new:
        async with here.controllers():
            await here.secret("prod", "a")
            await here.profile("prod", is_proven)
            await here.secret("spare", "a")
            before = await here.profile("prod", lambda found: is_proven(found) and "spare" in str(found["metadata"]))
        async with here.controllers() as manager:
            after = await moved(here, "prod", new)
            await here.at_rest(manager)
            after = await here.profile("prod")
            assert properties(after)[Property.UID] == properties(before)[Property.UID]
            assert properties(after)[Property.MARK] == properties(before)[Property.MARK]
            assert after["metadata"]["annotations"] == before["metadata"]["annotations"]
            assert await here.names() == ["prod"]
            assert new.marks("POST") == new.marks("PATCH") == 0


async def test_another_authority_at_the_address_is_proven_by_the_mark(here: InventoryWorld) -> None:
    workload = await here.workload("a")
    async with here.controllers():
        async with front(here.server, workload) as old:
            await source(here, "prod", old.kubeconfig)
            before = await here.profile("prod", is_proven)
        port = int(old.address.rpartition(":")[2])
        async with front(here.server, workload, port=port) as new:
            await lead_to(here, "prod", new.kubeconfig)
            authority = new.kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"]
            after = await here.profile(
                "prod",
                lambda found: (
                    found["status"]["accessProviders"][0]["cluster"]["certificate-authority-data"] == authority
                ),
            )
            assert properties(after) == properties(before)
            assert is_proven(after)
            assert new.marks("GET") == 1
            assert new.marks("POST") == 0


async def test_a_source_that_is_led_to_an_impostor_does_not_take_other_sources_along(here: InventoryWorld) -> None:
    await here.workload("a")
    impostor = await here.workload("b")
    async with here.controllers(), front(here.server, impostor, uid=await uid_of(here, "a")) as lying:
        await here.secret("first", "a")
        await here.profile("first", is_proven)
        await here.secret("second", "a")
        await here.profile("first", lambda found: "second" in str(found["metadata"]["annotations"]))
        await lead_to(here, "first", lying.kubeconfig)

        second = await here.profile("second", is_joined)
        assert server_of(second) == here.server.cluster_url(f"{here.name}-a")
        first = await here.profile("first", lambda found: "second" not in str(found["metadata"]["annotations"]))
        assert first["metadata"]["name"] == "first"


async def test_the_mark_is_written_once_and_only_its_digest_is_kept(here: InventoryWorld) -> None:
    workload = await here.workload("a")
    async with front(here.server, workload) as way:
        async with here.controllers():
            await source(here, "prod", way.kubeconfig)
            profile = await here.profile("prod", is_proven)
        mark = await mark_in(here, "a")
        assert mark["data"]["mark"] not in str(profile)
        assert (way.marks("POST"), way.marks("GET")) == (1, 1)
        async with here.controllers() as manager:
            await here.profile("prod", is_joined)
            await until(lambda: any(host == "remote" for _, host, _ in here.requests.answers))
            await here.at_rest(manager)
            assert here.requests.writes == []
        assert (way.marks("POST"), way.marks("GET")) == (1, 1), "a restart reads no mark"
        assert await mark_in(here, "a") == mark


async def test_a_process_that_is_killed_after_the_mark_was_written_finds_it_again(here: InventoryWorld) -> None:
    workload = await here.workload("a")
    async with front(here.server, workload) as way:
        # The answer to the write is lost, as it is for a process that ends.
        way.status["POST"] = 500
        async with here.controllers():
            await source(here, "prod", way.kubeconfig)
            await here.requests.answer("500")
        del way.status["POST"]
        async with here.inside("a") as client:
            made = {"metadata": {"name": MARK.name, "namespace": MARK.namespace}, "data": {"mark": "bm9u" * 16}}
            await client.create(SECRETS, made)
        tried = way.marks("POST")
        async with here.controllers():
            profile = await here.profile("prod", is_proven)
        assert properties(profile)[Property.MARK]
        assert way.marks("POST") == tried
