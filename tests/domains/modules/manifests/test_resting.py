"""2.8: Manifests at rest cost no call, and drift is found by events."""

from __future__ import annotations

import asyncio

import pytest
from tests.domains.counting import requests_of
from tests.domains.modules.manifests.world import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HOME,
    MODULES,
    NAMESPACES,
    ModuleWorld,
    config_map,
    deployment,
    is_ready,
    operation,
    state,
)
from tests.fronts import front
from tests.waiting import until

from hortus.domains.modules.manifests.outline import change_matters, outline, owner_of
from hortus.domains.modules.manifests.resting import Resting
from hortus.domains.modules.manifests.settling import HOLDS, Settling
from hortus.domains.modules.names import Annotation
from hortus.domains.modules.types import KYMAS
from hortus.engine.cache import Change
from hortus.engine.remote import KubeconfigRef
from hortus.kube import Client
from hortus.kube.objects import Object, ObjectKey
from hortus.testing import FakeClock

KEY = ObjectKey(HOME, "one-module")
PLACE = KubeconfigRef(HOME, "kubeconfig-one", "config")


async def at_rest(here: ModuleWorld) -> None:
    await here.until(lambda obj: obj.get("status", {}).get("synced"))
    await here.until_inside(DEPLOYMENTS, "operator")
    await here.become_available("operator")
    await here.until(is_ready)
    await here.until_at_rest()


async def test_a_ready_module_at_rest_makes_no_call(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(config_map("one"), deployment()))
    async with here.controllers():
        await at_rest(here)
        reconciler = here.reconciler
        assert reconciler is not None

        async def reconciles() -> None:
            for _ in range(100):
                result = await reconciler.reconcile(KEY)
                assert result is not None
                assert result.requeue_after == pytest.approx(6 * 3600.0, rel=0.28)

        assert await requests_of(reconciles()) == []


async def test_a_manifest_that_no_kyma_lists_does_not_rest(here: ModuleWorld) -> None:
    """It becomes an orphan by time alone."""
    await here.manifest(here.layers.push(config_map("one")))
    async with here.controllers():
        await here.until(is_ready)
        for _ in range(3):
            assert await here.requests_of_a_reconcile()


async def test_an_edited_deployment_is_restored_at_once(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(config_map("one"), deployment()))
    async with here.controllers():
        await at_rest(here)
        edit = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "evil:1"}]
        edited = await here.edit(DEPLOYMENTS, "operator", edit)
        await here.until_inside(
            DEPLOYMENTS,
            "operator",
            until=lambda obj: obj["metadata"]["generation"] > edited["metadata"]["generation"],
        )
    found = await here.read(DEPLOYMENTS, "operator", MODULES)
    assert found is not None
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "example.org/operator:1.0.0"


async def test_a_deleted_deployment_is_made_again_at_once(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(config_map("one"), deployment()))
    async with here.controllers():
        await at_rest(here)
        before = await here.read(DEPLOYMENTS, "operator", MODULES)
        assert before is not None
        await here.inside.delete(DEPLOYMENTS, "operator", MODULES)
        await here.until_inside(
            DEPLOYMENTS, "operator", until=lambda obj: obj["metadata"]["uid"] != before["metadata"]["uid"]
        )


async def test_a_state_that_changes_is_reported_at_once(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(config_map("one"), deployment()))
    async with here.controllers():
        await at_rest(here)
        await here.report_deployment("operator", "True", "ReplicaSetUpdated", "True")
        found = await here.until(lambda obj: state(obj) != "Ready")
        assert state(found) == "Processing"


async def test_an_object_that_no_watch_shows_is_restored_by_the_comparison(here: ModuleWorld) -> None:
    here.flags = ["--module-comparison-interval=200ms", "--manifest-requeue-success-interval=100ms"]
    await here.manifest(here.layers.push(config_map("one", a="1")))
    async with here.controllers():
        await here.until(is_ready)
        await here.inside.delete(CONFIG_MAPS, "one", MODULES)
        restored = await here.until_inside(CONFIG_MAPS, "one")
        assert restored["data"] == {"a": "1"}


async def test_a_cluster_that_was_made_again_gets_its_modules_again(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(config_map("one")))
    async with here.controllers():
        await here.until(is_ready)
        await here.until_at_rest()
        async with here.recreated() as inside:
            await here.restored(inside, "one", CONFIG_MAPS)
            assert await inside.get(CONFIG_MAPS, "one", MODULES)


async def test_another_cluster_behind_the_same_credential_ends_the_rest(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(config_map("one")))
    async with here.controllers():
        await here.until(is_ready)
        await here.until_at_rest()
        await here.inside.delete(CONFIG_MAPS, "one", MODULES)
        assert here.pool is not None
        here.pool.recreated(PLACE)
        await here.until_inside(CONFIG_MAPS, "one")


async def test_the_uid_of_its_cluster_alone_does_not_keep_a_module_at_rest(here: ModuleWorld) -> None:
    other = f"{here.name}-other"
    await asyncio.to_thread(here.server.create_cluster, other)
    uid = (await here.inside.get_raw("/api/v1/namespaces/kube-system"))["metadata"]["uid"]
    await here.manifest(here.layers.push(config_map("one")))
    async with (
        here.controllers(),
        front(here.server, other, uid=uid) as lying,
        Client.from_kubeconfig(here.server.kubeconfig_for(other)) as inside,
    ):
        await here.until(is_ready)
        await here.until_at_rest()
        await inside.create(NAMESPACES, {"metadata": {"name": MODULES}})
        await here.lead_to(lying.kubeconfig)
        await here.restored(inside, "one", CONFIG_MAPS)
        assert await here.inside.get(CONFIG_MAPS, "one", MODULES), "nothing is taken from the real one"


async def test_a_cluster_that_is_proven_to_have_moved_gets_nothing_again(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(config_map("one"), deployment()))
    async with here.controllers(), front(here.server, f"{here.name}-one") as new:
        await at_rest(here)
        await here.lead_to(new.kubeconfig)
        await until(lambda: any("watch=" in path for _, path in new.requests))
        await here.until_at_rest()
        assert [(method, path) for method, path in new.requests if method != "GET"] == []
        assert new.lists("deployments") == 0


async def test_a_watch_that_fails_ends_the_rest(here: ModuleWorld) -> None:
    """The cluster answers everything but the watch, so what changes there is not seen."""
    await here.manifest(here.layers.push(config_map("one")))
    async with here.controllers():
        await here.until(is_ready)
        await here.until_at_rest()
        await here.inside.delete(CONFIG_MAPS, "one", MODULES)
        assert here.pool is not None
        here.pool.broken.set()
        await here.until_inside(CONFIG_MAPS, "one")


async def test_a_kyma_that_is_gone_ends_the_rest(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(config_map("one"), deployment()))
    async with here.controllers():
        await at_rest(here)
        await here.client.delete(KYMAS, "one", HOME)
        found = await here.until(lambda obj: state(obj) != "Ready")
        assert state(found) == "Error"


async def test_a_cluster_cannot_disturb_the_modules_of_another(here: ModuleWorld) -> None:
    """The cluster of `two` holds a Deployment that names the Manifest of `one`."""
    await here.manifest(here.layers.push(config_map("one"), deployment()))
    hostile = {**deployment("hostile")}
    labels = {"operator.kyma-project.io/managed-by": "kyma"}
    marks = {Annotation.OWNED_BY: f"{HOME}/one-module"}
    hostile["metadata"] = {**hostile["metadata"], "labels": labels, "annotations": marks}
    async with here.second_cluster() as inside, here.controllers():
        await at_rest(here)
        await inside.create(DEPLOYMENTS, hostile)
        await here.manifest(here.layers.push(deployment("own")), "two-module", kyma="two")
        await here.until(lambda obj: operation(obj) == "waiting for resources to become ready", "two-module")
        await inside.patch(DEPLOYMENTS, "hostile", {"spec": {"replicas": 3}}, MODULES)
        # Events of one watch come in their order: that of the own Deployment, made later, is seen after the hostile's.
        await inside.delete(DEPLOYMENTS, "own", MODULES)
        await here.restored(inside, "own")
        assert await here.requests_of_a_reconcile() == []


def manifest(version: str) -> Object:
    return {"metadata": {"name": KEY.name, "namespace": KEY.namespace, "resourceVersion": version}}


async def test_a_rest_ends_by_a_write_a_watch_that_is_not_current_a_disturbance_and_time() -> None:
    clock, current = FakeClock(), True
    resting = Resting(clock=clock, watched=lambda place: current)

    def begin() -> None:
        resting.begin(KEY)
        resting.rest(KEY, manifest("1"), PLACE, seconds=1000.0)

    assert resting.pause(KEY, manifest("1")) is None
    begin()
    assert resting.pause(KEY, manifest("1")) == 1000.0
    assert resting.pause(KEY, manifest("2")) is None
    assert resting.pause(KEY, manifest("1")) is None, "over is over"
    begin()
    current = False
    assert resting.pause(KEY, manifest("1")) is None
    current = True
    begin()
    resting.disturb(KEY)
    assert resting.pause(KEY, manifest("1")) is None
    begin()
    await clock.advance(900.0)
    assert resting.pause(KEY, manifest("1")) == 100.0
    await clock.advance(100.0)
    assert resting.pause(KEY, manifest("1")) is None


def test_a_change_during_the_reconcile_leaves_no_rest() -> None:
    resting = Resting(clock=FakeClock(), watched=lambda place: True)
    resting.begin(KEY)
    resting.disturb(KEY)
    resting.rest(KEY, manifest("1"), PLACE, seconds=1000.0)
    assert resting.pause(KEY, manifest("1")) is None


def reported(**changes: object) -> Object:
    obj = deployment()
    marks = {Annotation.OWNED_BY: f"{HOME}/one-module", "deployment.kubernetes.io/revision": "1"}
    obj["metadata"] = {**obj["metadata"], "generation": 1, "uid": "u", "resourceVersion": "1", "annotations": marks}
    conditions = [
        {"type": kind, "status": "True", "reason": "NewReplicaSetAvailable"} for kind in ("Progressing", "Available")
    ]
    obj["status"] = {"conditions": conditions, "replicas": 1}
    for path, value in changes.items():
        part, _, field = path.partition("_")
        obj[part] = {**obj[part], field: value}
    return obj


@pytest.mark.parametrize(
    ("changes", "matters"),
    [
        ({}, False),
        ({"status_replicas": 2}, False),
        ({"metadata_resourceVersion": "2"}, False),
        ({"metadata_generation": 2}, True),
        ({"metadata_uid": "v"}, True),
        ({"metadata_labels": {"a": "b"}}, True),
        ({"metadata_annotations": {Annotation.OWNED_BY: f"{HOME}/one-module"}}, False),
        ({"metadata_annotations": {}}, True),
        ({"metadata_deletionTimestamp": "2026-01-01T00:00:00Z"}, True),
        ({"status_conditions": []}, True),
        ({"status_conditions": "text"}, True),
    ],
)
def test_only_edits_and_states_of_deployments_matter(changes: dict[str, object], matters: bool) -> None:
    change = Change(KEY, outline(reported()), outline(reported(**changes)))
    assert change_matters(change) is matters


def test_the_owner_of_a_deployment_is_its_mark() -> None:
    assert owner_of(outline(reported())) == KEY
    assert owner_of(outline(deployment())) is None


# Between the apply and the first availability.


async def until_settling(here: ModuleWorld) -> None:
    """Return when a reconcile reads the Deployment and nothing else of the cluster."""
    await here.until(lambda obj: operation(obj) == "waiting for resources to become ready")
    await here.until_requests([("GET", "remote", "200")])


async def test_a_module_that_waits_for_its_workload_is_not_compared_again(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(config_map("one"), config_map("two"), deployment()))
    async with here.controllers():
        await until_settling(here)
        for _ in range(3):
            assert await here.requests_of_a_reconcile() == [("GET", "remote", "200")]
        await here.become_available("operator")
        assert operation(await here.until(is_ready)) == "resources are ready"


async def test_a_deployment_edited_before_it_is_available_is_restored(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(config_map("one"), deployment()))
    async with here.controllers():
        await until_settling(here)
        edit = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "evil:1"}]
        edited = await here.edit(DEPLOYMENTS, "operator", edit)
        restored = await here.until_inside(
            DEPLOYMENTS,
            "operator",
            until=lambda obj: obj["metadata"]["generation"] > edited["metadata"]["generation"],
        )
    assert restored["spec"]["template"]["spec"]["containers"][0]["image"] == "example.org/operator:1.0.0"


def test_what_was_applied_is_remembered_until_something_differs() -> None:
    clock, current = FakeClock(), {PLACE}
    settling = Settling(clock=clock, watched=lambda place: place in current)
    manifest: Object = {"metadata": {"uid": "a", "generation": 1, "resourceVersion": "5"}}

    def remembered(manifest: Object = manifest) -> bool:
        return settling.applied(KEY, manifest) is not None

    def note() -> None:
        settling.note(KEY, manifest, PLACE, workloads=[deployment()], editions={("uid", "one")})
        assert remembered({"metadata": {**manifest["metadata"], "resourceVersion": "6"}})

    note()
    settling.seen(KEY, ("uid", "one"))
    assert remembered()
    settling.seen(KEY, ("uid", "two"))
    assert not remembered()
    note()
    settling.seen(KEY, None)
    assert not remembered()
    note()
    assert not remembered({"metadata": {"uid": "a", "generation": 2}})
    note()
    current.clear()
    assert not remembered()
    current.add(PLACE)
    note()
    clock.skip(HOLDS)
    assert not remembered()
