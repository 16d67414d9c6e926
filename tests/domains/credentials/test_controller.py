"""A Secret with a kubeconfig that works, for every GardenerCluster, always: the controller through a real socket."""

from __future__ import annotations

import asyncio
import base64

import pytest
from prometheus_client.utils import floatToGoString
from structlog.testing import capture_logs
from tests.domains.credentials.world import CANARY, CRDS, World, at, condition, content, kubeconfig, world

from hortus.domains.credentials.garden import GardenFailure
from hortus.domains.credentials.types import GARDENER_CLUSTERS, Annotation, GardenerCluster, Label
from hortus.engine import Actor
from hortus.engine.kubeconfigs import SECRETS, ProofFailed, checksum, encoded
from hortus.kube.errors import Invalid, NotFound
from hortus.kube.objects import Object, parse_time
from hortus.schema import crd
from hortus.testing.apiserver import running_apiserver

HOUR = 3600.0
THRESHOLD = 820.8 * 60
"""0.95 of 0.6 of 24 h."""
CREATED, ROTATED = "KubeconfigSecretCreated", "KubeconfigSecretRotated"


async def test_a_new_cluster_gets_its_secret_and_says_so(here: World) -> None:
    here.know_shoot(uid="s-1", url="https://api.c-1")
    began = here.clock.now()
    async with here.controlled():
        owner = await here.create()
        shown = await here.until_condition(CREATED)
        secret = await here.secret()
    assert shown == {
        "type": "KubeconfigManagement",
        "status": "True",
        "observedGeneration": 1,
        "lastTransitionTime": at(began),
        "reason": "KubeconfigSecretCreated",
        "message": "Secret created successfully.",
    }
    cluster = await here.client.get(GARDENER_CLUSTERS, "rt-1", here.namespace)
    assert cluster["status"] == {"state": "Ready", "conditions": [shown]}
    assert cluster["metadata"].get("finalizers") is None
    served = ("uid", "resourceVersion", "creationTimestamp", "managedFields")
    assert {**secret, "metadata": {k: v for k, v in secret["metadata"].items() if k not in served}} == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "kubeconfig-rt-1",
            "namespace": here.namespace,
            "labels": {
                "kyma-project.io/shoot-name": "c-1",
                "kyma-project.io/runtime-id": "rt-1",
                "kyma-project.io/region": "eu-1",
                "operator.kyma-project.io/managed-by": "infrastructure-manager",
                "operator.kyma-project.io/cluster-name": "rt-1",
            },
            "annotations": {
                "operator.kyma-project.io/last-sync": "2023-01-01T12:00:00Z",
                "credentials.hortus.dev/expiration": "2023-01-02T12:00:00Z",
                "credentials.hortus.dev/checksum": checksum(encoded(kubeconfig("c-1-1"))),
                "credentials.hortus.dev/cluster": "s-1 https://api.c-1",
            },
            "ownerReferences": [
                {
                    "apiVersion": "infrastructuremanager.kyma-project.io/v1",
                    "kind": "GardenerCluster",
                    "name": "rt-1",
                    "uid": owner["metadata"]["uid"],
                }
            ],
        },
        "type": "Opaque",
        "data": {"config": base64.b64encode(kubeconfig("c-1-1")).decode()},
    }
    assert here.proof.proven == [kubeconfig("c-1-1")]


async def test_at_rest_nothing_is_written_and_the_garden_is_left_alone(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        await here.rest()
        writes, revision = here.requests.writes, await here.revision()
        for _ in range(3):
            await here.advance(4 * HOUR)
            await here.rest()
        assert (here.requests.writes, await here.revision()) == (writes, revision)
        assert here.garden.calls == ["c-1"]


async def test_it_rotates_at_the_threshold_and_not_a_second_before(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        await here.advance(THRESHOLD - 1)
        await here.rest()
        assert here.garden.calls == ["c-1"]
        await here.advance(1)
        shown = await here.until_condition(ROTATED)
        assert shown["message"] == "Secret rotated successfully."
        assert shown["lastTransitionTime"] == "2023-01-01T12:00:00Z"
        secret = await here.secret()
        assert content(secret) == kubeconfig("c-1-2")
        assert secret["metadata"]["annotations"][Annotation.LAST_SYNC] == "2023-01-02T01:40:48Z"
        await here.advance(THRESHOLD)
        secret = await here.until_secret(lambda obj: content(obj) == kubeconfig("c-1-3"))
        assert secret["metadata"]["annotations"][Annotation.LAST_SYNC] == "2023-01-02T15:21:36Z"
        event = await here.until_event(ROTATED)
    assert event["type"] == "Normal"
    assert event["message"] == f"Kubeconfig in secret {here.namespace}/kubeconfig-rt-1 replaced: due"


async def test_a_restart_neither_rotates_nor_forgets_when_to(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
    await here.advance(5 * HOUR)
    async with here.controlled():
        await here.rest()
        assert here.garden.calls == ["c-1"]
        await here.advance(THRESHOLD - 5 * HOUR - 1)
        await here.rest()
        assert here.garden.calls == ["c-1"]
        await here.advance(1)
        await here.until_condition(ROTATED)
    async with here.controlled():
        await here.rest()
        assert (await here.until_condition(ROTATED))["reason"] == ROTATED
    assert len(here.garden.calls) == 2


async def test_what_was_due_while_nobody_was_there_is_done_at_once(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
    await here.advance(40 * HOUR)
    async with here.controlled():
        await here.until_condition(ROTATED)
        assert content(await here.secret()) == kubeconfig("c-1-2")


@pytest.mark.parametrize("value", ["true", "", "false", "x" * 1000])
async def test_a_forced_rotation_leaves_no_conflict_in_the_log(here: World, value: str) -> None:
    with capture_logs() as logs:
        async with here.controlled():
            await here.create()
            await here.until_condition(CREATED)
            await here.advance(60)
            await here.annotate(value=value)
            await here.until_condition(ROTATED)
            await here.rest()
            cluster = await here.client.get(GARDENER_CLUSTERS, "rt-1", here.namespace)
            assert Annotation.FORCE_ROTATION not in (cluster["metadata"].get("annotations") or {})
            secret = await here.secret()
            assert content(secret) == kubeconfig("c-1-2")
            assert secret["metadata"]["annotations"][Annotation.LAST_SYNC] == "2023-01-01T12:01:00Z"
            await here.rest()
    assert here.garden.calls == ["c-1", "c-1"]
    assert here.requests.codes("409") == 0
    assert [entry for entry in logs if entry["log_level"] not in ("info", "debug")] == []


async def test_during_a_forced_rotation_the_old_kubeconfig_stays_until_the_new_one_is_there(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        here.garden.gate, here.garden.entered = asyncio.Event(), asyncio.Event()
        await here.annotate()
        await asyncio.wait_for(here.garden.entered.wait(), 60)
        assert content(await here.secret()) == kubeconfig("c-1-1")
        here.garden.gate.set()
        await here.until_condition(ROTATED)
        assert content(await here.secret()) == kubeconfig("c-1-2")


@pytest.mark.parametrize(
    "edit",
    [
        {"data": {"config": base64.b64encode(b"theirs").decode()}},
        {"data": {"config": None}},
        {"data": None},
        {"metadata": {"annotations": {Annotation.LAST_SYNC: "yesterday"}}},
        {"metadata": {"annotations": {Annotation.LAST_SYNC: "2123-01-01T00:00:00Z"}}},
        {"metadata": {"annotations": {Annotation.LAST_SYNC: None}}},
        {"metadata": {"annotations": None}},
        {"metadata": {"labels": {Label.SHOOT_NAME: None}}},
        {"metadata": {"labels": {Label.SHOOT_NAME: "c-2"}}},
        {"metadata": {"labels": None}},
    ],
)
async def test_a_secret_that_somebody_edited_comes_back(here: World, edit: Object) -> None:
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        before = await here.secret()
        await here.advance(60)
        await here.change(SECRETS, "kubeconfig-rt-1", edit)
        after = await here.until_secret(lambda obj: content(obj) == kubeconfig("c-1-2"))
        await here.rest()
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert after["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]
    assert after["metadata"]["annotations"][Annotation.LAST_SYNC] == "2023-01-01T12:01:00Z"
    assert here.requests.codes("500") == 0


@pytest.mark.parametrize(
    "edit",
    [
        {"labels": {Label.REGION: "elsewhere"}},
        {"labels": {Label.CLUSTER_NAME: None, Label.MANAGED_BY: "somebody"}},
        {"ownerReferences": None},
    ],
)
async def test_lost_labels_and_owners_come_back_without_a_new_kubeconfig(here: World, edit: Object) -> None:
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        before = await here.secret()
        await here.change(SECRETS, "kubeconfig-rt-1", {"metadata": edit})
        whole = ("labels", "ownerReferences", "annotations")
        await here.until_secret(
            lambda obj: (
                obj["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
                and all(obj["metadata"].get(part) == before["metadata"][part] for part in whole)
            )
        )
        await here.rest()
    assert here.garden.calls == ["c-1"]


async def test_what_others_keep_in_the_secret_stays(here: World) -> None:
    theirs = {"data": {"theirs": "eHg="}, "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        await here.change(SECRETS, "kubeconfig-rt-1", theirs)
        await here.rest()
        await here.advance(THRESHOLD)
        await here.until_condition(ROTATED)
        secret = await here.secret()
    assert secret["data"]["theirs"] == "eHg="
    assert secret["metadata"]["labels"]["a"] == "b"
    assert secret["metadata"]["annotations"]["c"] == "d"


async def test_a_deleted_secret_comes_back(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        await here.client.delete(SECRETS, "kubeconfig-rt-1", here.namespace)
        secret = await here.until_secret(lambda obj: content(obj) == kubeconfig("c-1-2"))
        await here.rest()
    assert secret["metadata"]["labels"][Label.CLUSTER_NAME] == "rt-1"


async def test_a_deleted_cluster_takes_its_secret_along(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        await here.client.delete(GARDENER_CLUSTERS, "rt-1", here.namespace)
        await here.until_gone("Secret", "kubeconfig-rt-1")
        await here.rest()
        assert here.metrics_of("rt-1") == []


@pytest.mark.parametrize("owned", [True, False])
async def test_a_cluster_deleted_while_the_controller_was_down_takes_its_secret_along(here: World, owned: bool) -> None:
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
    if not owned:
        # As the Go system writes them.
        await here.change(SECRETS, "kubeconfig-rt-1", {"metadata": {"ownerReferences": None}})
    await here.client.delete(GARDENER_CLUSTERS, "rt-1", here.namespace)
    async with here.controlled():
        await here.until_gone("Secret", "kubeconfig-rt-1")
    with pytest.raises(NotFound):
        await here.secret()


async def test_a_secret_in_another_namespace_goes_with_its_cluster_too() -> None:
    async with running_apiserver() as server, world(server) as here:
        here.watched = "*"
        async with here.controlled():
            await here.create(here.cluster(secret={"namespace": "default"}))
            await here.until_condition(CREATED)
            secret = await here.client.get(SECRETS, "kubeconfig-rt-1", "default")
            assert "ownerReferences" not in secret["metadata"]
        await here.client.delete(GARDENER_CLUSTERS, "rt-1", here.namespace)
        async with here.controlled():
            await here.until_gone("Secret", "kubeconfig-rt-1", "default")


async def test_a_secret_that_the_go_system_laid_out_in_another_namespace_is_had_by_naming_its_owner() -> None:
    async with running_apiserver() as server, world(server) as here:
        here.watched = "*"
        labels = {
            Label.SHOOT_NAME: "c-1",
            Label.MANAGED_BY: "infrastructure-manager",
            Label.CLUSTER_NAME: "rt-1",
        }
        metadata = {"name": "kubeconfig-rt-1", "namespace": "default", "labels": labels}
        laid_out = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"config": "eHg="}}
        made = await here.client.create(SECRETS, laid_out)
        cluster = await here.create(here.cluster(secret={"namespace": "default"}))
        async with here.controlled():
            shown = await here.until_condition("ConditionReasonFailedToCreateSecret")
            assert "secret default/kubeconfig-rt-1 exists" in shown["message"]
            await here.rest(namespace="default")
            assert await here.client.get(SECRETS, "kubeconfig-rt-1", "default") == made
        owner = f"{here.namespace}/rt-1/{cluster['metadata']['uid']}"
        said = {"metadata": {"annotations": {Annotation.OWNER: owner}}}
        await here.client.patch(SECRETS, "kubeconfig-rt-1", said, "default")
        async with here.controlled():
            await here.until_condition(ROTATED)


async def test_so_does_one_where_the_controller_does_not_watch(here: World) -> None:
    name = f"kubeconfig-{here.namespace}"
    async with here.controlled():
        await here.create(here.cluster(secret={"namespace": "default", "name": name}))
        await here.until_condition(CREATED)
        await here.rest()
        assert here.garden.calls == ["c-1"]
    await here.client.delete(GARDENER_CLUSTERS, "rt-1", here.namespace)
    assert content(await here.client.get(SECRETS, name, "default")) == kubeconfig("c-1-1")
    async with here.controlled():
        await here.until_gone("GardenerCluster", "rt-1")
        await here.until_gone("Secret", name, "default")


async def test_a_cluster_deleted_in_the_middle_of_a_rotation_leaves_nothing_behind(here: World) -> None:
    async with here.controlled():
        await here.create(here.cluster(secret={"namespace": here.namespace}))
        await here.until_condition(CREATED)
        here.garden.gate, here.garden.entered = asyncio.Event(), asyncio.Event()
        await here.annotate()
        await asyncio.wait_for(here.garden.entered.wait(), 60)
        await here.client.delete(GARDENER_CLUSTERS, "rt-1", here.namespace)
        await here.until_gone("Secret", "kubeconfig-rt-1")
        here.garden.gate.set()
        await here.rest()
        await here.rest()
        left = await here.client.list(SECRETS, here.namespace)
        assert [obj["metadata"]["name"] for obj in left.items if obj.get("type") == "Opaque"] == []
        assert here.metrics_of("rt-1") == []


async def test_a_cluster_deleted_before_its_first_secret_is_there_leaves_nothing_behind(here: World) -> None:
    here.garden.gate = asyncio.Event()
    async with here.controlled():
        await here.create()
        await asyncio.wait_for(here.garden.entered.wait(), 60)
        await here.client.delete(GARDENER_CLUSTERS, "rt-1", here.namespace)
        await here.until_gone("GardenerCluster", "rt-1")
        here.garden.gate.set()
        await here.rest()
        await here.until_gone("Secret", "kubeconfig-rt-1")
        await here.rest()
        with pytest.raises(NotFound):
            await here.secret()
        assert here.metrics_of("rt-1") == []


async def test_a_shoot_that_appears_later_is_taken_up_without_a_hand(here: World) -> None:
    here.garden.shoots.clear()
    async with here.controlled():
        await here.create()
        shown = await here.until_condition("FailedToGetKubeconfig")
        assert shown["status"] == "False"
        assert shown["message"].startswith("Failed to get kubeconfig. Error: failed to get shoot: ")
        cluster = await here.client.get(GARDENER_CLUSTERS, "rt-1", here.namespace)
        assert cluster["status"]["state"] == "Error"
        await here.rest()
        here.garden.shoots.add("c-1")
        here.know_shoot()
        await here.until_condition(CREATED)


async def test_where_the_garden_cannot_be_watched_a_missing_shoot_is_asked_for_again(here: World) -> None:
    here.garden.shoots.clear()
    async with here.controlled():
        await here.create()
        await here.until_condition("FailedToGetKubeconfig")
        await here.rest()
        here.garden.shoots.add("c-1")
        await here.advance(311)
        shown = await here.until_condition(CREATED)
    assert shown["status"] == "True"


@pytest.mark.parametrize("change", [{"uid": "s-2"}, {"url": "https://api.elsewhere"}])
async def test_a_cluster_made_again_or_moved_gets_a_kubeconfig_at_once(here: World, change: dict[str, str]) -> None:
    here.know_shoot()
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        await here.rest()
        here.know_shoot(**change, version=2)
        await here.until_secret(lambda obj: content(obj) == kubeconfig("c-1-2"))
        await here.rest()
        here.know_shoot(**change, version=3)
        await here.rest()
    assert len(here.garden.calls) == 2


async def test_a_shoot_that_was_not_known_when_the_kubeconfig_was_written_costs_no_new_one(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        here.know_shoot()
        await here.until_secret(lambda obj: Annotation.CLUSTER in (obj["metadata"].get("annotations") or {}))
        await here.rest()
    assert here.garden.calls == ["c-1"]


async def test_another_shoot_in_the_spec_means_another_kubeconfig_in_the_same_secret(here: World) -> None:
    here.garden.shoots.add("c-2")
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        await here.change(GARDENER_CLUSTERS, "rt-1", {"spec": {"shoot": {"name": "c-2"}}})
        secret = await here.until_secret(lambda obj: content(obj) == kubeconfig("c-2-2"))
        await here.rest()
    assert secret["metadata"]["labels"][Label.SHOOT_NAME] == "c-2"


async def test_a_cluster_without_labels_finds_its_secret_again(here: World) -> None:
    async with here.controlled():
        await here.create(here.cluster(metadata={"labels": {}}))
        await here.until_condition(CREATED)
    async with here.controlled():
        await here.rest()
    assert here.garden.calls == ["c-1"]


async def test_two_secrets_of_one_shoot_are_an_error_that_names_them(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        other = {"metadata": {"name": "other", "namespace": here.namespace, "labels": {Label.SHOOT_NAME: "c-1"}}}
        await here.client.create(SECRETS, other)
        shown = await here.until_condition("FailedToCheckSecret")
        assert shown["message"].startswith("Failed to get secret. Error: unexpected number of secrets")
        assert "kubeconfig-rt-1" in shown["message"] and f"{here.namespace}/other" in shown["message"]
        await here.client.delete(SECRETS, "other", here.namespace)
        await here.until_condition(CREATED)
        assert content(await here.secret()) == kubeconfig("c-1-1")


async def test_a_secret_of_somebody_else_with_the_wanted_name_is_never_touched(here: World) -> None:
    foreign = {"metadata": {"name": "kubeconfig-rt-1", "namespace": here.namespace}, "data": {"config": "eHg="}}
    made = await here.client.create(SECRETS, foreign)
    async with here.controlled():
        await here.create()
        shown = await here.until_condition("ConditionReasonFailedToCreateSecret")
        assert shown["message"].startswith("Failed to create secret. Error: secret")
        assert "cluster owner: delete it" in shown["message"]
        await here.rest()
        assert await here.secret() == made
        await here.client.delete(GARDENER_CLUSTERS, "rt-1", here.namespace)
        await here.until_gone("GardenerCluster", "rt-1")
        await here.rest()
        assert await here.secret() == made


async def test_a_secret_that_another_system_made_for_the_shoot_is_taken_over(here: World) -> None:
    theirs = {
        "metadata": {"name": "old-name", "namespace": here.namespace, "labels": {Label.SHOOT_NAME: "c-1"}},
        "data": {"config": "eHg="},
    }
    await here.client.create(SECRETS, theirs)
    async with here.controlled():
        await here.create()
        await here.until_condition(ROTATED)
        secret = await here.client.get(SECRETS, "old-name", here.namespace)
        assert content(secret) == kubeconfig("c-1-1")
        assert secret["metadata"]["labels"][Label.CLUSTER_NAME] == "rt-1"
        with pytest.raises(NotFound):
            await here.secret()


async def test_two_clusters_of_one_shoot_share_its_secret_in_peace(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        await here.create(here.cluster("rt-2", metadata={"labels": {"unlike": "the-other"}}))
        await here.until_condition(CREATED, "rt-2")
        for name in ("rt-1", "rt-2"):
            await here.rest(name)
        revision = await here.revision()
        for name in ("rt-1", "rt-2"):
            await here.rest(name)
        assert await here.revision() == revision
        assert here.garden.calls == ["c-1"]
        await here.client.delete(GARDENER_CLUSTERS, "rt-1", here.namespace)
        await here.until("Secret", "kubeconfig-rt-2", lambda obj: content(obj) == kubeconfig("c-1-2"))
        await here.until_gone("Secret", "kubeconfig-rt-1")


async def test_two_clusters_of_one_shoot_made_at_once_make_one_secret(here: World) -> None:
    here.garden.gate = asyncio.Event()
    async with here.controlled():
        await here.create()
        await here.garden.entered.wait()
        await here.create(here.cluster("rt-2"))
        await here.rest("rt-2")
        assert here.garden.calls == ["c-1"]
        here.garden.gate.set()
        for name in ("rt-1", "rt-2"):
            await here.until_condition(CREATED, name)
        assert here.garden.calls == ["c-1"]
        with pytest.raises(NotFound):
            await here.secret("kubeconfig-rt-2")


async def test_a_secret_that_somebody_laid_out_elsewhere_for_the_shoot_gets_no_kubeconfig() -> None:
    async with running_apiserver() as server, world(server) as here:
        here.watched = "*"
        bait = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bait", "namespace": "default"}}
        bait["metadata"]["labels"] = {Label.SHOOT_NAME: "c-1"}
        made = await here.client.create(SECRETS, bait)
        async with here.controlled():
            await here.create()
            await here.until_condition(CREATED)
            assert content(await here.secret()) == kubeconfig("c-1-1")
        assert await here.client.get(SECRETS, "bait", "default") == made


async def test_two_clusters_of_one_shoot_that_want_different_keys_get_a_report(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        await here.create(here.cluster("rt-2", secret={"key": "other"}))
        shown = await here.until_condition("FailedToCheckSecret", "rt-2")
        assert f"is kept for GardenerCluster {here.namespace}/rt-1" in shown["message"]
        assert "lacks key other" in shown["message"]
        assert here.garden.calls == ["c-1"]


FAILURES = {
    "down": GardenFailure("failed to create AdminKubeconfigRequest: no route", actor=Actor.OPERATOR),
    "fault": GardenFailure("failed to create AdminKubeconfigRequest: internal", actor=Actor.PROVIDER),
    "busy": GardenFailure("failed to create AdminKubeconfigRequest: slow down", actor=Actor.NOBODY, retry_after=30),
}


@pytest.mark.parametrize("failure", FAILURES)
async def test_the_old_secret_stays_byte_for_byte_while_the_garden_fails(here: World, failure: str) -> None:
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        before = await here.secret()
        here.garden.failure = FAILURES[failure]
        await here.annotate()
        shown = await here.until_condition("FailedToGetKubeconfig")
        assert shown["message"] == f"Failed to get kubeconfig. Error: {FAILURES[failure]}"
        for _ in range(5):
            await here.advance(60)
            await here.rest()
        assert await here.secret() == before
        here.garden.failure = None
        await here.advance(330)
        await here.until_condition(ROTATED)
        cluster = await here.client.get(GARDENER_CLUSTERS, "rt-1", here.namespace)
        assert cluster["status"]["state"] == "Ready"
        assert Annotation.FORCE_ROTATION not in (cluster["metadata"].get("annotations") or {})


async def test_the_same_failure_again_and_again_is_written_once(here: World) -> None:
    here.garden.failure = FAILURES["fault"]
    async with here.controlled():
        await here.create()
        await here.until_condition("FailedToGetKubeconfig")
        await here.until_event("FailedToGetKubeconfig")
        revision = await here.revision()
        calls = len(here.garden.calls)
        for _ in range(4):
            await here.advance(100)
            await here.rest()
        assert await here.revision() == revision
        assert len(here.garden.calls) > calls


async def test_a_garden_that_names_a_time_is_not_asked_before(here: World) -> None:
    here.garden.failure = FAILURES["busy"]
    async with here.controlled():
        await here.create()
        await here.until_condition("FailedToGetKubeconfig")
        here.garden.failure = None
        await here.advance(29)
        assert here.garden.calls == ["c-1"]
        await here.advance(4.1)
        await here.until_condition(CREATED)


async def test_failures_are_asked_about_less_and_less_often(here: World) -> None:
    here.garden.failure = FAILURES["down"]
    async with here.controlled():
        await here.create()
        await here.until_condition("FailedToGetKubeconfig")
        asked = []
        for _ in range(3):
            before = len(here.garden.calls)
            await here.advance(600)
            asked.append(len(here.garden.calls) - before)
        assert asked[0] > 8
        # Every 270 to 330 s, for ever.
        assert {1, 2, 3} >= set(asked[1:])


async def test_a_kubeconfig_that_does_not_work_replaces_nothing(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        before = await here.secret()
        here.proof.failure = ProofFailed("the new kubeconfig is refused by 10.0.0.1: Unauthorized (garden operator)")
        await here.advance(THRESHOLD)
        shown = await here.until_condition("FailedToGetKubeconfig")
        assert "the new kubeconfig is refused" in shown["message"]
        assert await here.secret() == before
        here.proof.failure = None
        await here.advance(1000)
        await here.until_condition(ROTATED)


async def test_a_hibernated_cluster_gets_its_kubeconfig_unproven(here: World) -> None:
    here.proof.failure = ProofFailed("no answer", unreachable=True)
    here.garden.asleep.add("c-1")
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        here.garden.asleep.clear()
        await here.annotate()
        await here.until_condition("FailedToGetKubeconfig")
        here.proof.failure = ProofFailed("refused")
        here.garden.asleep.add("c-1")
        await here.advance(1000)
        await here.rest()
        assert content(await here.secret()) == kubeconfig("c-1-1")


async def test_a_shorter_grant_is_renewed_within_its_own_life(here: World) -> None:
    here.garden.lifetime = HOUR
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        await here.advance(34.2 * 60 - 1)
        await here.rest()
        assert len(here.garden.calls) == 1
        await here.advance(1)
        await here.until_condition(ROTATED)


async def test_a_fleet_made_in_one_minute_does_not_rotate_in_one_minute(here: World) -> None:
    # UIDs are random, and so are the minutes: twelve clusters had less than eight of them in one run of 390.
    clusters, here.spread = 30, 0.05
    async with here.controlled():
        for number in range(clusters):
            here.garden.shoots.add(f"c-{number}")
            await here.create(here.cluster(f"rt-{number}", shoot=f"c-{number}"))
        for number in range(clusters):
            await here.until_condition(CREATED, f"rt-{number}")
        await here.advance(THRESHOLD)
        times = set()
        for number in range(clusters):
            await here.until_condition(ROTATED, f"rt-{number}")
            secret = await here.secret(f"kubeconfig-rt-{number}")
            times.add(parse_time(secret["metadata"]["annotations"][Annotation.LAST_SYNC]) // 60)
    assert len(times) >= 14


async def test_the_metrics_carry_the_go_systems_names_and_labels(here: World) -> None:
    state = (
        'infrastructure_manager_im_gardener_clusters_state{reason="%s",runtimeId="rt-1",shootName="c-1",state="%s"} 1.0'
    )
    expiration = (
        'infrastructure_manager_im_kubeconfig_expiration{expirationDuration="86400",expires="%d",'
        'rotationDuration="51840",runtimeId="rt-1",shootName="c-1"} %s'
    )
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        await here.rest()
        ends = parse_time("2023-01-02T12:00:00Z")
        assert here.metrics() == [state % (CREATED, "Ready"), expiration % (ends, floatToGoString(ends))]
        await here.advance(THRESHOLD)
        await here.until_condition(ROTATED)
        await here.rest()
        ends += THRESHOLD
        assert here.metrics() == [state % (ROTATED, "Ready"), expiration % (ends, floatToGoString(ends))]
        here.garden.failure = FAILURES["down"]
        await here.annotate()
        await here.until_condition("FailedToGetKubeconfig")
        await here.rest()
        assert here.metrics() == [
            state % ("FailedToGetKubeconfig", "Error"),
            expiration % (ends, floatToGoString(ends)),
        ]


async def test_a_cluster_that_cannot_be_read_is_reported_and_rests() -> None:
    """Behind a definition without a schema, which an operator may have installed."""
    async with running_apiserver() as server, world(server) as here:
        loose = crd(GardenerCluster)["spec"]["versions"][0]
        loose["schema"]["openAPIV3Schema"]["properties"]["spec"] = _ANY
        await here.client.patch(CRDS, "gardenerclusters.infrastructuremanager.kyma-project.io", _versions(loose))
        async with here.controlled():
            unreadable = here.cluster()
            unreadable["spec"]["shoot"] = {"name": 3}
            while True:  # the definition takes a moment
                try:
                    await here.create(unreadable)
                    break
                except Invalid:
                    await asyncio.sleep(0)
            shown = await here.until_condition("FailedToCheckSecret")
            assert "Expected `str`, got `int` - at `$.spec.shoot.name`" in shown["message"]
            await here.create(here.cluster("rt-2"))
            await here.until_condition(CREATED, "rt-2")
            await here.change(GARDENER_CLUSTERS, "rt-1", {"spec": {"shoot": {"name": "c-1"}}})
            await here.until_condition(CREATED)


_ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _versions(version: Object) -> Object:
    return {"spec": {"versions": [version]}}


async def test_clusters_elsewhere_are_not_ours(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        elsewhere = here.cluster("elsewhere", metadata={"namespace": "default", "labels": {}})
        elsewhere["metadata"]["name"] = f"elsewhere-{here.namespace}"
        await here.client.create(GARDENER_CLUSTERS, elsewhere)
        await here.rest()
        found = await here.client.get(GARDENER_CLUSTERS, f"elsewhere-{here.namespace}", "default")
        assert condition(found) == {}
        assert here.garden.calls == ["c-1"]


async def test_no_credential_ever_leaves_the_secret(here: World) -> None:
    with capture_logs() as logs:
        async with here.controlled():
            await here.create()
            await here.until_condition(CREATED)
            await here.annotate()
            await here.until_condition(ROTATED)
            here.proof.failure = ProofFailed("no")
            await here.annotate()
            await here.until_condition("FailedToGetKubeconfig")
            await here.rest()
            scraped = here.metrics()
        cluster = await here.client.get(GARDENER_CLUSTERS, "rt-1", here.namespace)
        secret = await here.secret()
        shown = [logs, scraped, cluster, await here.events(), secret["metadata"]]
    assert CANARY not in repr(shown)
    assert base64.b64encode(CANARY.encode())[:6].decode() not in repr(shown)
    assert CANARY.encode() in content(secret)
