"""ClusterProfiles of every source: made, kept, merged and removed, with no write that changes nothing."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

from tests.domains.inventory.world import (
    CRDS,
    FLEET,
    HOME,
    NODES,
    PATIENCE,
    PROJECT,
    PROPERTIES,
    SHOOTS,
    InventoryWorld,
    condition,
    is_joined,
    open_crd,
    owns_sources,
    properties,
)

from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.domains.inventory.types import CLUSTER_PROFILES, ProfileAnnotation, ProfileLabel, Property
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube import yaml
from hortus.kube.objects import Object, Resource
from hortus.testing import FakeClock, condition_is, wait_for

EVENTS = Resource("", "v1", "events", "Event")


def sources(profile: Object) -> list[str]:
    text: str = ((profile.get("metadata") or {}).get("annotations") or {}).get(ProfileAnnotation.SOURCES, "")
    return text.split(",")


def labels(profile: Object) -> dict[str, Any]:
    found: dict[str, Any] = (profile.get("metadata") or {}).get("labels") or {}
    return found


async def test_a_labelled_secret_becomes_a_profile_without_waiting_for_a_timer(here: InventoryWorld) -> None:
    await here.workload("a")
    here.clock = FakeClock(now=here.clock.now())
    async with here.controllers():
        await here.secret("prod-kubeconfig", "a", labels={ProfileLabel.REGION: "eu-1"})
        profile = await here.profile("prod", is_joined)
    assert profile["spec"] == {"clusterManager": {"name": "hortus"}, "displayName": "prod"}
    assert labels(profile) == {
        ProfileLabel.CLUSTER_MANAGER: "hortus",
        ProfileLabel.REGION: "eu-1",
        **{name: value for name, value in labels(profile).items() if name == ProfileLabel.KUBERNETES},
    }
    assert condition(profile, "ControlPlaneHealthy") == ("True", "ApiServerAnswers")
    assert condition(profile, "CredentialsFresh") == ("True", "Accepted")


async def test_a_runtime_its_gardener_cluster_and_a_secret_are_one_profile(here: InventoryWorld) -> None:
    await here.workload("a")
    await here.shoot("rt-1")
    async with here.controllers():
        await here.secret("other", "a")
        await here.profile("other", is_joined)
        await here.runtime("blue", "rt-1", **{"kyma-project.io/broker-plan-name": "aws", "private": "x"})
        await here.gardener_cluster("rt-1", "a")
        profile = await here.profile("rt-1", lambda found: is_joined(found) and len(sources(found)) == 3)
        await here.no_profile("other")
        profile = await here.profile("rt-1", lambda found: properties(found).get(Property.NODES) == "0")
    assert profile["spec"]["displayName"] == "blue"
    assert labels(profile) == {
        "kyma-project.io/broker-plan-name": "aws",
        ProfileLabel.CLUSTER_MANAGER: "hortus",
        ProfileLabel.REGION: "eu-central-1",
        ProfileLabel.PROVIDER: "aws",
        ProfileLabel.PURPOSE: "production",
        ProfileLabel.KUBERNETES: "1.33",
    }
    assert profile["status"]["version"] == {"kubernetes": "1.33.4"}
    assert properties(profile)[Property.MAINTENANCE_WINDOW] == "220000+0100-230000+0100"
    assert properties(profile)[Property.HIBERNATED] == "false"
    assert condition(profile, "ControlPlaneHealthy") == ("True", "ShootHealthy")


async def test_a_secret_of_a_known_cluster_never_gets_a_profile_of_its_own(here: InventoryWorld) -> None:
    await here.workload("a")
    async with here.controllers():
        await here.secret("first", "a")
        await here.profile("first", lambda found: Property.UID in properties(found))
        await here.secret("second", "a")
        await here.profile("first", lambda found: len(sources(found)) == 2)
        assert await here.names() == ["first"]
        # Another credential in it is tried, and is of the same cluster.
        before = await here.profile("first")
        await here.client.patch(SECRETS, "second", {"data": {"config": here.kubeconfig("a")}}, HOME)
        again = await here.profile(
            "first", lambda found: len(sources(found)) == 2 and sources(found) != sources(before)
        )
        assert [one.partition("@")[0] for one in sources(again)] == [one.partition("@")[0] for one in sources(before)]
        assert await here.names() == ["first"]


async def test_a_secret_that_leads_elsewhere_now_gets_its_own_profile(here: InventoryWorld) -> None:
    await here.workload("a")
    await here.workload("b")
    async with here.controllers():
        await here.secret("first", "a")
        await here.profile("first", lambda found: Property.UID in properties(found))
        await here.secret("second", "a")
        await here.profile("first", lambda found: len(sources(found)) == 2)
        await here.client.patch(SECRETS, "second", {"data": {"config": here.kubeconfig("b")}}, HOME)
        await here.profile("second", is_joined)
        await here.profile("first", lambda found: len(sources(found)) == 1)
        assert await here.names() == ["first", "second"]


async def test_a_profile_ends_with_the_last_source_of_its_cluster(here: InventoryWorld) -> None:
    await here.workload("a")
    async with here.controllers():
        await here.runtime("blue", "rt-1")
        await here.gardener_cluster("rt-1", "a")
        await here.profile("rt-1", is_joined)
        await here.client.delete(RUNTIMES, "blue", HOME)
        await here.profile("rt-1", lambda found: sources(found) == [f"GardenerCluster/{HOME}/rt-1"])
        await here.client.delete(GARDENER_CLUSTERS, "rt-1", HOME)
        await here.no_profile("rt-1")
        assert await here.names() == []


async def test_at_rest_and_after_a_restart_nothing_is_written(here: InventoryWorld) -> None:
    await here.workload("a")
    await here.workload("b")
    await here.shoot("rt-1")
    await here.runtime("blue", "rt-1")
    await here.gardener_cluster("rt-1", "a")
    await here.secret("other", "b")

    def done(found: Object) -> bool:
        kinds = ("Joined", "ControlPlaneHealthy", "CredentialsFresh")
        has_facts = {Property.NODES, Property.UID} <= properties(found).keys()
        status = found.get("status") or {}
        return (
            has_facts
            and {"version", "accessProviders"} <= status.keys()
            and all(condition(found, kind)[0] == "True" for kind in kinds)
        )

    async with here.controllers() as manager:
        await here.profile("rt-1", done)
        await here.profile("other", done)
        await here.secret("twin", "b")
        await here.profile("other", lambda found: len(sources(found)) == 2 and owns_sources(found))
        names = await here.names()
        assert names == ["other", "rt-1"]
        await here.at_rest(manager)
    before = {name: await here.profile(name) for name in names}
    async with here.controllers() as manager:
        # An edit of a label of no concern is the mark up to which the controllers have worked.
        await here.client.patch(SECRETS, "other", {"metadata": {"labels": {ProfileLabel.PURPOSE: "test"}}}, HOME)
        await here.profile("other", lambda found: labels(found).get(ProfileLabel.PURPOSE) == "test")
        assert await here.names() == names
        assert await here.profile("rt-1") == before["rt-1"]
        assert len(here.requests.writes) == 1, here.requests.writes
        assert manager.started


async def test_facts_of_the_cluster_follow_its_nodes_and_cluster_properties(here: InventoryWorld) -> None:
    await here.workload("a")
    async with here.inside("a") as inside:
        await inside.create(CRDS, open_crd(PROPERTIES))
        await wait_for(inside, CRDS, "clusterproperties.about.k8s.io", until=condition_is("Established"))
        async with here.controllers():
            await here.secret("prod", "a")
            await here.profile("prod", is_joined)
            for number, zone in enumerate(("eu-1b", "eu-1a", "eu-1a")):
                place = {"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": "eu-1"}
                node = {
                    "metadata": {"name": f"n{number}", "labels": place},
                    "spec": {"providerID": f"aws:///x/{number}"},
                }
                await inside.create(NODES, node)
            for name, value in (
                ("cluster.clusterset.k8s.io", "prod-7"),
                (Property.HIBERNATED, "true"),
                ("too.long", "x" * 2000),
                ("empty", ""),
            ):
                await inside.create(
                    PROPERTIES,
                    {"apiVersion": PROPERTIES.api_version, "kind": PROPERTIES.kind}
                    | {"metadata": {"name": name}, "spec": {"value": value}},
                )
            profile = await here.profile(
                "prod",
                lambda found: (
                    properties(found).get(Property.NODES) == "3" and "cluster.clusterset.k8s.io" in properties(found)
                ),
            )
            assert properties(profile) == {
                "cluster.clusterset.k8s.io": "prod-7",
                Property.MARK: properties(profile)[Property.MARK],
                Property.NODES: "3",
                Property.ZONES: "eu-1a,eu-1b",
                Property.UID: properties(profile)[Property.UID],
            }
            assert labels(profile)[ProfileLabel.REGION] == "eu-1"
            assert labels(profile)[ProfileLabel.PROVIDER] == "aws"
            await inside.delete(NODES, "n0")
            await inside.delete(PROPERTIES, "cluster.clusterset.k8s.io")
            settled = await here.profile(
                "prod",
                lambda found: (
                    properties(found).get(Property.ZONES) == "eu-1a"
                    and "cluster.clusterset.k8s.io" not in properties(found)
                ),
            )
            heart_beat = {"status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": None}]}}
            await inside.patch(NODES, "n1", heart_beat, subresource="status")
            await inside.patch(NODES, "n1", {"metadata": {"labels": {"topology.kubernetes.io/zone": "eu-1c"}}})
            # Counted by the server: a watch may show a write before its writer has the answer.
            zones = [properties(found)[Property.ZONES] for found in await here.changes_after(settled, 1)]
            assert zones == ["eu-1a,eu-1c"]


async def test_a_cluster_without_nodes_has_a_profile_that_says_so(here: InventoryWorld) -> None:
    await here.workload("a")
    async with here.controllers():
        await here.secret("prod", "a")
        profile = await here.profile("prod", lambda found: Property.NODES in properties(found))
        assert properties(profile)[Property.NODES] == "0"
        assert Property.ZONES not in properties(profile)


async def test_a_profile_of_another_manager_is_never_written(here: InventoryWorld) -> None:
    await here.workload("a")
    foreign = {
        "metadata": {"name": "prod", "namespace": FLEET, "labels": {ProfileLabel.CLUSTER_MANAGER: "ocm"}},
        "spec": {"clusterManager": {"name": "ocm"}},
    }
    made = await here.create(CLUSTER_PROFILES, foreign)
    async with here.controllers():
        secret = await here.secret("prod", "a")
        names = await _until_names(here, 2)
        await here.profile(next(name for name in names if name != "prod"), is_joined)
        await here.client.delete(SECRETS, secret["metadata"]["name"], HOME)
        await _until_names(here, 1)
    assert await here.client.get(CLUSTER_PROFILES, "prod", FLEET) == made


async def test_two_clusters_with_one_id_are_two_profiles(here: InventoryWorld) -> None:
    await here.workload("a")
    await here.workload("b")
    async with here.controllers():
        await here.secret("prod", "a")
        await here.profile("prod", is_joined)
        await here.secret("prod-kubeconfig", "b")
        names = await _until_names(here, 2)
        other = next(name for name in names if name != "prod")
        assert other.startswith("prod-")
        profile = await here.profile(other, is_joined)
        assert profile["spec"]["displayName"] == "prod"
    async with here.controllers():
        await here.client.delete(SECRETS, "prod", HOME)
        await here.no_profile("prod")
        assert await here.names() == [other], "a profile keeps its name"


async def test_an_id_that_can_be_no_name_still_has_a_profile(here: InventoryWorld) -> None:
    await here.workload("a")
    async with here.controllers():
        await here.gardener_cluster("rt-1", "a", **{"kyma-project.io/runtime-id": "Some_ID..x"})
        (name,) = await _until_names(here, 1)
        assert name.startswith("some-id.x-")
        profile = await here.profile(name, is_joined)
        assert profile["metadata"]["name"] == name


async def test_a_cluster_without_a_usable_kubeconfig_says_who_must_act(here: InventoryWorld) -> None:
    async with here.controllers():
        await here.runtime("blue", "rt-1")
        blue = await here.profile("rt-1", lambda found: condition(found, "Joined")[0])
        assert condition(blue, "Joined") == ("False", "NoKubeconfig")
        assert condition(blue, "CredentialsFresh") == ("Unknown", "NoKubeconfig")
        empty = {"metadata": {"name": "empty", "namespace": HOME, "labels": {"fleet.hortus.dev/kubeconfig": "true"}}}
        await here.client.create(SECRETS, {**empty, "data": {}})
        profile = await here.profile("empty", lambda found: condition(found, "Joined")[0])
        (joined,) = (one for one in profile["status"]["conditions"] if one["type"] == "Joined")
        assert joined["message"] == f"Secret {HOME}/empty lacks a key with a kubeconfig: add it (its owner)."
        broken = {"metadata": {**empty["metadata"], "name": "broken"}, "data": {"config": "bm9uZQ=="}}
        await here.client.create(SECRETS, broken)
        profile = await here.profile("broken", lambda found: condition(found, "Joined")[0] == "False")
        assert condition(profile, "Joined") == ("False", "CredentialMalformed")
        assert condition(profile, "CredentialsFresh") == ("False", "CredentialMalformed")
        # The owner acts, and nobody else has to.
        await here.workload("a")
        await here.client.patch(SECRETS, "broken", {"data": {"config": here.kubeconfig("a")}}, HOME)
        await here.profile("broken", is_joined)


async def test_a_hibernated_cluster_and_an_unhealthy_shoot_show(here: InventoryWorld) -> None:
    await here.workload("a")
    await here.shoot("rt-1")
    async with here.controllers():
        await here.gardener_cluster("rt-1", "a")
        await here.profile(
            "rt-1", lambda found: is_joined(found) and condition(found, "ControlPlaneHealthy")[0] == "True"
        )
        sick = {"conditions": [{"type": "ControlPlaneHealthy", "status": "False", "reason": "EtcdDown"}]}
        await here.client.patch(SHOOTS, "rt-1", {"status": sick}, PROJECT)
        profile = await here.profile("rt-1", lambda found: condition(found, "ControlPlaneHealthy")[0] == "False")
        (found,) = (one for one in profile["status"]["conditions"] if one["type"] == "ControlPlaneHealthy")
        assert found["message"] == "The garden reports ControlPlaneHealthy: EtcdDown (garden operator)."
        await here.client.patch(SHOOTS, "rt-1", {"status": {"conditions": [], "hibernated": True}}, PROJECT)
        profile = await here.profile("rt-1", lambda found: properties(found).get(Property.HIBERNATED) == "true")
        assert condition(profile, "ControlPlaneHealthy") == ("Unknown", "Hibernated")
        assert is_joined(profile)


async def test_labels_of_people_stay_and_labels_of_sources_end_with_them(here: InventoryWorld) -> None:
    await here.workload("a")
    here.flags = ["--inventory-labels=team.example.org/*,stage"]
    async with here.controllers():
        await here.secret("prod", "a", labels={"team.example.org/name": "blue", "stage": "one", "hidden": "x"})
        await here.profile("prod", is_joined)
        await here.client.patch(CLUSTER_PROFILES, "prod", {"metadata": {"labels": {"mine": "yes"}}}, FLEET)
        await here.client.patch(SECRETS, "prod", {"metadata": {"labels": {"stage": None}}}, HOME)
        profile = await here.profile("prod", lambda found: "stage" not in labels(found))
        assert labels(profile)["mine"] == "yes"
        assert labels(profile)["team.example.org/name"] == "blue"
        assert "hidden" not in labels(profile)


async def test_a_profile_gives_clients_the_way_into_the_cluster(here: InventoryWorld) -> None:
    workload = await here.workload("a")
    async with here.controllers():
        await here.secret("prod", "a", key="value")
        profile = await here.profile("prod", lambda found: (found.get("status") or {}).get("accessProviders"))
    (provider,) = profile["status"]["accessProviders"]
    written = here.server.kubeconfig_dict(workload)["clusters"][0]["cluster"]
    settings = {"secret": {"namespace": HOME, "name": "prod", "key": "value"}}
    assert provider == {
        "name": "hortus-secret",
        "cluster": {
            "server": written["server"],
            "certificate-authority-data": written["certificate-authority-data"],
            "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": settings}],
        },
    }


async def test_a_namespace_that_does_not_exist_is_waited_for(here: InventoryWorld) -> None:
    await here.workload("a")
    here.flags = ["--fleet-namespace=later"]
    async with here.controllers():
        await here.secret("prod", "a")
        await here.requests.answer("404")
        assert await here.names() == []


async def _until_names(here: InventoryWorld, count: int) -> list[str]:
    async with asyncio.timeout(60), here.client.watch(CLUSTER_PROFILES, FLEET, initial_events=True) as events:
        async for _ in events:
            if len(names := await here.names()) == count:
                return names
    raise AssertionError("the watch ended")


async def test_a_cluster_that_does_not_answer_shows_and_recovers(here: InventoryWorld) -> None:
    workload = await here.workload("a")
    away = here.server.kubeconfig_dict(workload)
    away["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    async with here.controllers():
        content = base64.b64encode(yaml.dump(away).encode()).decode()
        metadata = {"name": "prod", "namespace": HOME, "labels": {"fleet.hortus.dev/kubeconfig": "true"}}
        await here.client.create(SECRETS, {"metadata": metadata, "data": {"config": content}})
        profile = await here.profile("prod", lambda found: condition(found, "Joined")[0] == "False")
        assert condition(profile, "Joined") == ("False", "Unreachable")
        assert condition(profile, "ControlPlaneHealthy") == ("False", "Unreachable")
        await here.client.patch(SECRETS, "prod", {"data": {"config": here.kubeconfig("a")}}, HOME)
        profile = await here.profile("prod", is_joined)
        assert condition(profile, "ControlPlaneHealthy") == ("True", "ApiServerAnswers")
        assert profile["status"]["accessProviders"]
        async with asyncio.timeout(PATIENCE), here.client.watch(EVENTS, FLEET, initial_events=True) as events:
            event = await anext(event.object async for event in events if event.object.get("involvedObject"))
        assert event["involvedObject"]["name"] == "prod"


async def test_an_ended_kubeconfig_is_not_fresh(here: InventoryWorld) -> None:
    await here.workload("a")
    async with here.controllers():
        await here.gardener_cluster("rt-1", "a")
        await here.profile("rt-1", lambda found: condition(found, "CredentialsFresh")[0] == "True")
        ended = {"metadata": {"annotations": {"credentials.hortus.dev/expiration": "2020-01-01T00:00:00Z"}}}
        await here.client.patch(SECRETS, "kubeconfig-rt-1", ended, HOME)
        ended = await here.profile("rt-1", lambda found: condition(found, "CredentialsFresh")[0] == "False")
        assert condition(ended, "CredentialsFresh") == ("False", "Expired")
