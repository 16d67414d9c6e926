"""2.2.1 step 9 and 2.2.5 to 2.2.7: pruning, deletion, and handing a module to its user."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domains.modules.manifests.world import (
    CONFIG_MAPS,
    CRDS,
    DEPLOYMENTS,
    HOME,
    MODULES,
    SAMPLES,
    ModuleWorld,
    condition,
    config_map,
    deployment,
    gone,
    is_ready,
    operation,
    sample,
    sample_definition,
    state,
)
from tests.fronts import front

from hortus.domains.modules.manifests.rendering import ObjectId
from hortus.domains.modules.manifests.synced import leaving, member_of, synced_of, wave
from hortus.domains.modules.names import Annotation, Finalizer, Label
from hortus.domains.modules.types import MANIFESTS
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.leftovers.types import LEFTOVERS
from hortus.kube.objects import Object, Resource

SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
CLUSTER_BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
BUSY = ["--manifest-requeue-busy-interval=100ms"]
HOLDS: Any = {"finalizers": ["example.org/holds"]}


def held(obj: Object) -> Object:
    return {**obj, "metadata": {**obj["metadata"], **HOLDS}}


async def let_go(here: ModuleWorld, resource: Resource, name: str) -> None:
    await here.inside.patch(resource, name, {"metadata": {"finalizers": None}}, MODULES)


# 2.2.1 step 9.


async def test_9_what_left_the_module_is_deleted_before_the_new_is_applied(here: ModuleWorld) -> None:
    here.flags = BUSY
    second = here.layers.push(config_map("two"), config_map("kept"))
    await here.manifest(here.layers.push(held(config_map("one")), config_map("kept")))
    async with here.controllers():
        await here.until(is_ready)
        await here.move(second)
        await gone_or_deleting(here, "one")
        assert await here.read(CONFIG_MAPS, "two", MODULES) is None
        await let_go(here, CONFIG_MAPS, "one")
        ready = await here.until(lambda obj: noted(obj) == second and is_ready(obj))
    assert {one["name"] for one in ready["status"]["synced"]} == {"two", "kept"}
    assert await here.read(CONFIG_MAPS, "one", MODULES) is None


async def gone_or_deleting(here: ModuleWorld, name: str) -> None:
    async with here.inside.watch(CONFIG_MAPS, MODULES, initial_events=True) as events:
        async for event in events:
            metadata = event.object["metadata"]
            if metadata.get("name") == name and (event.type == "DELETED" or metadata.get("deletionTimestamp")):
                return


def noted(obj: Object) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(Annotation.SYNCED_OCI_REF, ""))


async def test_9_a_layer_that_lost_objects_without_a_new_digest_deletes_nothing(here: ModuleWorld) -> None:
    """Guards against truncated input: Warning, and the layer is read again."""
    here.flags = ["--manifest-requeue-success-interval=100ms"]
    ref = here.layers.push(config_map("one"), config_map("two"))
    await here.manifest(ref)
    async with here.controllers():
        await here.until(is_ready)
    whole = here.layers.layers[ref]
    here.layers.layers[ref] = here.layers.layers[here.layers.push(config_map("one"))]
    async with here.controllers():
        warned = await here.until(lambda obj: state(obj) == "Warning")
        assert "1 objects are missing in layer" in operation(warned)
        assert await here.read(CONFIG_MAPS, "two", MODULES) is not None
        here.layers.layers[ref] = whole
        await here.until(is_ready)


async def test_9_an_object_that_another_took_meanwhile_stays(here: ModuleWorld) -> None:
    second = here.layers.push(config_map("two"))
    await here.manifest(here.layers.push(config_map("one")))
    await here.manifest(here.layers.push(config_map("other")), "other-module")
    async with here.controllers():
        await here.until(is_ready)
        await here.until(is_ready, "other-module")
        taken = {"metadata": {"annotations": {Annotation.OWNED_BY: f"{HOME}/other-module"}}}
        await here.inside.patch(CONFIG_MAPS, "one", taken, MODULES)
        await here.move(second)
        await here.until(lambda obj: noted(obj) == second and is_ready(obj))
    assert await here.read(CONFIG_MAPS, "one", MODULES) is not None


_ids = st.builds(
    ObjectId,
    namespace=st.sampled_from(["", "a", "kyma-system"]),
    name=st.sampled_from(["x", "y", "kyma-system"]),
    group=st.sampled_from(["", "apps"]),
    version=st.sampled_from(["v1", "v2"]),
    kind=st.sampled_from(["Namespace", "Deployment"]),
)


@given(st.lists(_ids), st.lists(_ids))
def test_9_what_leaves_is_the_difference_without_the_shared_namespace(before: list[Any], after: list[Any]) -> None:
    gone = list(leaving(map(synced_of, before), after, shared="kyma-system"))
    left = {member_of(one) for one in gone}
    assert left == {member_of(synced_of(one)) for one in before} - {member_of(synced_of(one)) for one in after} - {
        ("", "Namespace", "", "kyma-system")
    }
    assert not list(leaving(map(synced_of, before), before, shared="kyma-system"))


# 2.2.5.


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("ConfigMap", 0),
        ("StatefulSet", 0),
        ("Sample", 0),
        ("ValidatingWebhookConfiguration", 0),
        ("CustomResourceDefinition", 1),
        ("Namespace", 1),
        ("ServiceAccount", 1),
        ("Role", 1),
        ("ClusterRole", 1),
        ("RoleBinding", 1),
        ("ClusterRoleBinding", 1),
        ("Service", 1),
        ("Deployment", 1),
    ],
)
def test_operators_outlive_what_they_may_have_to_finalize(kind: str, expected: int) -> None:
    """2.2.5."""
    assert wave(Resource("", "v1", "", kind)) == expected


async def test_the_second_wave_waits_until_the_first_is_gone(here: ModuleWorld) -> None:
    """2.2.5."""
    here.flags = BUSY
    await here.manifest(here.layers.push(held(config_map("one")), deployment()))
    async with here.controllers():
        await here.until(lambda obj: operation(obj) == "waiting for resources to become ready")
        await here.client.delete(MANIFESTS, "one-module", HOME)
        deleting = await here.until(lambda obj: state(obj) == "Deleting")
        assert "ConfigMap kyma-system/one" in condition(deleting, "Deletion")[1]
        assert await here.read(DEPLOYMENTS, "operator", MODULES) is not None
        await let_go(here, CONFIG_MAPS, "one")
        await here.until_gone()
    assert await here.read(DEPLOYMENTS, "operator", MODULES) is None


# 2.2.6.


async def test_1_without_an_access_secret_the_manifest_goes_and_a_leftover_remains(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(config_map("one")))
    async with here.controllers():
        await here.until(is_ready)
    # Between two processes: of two watches of one, that of Manifests may be the faster.
    await here.client.delete(SECRETS, "kubeconfig-one", HOME)
    await here.client.delete(MANIFESTS, "one-module", HOME)
    async with here.controllers():
        await here.until_gone()
    (left,) = (await here.client.list(LEFTOVERS, HOME)).items
    assert left["spec"]["reason"] == "ClusterGone"
    assert [item["what"] for item in left["spec"]["items"]] == ["ConfigMap kyma-system/one"]


async def test_what_is_left_in_a_silent_cluster_is_recorded_with_the_way_to_it(here: ModuleWorld) -> None:
    here.flags = ["--module-detach-after=1ms", "--manifest-requeue-busy-interval=100ms"]
    async with AsyncExitStack() as answering:
        way = await answering.enter_async_context(front(here.server, f"{here.name}-one"))
        await here.lead_to(way.kubeconfig)
        await here.manifest(here.layers.push(config_map("one")))
        async with here.controllers():
            await here.until(is_ready)
            await answering.aclose()
            await here.client.delete(MANIFESTS, "one-module", HOME)
            await here.until_gone()
    (left,) = (await here.client.list(LEFTOVERS, HOME)).items
    cluster = left["spec"]["cluster"]
    assert (cluster["identity"], cluster["address"]) == (await here.uid_inside(), way.address)


async def account_inside(here: ModuleWorld, name: str) -> str:
    """The token of an administrator of the cluster, until the binding of that name is deleted."""
    await here.inside.create(SERVICE_ACCOUNTS, {"metadata": {"name": name, "namespace": "default"}})
    role = {"apiGroup": CLUSTER_BINDINGS.group, "kind": "ClusterRole", "name": "cluster-admin"}
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]
    await here.inside.create(CLUSTER_BINDINGS, {"metadata": {"name": name}, "roleRef": role, "subjects": subjects})
    spec = {"spec": {"expirationSeconds": 3600}}
    made = await here.inside.create_subresource(SERVICE_ACCOUNTS, name, "token", spec, "default")
    return str(made["status"]["token"])


async def test_what_is_left_in_a_cluster_that_refuses_is_recorded_with_the_way_to_it(here: ModuleWorld) -> None:
    here.flags = ["--module-detach-after=1ms", "--manifest-requeue-busy-interval=100ms"]
    kubeconfig = here.server.kubeconfig_dict(f"{here.name}-one")
    kubeconfig["users"][0]["user"] = {"token": await account_inside(here, "installer")}
    await here.lead_to(kubeconfig)
    await here.manifest(here.layers.push(config_map("one")))
    async with here.controllers():
        await here.until(is_ready)
        await here.inside.delete(CLUSTER_BINDINGS, "installer")
        await here.client.delete(MANIFESTS, "one-module", HOME)
        await here.until_gone()
    (left,) = (await here.client.list(LEFTOVERS, HOME)).items
    assert left["spec"]["reason"] == "NotPruned"
    assert left["spec"]["cluster"]["identity"] == await here.uid_inside()


async def test_1_a_cluster_that_never_answers_again_does_not_hold_a_deletion_for_ever(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(config_map("one")))
    async with here.controllers():
        await here.until(is_ready)
    await here.unreachable()
    await here.client.delete(MANIFESTS, "one-module", HOME)
    async with here.controllers():
        failed = await here.until(lambda obj: state(obj) == "Error")
        assert operation(failed).startswith("cluster of Kyma one: ")
    here.flags = ["--module-detach-after=1ms", "--manifest-requeue-busy-interval=100ms"]
    async with here.controllers():
        await here.until_gone()
    (left,) = (await here.client.list(LEFTOVERS, HOME)).items
    assert left["spec"]["reason"] == "ClusterUnreachable"


async def test_1_an_unmanaged_manifest_leaves_the_cluster_untouched(here: ModuleWorld) -> None:
    await here.manifest(
        here.layers.push(config_map("one")),
        annotations={Annotation.IS_UNMANAGED: "true"},
        finalizers=[Finalizer.MANIFEST, Finalizer.CUSTOM_RESOURCE],
    )
    await here.client.delete(MANIFESTS, "one-module", HOME)
    async with here.controllers():
        await here.until_gone()
    assert not [one for one in here.requests.answers if one[1] == "remote" and one[0] != "GET"]


async def test_2_a_layer_that_cannot_be_read_any_more_does_not_hold_a_deletion(here: ModuleWorld) -> None:
    ref = here.layers.push(sample_definition(), config_map("one"))
    await here.manifest(ref, spec={"resource": sample()})
    async with here.controllers():
        await here.until(is_ready)
    here.layers.break_down(ref)
    await here.client.delete(MANIFESTS, "one-module", HOME)
    here.flags = BUSY
    async with here.controllers():
        await here.until_gone()
    assert await here.read(CONFIG_MAPS, "one", MODULES) is None


@pytest.mark.parametrize("policy", ["CreateAndDelete", "Ignore"])
async def test_3_resources_of_users_block_a_deletion_until_they_are_gone(here: ModuleWorld, policy: str) -> None:
    here.flags = BUSY
    ref = here.layers.push(sample_definition(), config_map("one"))
    await here.manifest(ref, spec={"resource": sample(), "customResourcePolicy": policy})
    async with here.controllers():
        await here.until(is_ready)
        await here.inside.create(SAMPLES, sample("of-a-user"))
        await here.client.delete(MANIFESTS, "one-module", HOME)
        blocked = await here.until(lambda obj: state(obj) == "Deleting")
        assert operation(blocked) == "waiting for module crs deletion"
        assert condition(blocked, "Deletion") == (
            "False",
            "the cluster's owner has to delete Sample kyma-system/of-a-user: "
            "the module is in use as long as they exist",
        )
        assert await here.read(CONFIG_MAPS, "one", MODULES) is not None
        await here.inside.delete(SAMPLES, "of-a-user", MODULES)
        await here.until_gone()
    assert await here.read(CONFIG_MAPS, "one", MODULES) is None


@pytest.mark.parametrize("policy", ["CreateAndDelete", "Ignore"])
async def test_3_a_definition_that_is_gone_before_the_rest_does_not_block(here: ModuleWorld, policy: str) -> None:
    """Discovery is asked again after the definition was deleted."""
    here.flags = BUSY
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "last", "namespace": MODULES}}
    ref = here.layers.push(sample_definition(), held(account))
    await here.manifest(ref, spec={"resource": sample(), "customResourcePolicy": policy})
    async with here.controllers():
        await here.until(is_ready)
        await here.client.delete(MANIFESTS, "one-module", HOME)
        await gone(here.inside, CRDS, f"{SAMPLES.plural}.{SAMPLES.group}")
        await here.until(lambda obj: operation(obj) == "waiting for the deletion of module resources")
        seen = here.requests.answers.copy()
        await here.until_more_requests(len(seen) + 10)
        assert state(await here.client.get(MANIFESTS, "one-module", HOME)) == "Deleting"
        await let_go(here, SERVICE_ACCOUNTS, "last")
        await here.until_gone()


async def test_3_with_policy_ignore_the_default_resource_blocks_too(here: ModuleWorld) -> None:
    here.flags = BUSY
    ref = here.layers.push(sample_definition(), config_map("one"))
    await here.manifest(ref, spec={"resource": sample(), "customResourcePolicy": "Ignore"})
    async with here.controllers():
        await here.until(is_ready)
        await here.inside.create(SAMPLES, sample())
        await here.client.delete(MANIFESTS, "one-module", HOME)
        await here.until(lambda obj: operation(obj) == "waiting for module crs deletion")
        assert await here.inside.get(CONFIG_MAPS, "one", MODULES)
        await here.inside.delete(SAMPLES, "default-sample", MODULES)
        await here.until_gone()


async def test_4_the_default_resource_goes_first_with_the_module_in_place(here: ModuleWorld) -> None:
    """5: Its finalizer holds the Manifest meanwhile."""
    here.flags = BUSY
    await here.manifest(here.layers.push(sample_definition(), config_map("one")), spec={"resource": held(sample())})
    async with here.controllers():
        await here.until(is_ready)
        await here.client.delete(MANIFESTS, "one-module", HOME)
        await here.inside.delete(CONFIG_MAPS, "one", MODULES)
        waiting = await here.until(lambda obj: operation(obj) == "waiting for module crs deletion")
        assert Finalizer.CUSTOM_RESOURCE in waiting["metadata"]["finalizers"]
        await here.until_inside(CONFIG_MAPS, "one")
        await let_go(here, SAMPLES, "default-sample")
        await here.until_gone()
    assert await here.read(CONFIG_MAPS, "one", MODULES) is None


async def test_a_deletion_goes_on_after_the_definition_of_the_resource_is_gone(here: ModuleWorld) -> None:
    """A namespace takes longer to go than the definition, so that a later pass meets a kind that is not served."""
    here.flags = BUSY
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "sample-system"}}
    await here.manifest(here.layers.push(sample_definition(), space), spec={"resource": sample()})
    async with here.controllers():
        await here.until(is_ready)
        await here.inside.create(CONFIG_MAPS, {**held(config_map("held")), **in_space("held")})
        await here.client.delete(MANIFESTS, "one-module", HOME)
        await gone(here.inside, CRDS, sample_definition()["metadata"]["name"])
        waiting = await here.until(lambda obj: condition(obj, "Deletion")[0] == "False")
        assert waiting["metadata"]["finalizers"]
        await here.inside.patch(CONFIG_MAPS, "held", {"metadata": {"finalizers": None}}, "sample-system")
        await here.until_gone()


def in_space(name: str) -> Object:
    return {"metadata": {"name": name, "namespace": "sample-system", **HOLDS}}


async def test_5_finalizers_of_others_are_waited_for(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(config_map("one")), finalizers=["example.org/other"])
    async with here.controllers():
        await here.until(is_ready)
        await here.client.delete(MANIFESTS, "one-module", HOME)
        waiting = await here.until(lambda obj: state(obj) == "Deleting")
        assert operation(waiting) == "waiting as other finalizers are present: example.org/other"
        await here.until(lambda obj: obj["metadata"].get("finalizers") == ["example.org/other"])


async def test_skip_does_not_hold_a_deletion(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(config_map("one")))
    async with here.controllers():
        await here.until(is_ready)
        label = {"metadata": {"labels": {Label.SKIP_RECONCILIATION: "true"}}}
        skipped = await here.client.patch(MANIFESTS, "one-module", label, HOME)
        assert skipped["metadata"]["finalizers"]
        await here.client.delete(MANIFESTS, "one-module", HOME)
        await here.until_gone()


# 2.2.7.


async def test_an_unmanaged_module_keeps_its_objects_without_our_label(here: ModuleWorld) -> None:
    """2.2.7."""
    await here.manifest(here.layers.push(sample_definition(), config_map("one")), spec={"resource": sample()})
    async with here.controllers():
        await here.until(is_ready)
        before = await here.read(CONFIG_MAPS, "one", MODULES)
        annotation = {"metadata": {"annotations": {Annotation.IS_UNMANAGED: "true"}}}
        await here.client.patch(MANIFESTS, "one-module", annotation, HOME)
        await here.until_gone()
    after = await here.read(CONFIG_MAPS, "one", MODULES)
    assert before is not None
    assert after is not None
    assert Label.MANAGED_BY not in after["metadata"]["labels"]
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert await here.read(SAMPLES, "default-sample", MODULES) is not None


async def test_a_module_that_is_managed_again_goes_on_with_its_objects(here: ModuleWorld) -> None:
    """2.2.7."""
    ref = here.layers.push(config_map("one"))
    await here.manifest(ref)
    async with here.controllers():
        await here.until(is_ready)
        before = await here.read(CONFIG_MAPS, "one", MODULES)
        annotation = {"metadata": {"annotations": {Annotation.IS_UNMANAGED: "true"}}}
        await here.client.patch(MANIFESTS, "one-module", annotation, HOME)
        await here.until_gone()
        await here.manifest(ref)
        await here.until(is_ready)
    after = await here.read(CONFIG_MAPS, "one", MODULES)
    assert before is not None
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["metadata"]["labels"][Label.MANAGED_BY] == "kyma"


async def test_another_module_may_take_what_an_unmanaged_one_left(here: ModuleWorld) -> None:
    ref = here.layers.push(config_map("one"))
    await here.manifest(ref, annotations={Annotation.IS_UNMANAGED: "true"})
    async with here.controllers():
        await here.until_gone()
        await here.manifest(ref, "two-module")
        await here.until(is_ready, "two-module")
    left = (await here.client.list(MANIFESTS, HOME)).items
    assert [obj["metadata"]["name"] for obj in left] == ["two-module"]
