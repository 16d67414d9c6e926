"""2.2.1: the reconcile of a Manifest that is wanted, step by step."""

from __future__ import annotations

from typing import Any

import pytest
from tests.domains.modules.manifests.world import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HOME,
    MODULES,
    NAMESPACES,
    SAMPLES,
    STATEFUL_SETS,
    ModuleWorld,
    condition,
    config_map,
    deployment,
    is_ready,
    operation,
    sample,
    sample_definition,
    state,
)

from hortus.domains.modules.names import MANAGED_BY_KYMA, Annotation, FieldOwner, Finalizer, Label
from hortus.domains.modules.types import KYMAS, MANIFESTS
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube.objects import Object, Resource

EVENTS = Resource("", "v1", "events", "Event")
SYNCED_ONE = {"group": "", "version": "v1", "kind": "ConfigMap", "name": "one", "namespace": MODULES}


def managers(obj: Object, subresource: str = "") -> set[str]:
    """The managers of fields by server-side apply."""
    return {
        entry["manager"]
        for entry in obj["metadata"]["managedFields"]
        if entry["operation"] == "Apply" and entry.get("subresource", "") == subresource
    }


async def test_a_module_without_workloads_becomes_ready(here: ModuleWorld) -> None:
    ref = here.layers.push(config_map("one", a="1"))
    await here.manifest(ref)
    async with here.controllers():
        ready = await here.until(is_ready)
    assert operation(ready) == "resources are ready"
    assert ready["status"]["synced"] == [SYNCED_ONE]
    assert {one["type"]: (one["status"], one["reason"], one["message"]) for one in ready["status"]["conditions"]} == {
        "Resources": ("True", "ResourcesAvailable", "resources are parsed and ready for use"),
        "Installation": ("True", "Ready", "installation is ready and resources can be used"),
    }
    assert ready["metadata"]["finalizers"] == [Finalizer.MANIFEST, Finalizer.LABEL_REMOVAL]
    assert ready["metadata"]["annotations"][Annotation.SYNCED_OCI_REF] == ref
    assert managers(ready) == managers(ready, "status") == {FieldOwner.MODULE_RESOURCES}
    found = await here.read(CONFIG_MAPS, "one", MODULES)
    assert found is not None
    assert found["data"] == {"a": "1"}
    assert managers(found) == {FieldOwner.MODULE_RESOURCES}
    assert set(found["metadata"]["labels"]) == {Label.MANAGED_BY, Label.COMPONENT, Label.PART_OF}


async def test_a_manifest_that_begins_brings_events_of_what_was_done_alone(here: ModuleWorld) -> None:
    """The conditions that are False because nothing was done yet are no news."""
    await here.manifest(here.layers.push(config_map("one")))
    async with here.controllers(), here.client.watch(EVENTS, HOME) as events:
        messages = []
        async for event in events:
            messages.append(event.object.get("note") or event.object.get("message"))
            if "installation is ready and resources can be used" in messages:
                break
    assert not {"resources not parsed", "installation is not ready"} & set(messages)


async def test_1_a_manifest_with_the_skip_label_is_left_alone(here: ModuleWorld) -> None:
    """The label counts as `true` in lower case only."""
    ref = here.layers.push(config_map("one"))
    await here.manifest(ref, "skipped", labels={Label.SKIP_RECONCILIATION: "true"})
    await here.manifest(ref, labels={Label.SKIP_RECONCILIATION: "True"})
    async with here.controllers():
        await here.until(is_ready)
    assert "state" not in (await here.client.get(MANIFESTS, "skipped", HOME)).get("status", {})


async def test_2_a_new_manifest_is_processing_before_anything_is_applied(here: ModuleWorld) -> None:
    seen: list[Object] = []
    async with here.client.watch(MANIFESTS, HOME) as events:
        await here.manifest(here.layers.push(config_map("one")), spec={"resource": sample()})
        async with here.controllers():
            async for event in events:
                if state(event.object):
                    seen.append(event.object)
                    break
    assert state(seen[0]) == "Processing"
    assert [(one["type"], one["status"]) for one in seen[0]["status"]["conditions"]] == [
        ("Resources", "True"),
        ("Installation", "False"),
        ("ModuleCR", "False"),
    ]


async def test_3_without_an_access_secret_the_state_is_error(here: ModuleWorld) -> None:
    await here.client.delete(SECRETS, "kubeconfig-one", HOME)
    await here.manifest(here.layers.push(config_map("one")))
    async with here.controllers():
        failed = await here.until(lambda obj: state(obj) == "Error")
        assert "access secret not found" in operation(failed)
        await here.secret()
        await here.until(is_ready)


async def test_3_two_access_secrets_are_an_error_that_names_both(here: ModuleWorld) -> None:
    await here.secret(name="kubeconfig-two")
    await here.manifest(here.layers.push(config_map("one")))
    async with here.controllers():
        failed = await here.until(lambda obj: state(obj) == "Error")
    assert "Secrets kubeconfig-one, kubeconfig-two" in operation(failed)


async def test_5_a_manifest_without_its_kyma_is_an_orphan(here: ModuleWorld) -> None:
    await here.client.delete(KYMAS, "one", HOME)
    await here.manifest(here.layers.push(config_map("one")))
    async with here.controllers():
        failed = await here.until(lambda obj: state(obj) == "Error")
    assert operation(failed).startswith("orphaned manifest detected: Kyma kcp-system/one does not exist")
    assert await here.read(CONFIG_MAPS, "one", MODULES) is None


async def test_5_an_old_manifest_that_the_kyma_does_not_list_is_an_orphan(here: ModuleWorld) -> None:
    made = await here.manifest(here.layers.push(config_map("one")))
    await here.manifest(here.layers.push(config_map("two")), "mandatory", labels={Label.MANDATORY_MODULE: "true"})
    here.clock = here.later(made, 400.0)
    async with here.controllers():
        failed = await here.until(lambda obj: state(obj) == "Error")
        assert "orphaned manifest detected: the status of Kyma kcp-system/one does not list it" in operation(failed)
        await here.until(is_ready, "mandatory")
        await here.list_in_status("one-module")
        await here.until(is_ready)


async def test_7_and_15_a_new_layer_is_noted_when_it_is_installed(here: ModuleWorld) -> None:
    first = here.layers.push(config_map("one", a="1"))
    second = here.layers.push(config_map("one", a="2"))
    await here.manifest(first)
    async with here.controllers():
        await here.until(is_ready)
        await here.move(second)
        await here.until(lambda obj: noted(obj) == second)
    found = await here.read(CONFIG_MAPS, "one", MODULES)
    assert found is not None
    assert found["data"] == {"a": "2"}


def noted(obj: Object) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(Annotation.SYNCED_OCI_REF, ""))


@pytest.mark.parametrize(
    ("source", "problem"),
    [({"ref": ""}, "ref is missing"), ({"name": 1}, "Expected `str`, got `int`"), ({"repo": ""}, "repo is missing")],
)
async def test_7_a_source_that_names_no_layer_is_an_error(here: ModuleWorld, source: Any, problem: str) -> None:
    await here.manifest(here.layers.push(config_map("one")))
    await here.client.patch(MANIFESTS, "one-module", {"spec": {"install": {"source": source}}}, HOME)
    async with here.controllers():
        failed = await here.until(lambda obj: state(obj) == "Error")
    assert f"Manifest kcp-system/one-module: spec.install.source: {problem}" in operation(failed)


async def test_8_a_layer_that_cannot_be_read_is_an_error_until_it_can(here: ModuleWorld) -> None:
    ref = here.layers.push(config_map("one"))
    here.layers.break_down(ref)
    await here.manifest(ref)
    async with here.controllers():
        failed = await here.until(lambda obj: state(obj) == "Error")
        assert operation(failed) == "the registry is down"
        assert condition(failed, "Resources") == ("False", "resources not parsed")
        here.layers.broken.clear()
        await here.until(is_ready)


async def test_10_definitions_and_their_objects_in_one_layer_are_installed(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(sample("in-the-layer"), sample_definition()))
    async with here.controllers():
        ready = await here.until(is_ready)
    assert await here.read(SAMPLES, "in-the-layer", MODULES) is not None
    assert {one["kind"] for one in ready["status"]["synced"]} == {"Sample", "CustomResourceDefinition"}


async def test_10_an_object_that_is_refused_does_not_hinder_the_others(here: ModuleWorld) -> None:
    bad = {**config_map("Not_A_Name"), "data": {"a": "1"}}
    await here.manifest(here.layers.push(bad, config_map("one")))
    async with here.controllers():
        failed = await here.until(lambda obj: state(obj) == "Error")
        assert "ConfigMap kyma-system/Not_A_Name" in operation(failed)
        assert await here.read(CONFIG_MAPS, "one", MODULES) is not None


async def test_10_the_module_wins_over_edits_of_its_fields(here: ModuleWorld) -> None:
    """Fields that others add stay (limit (e))."""
    edited = config_map("one", a="mine", b="mine")
    edited["metadata"]["labels"] = {Label.MANAGED_BY: MANAGED_BY_KYMA}
    await here.inside.create(CONFIG_MAPS, edited)
    await here.manifest(here.layers.push(config_map("one", a="1")))
    async with here.controllers():
        await here.until(is_ready)
    found = await here.read(CONFIG_MAPS, "one", MODULES)
    assert found is not None
    assert found["data"] == {"a": "1", "b": "mine"}


async def test_an_object_of_the_clusters_users_is_left_as_it_is_also_when_the_module_goes(here: ModuleWorld) -> None:
    before = await here.inside.create(CONFIG_MAPS, config_map("one", a="theirs"), field_manager="their-tool")
    await here.manifest(here.layers.push(config_map("one", a="1"), config_map("two")))
    async with here.controllers():
        failed = await here.until(lambda obj: state(obj) == "Error")
        assert "ConfigMap kyma-system/one: it exists and was written by their-tool" in operation(failed)
        assert await here.read(CONFIG_MAPS, "two", MODULES) is not None
        await here.client.delete(MANIFESTS, "one-module", HOME)
        await here.until_gone()
    assert await here.read(CONFIG_MAPS, "one", MODULES) == before
    assert await here.read(CONFIG_MAPS, "two", MODULES) is None


async def test_11_the_inventory_is_kept_before_anything_is_applied(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(config_map("one")))
    async with here.client.watch(MANIFESTS, HOME) as events, here.controllers():
        async for event in events:
            if (event.object.get("status") or {}).get("synced"):
                assert state(event.object) == "Processing"
                assert operation(event.object) == "resource syncTarget state diff detected"
                break
        await here.until(is_ready)


async def test_12_the_default_resource_is_created_once(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(sample_definition()), spec={"resource": sample()})
    async with here.controllers():
        ready = await here.until(is_ready)
        assert condition(ready, "ModuleCR") == ("True", "module CR was created")
        made = await here.read(SAMPLES, "default-sample", MODULES)
        assert made is not None
        assert made["spec"] == sample()["spec"]
        assert {one["manager"] for one in made["metadata"]["managedFields"]} == {FieldOwner.CUSTOM_RESOURCE}
        await here.inside.delete(SAMPLES, "default-sample", MODULES)
        second = here.layers.push(sample_definition(), config_map("one"))
        await here.move(second)
        await here.until(lambda obj: noted(obj) == second)
    assert await here.read(SAMPLES, "default-sample", MODULES) is None


async def test_12_by_option_the_default_resource_is_created_again(here: ModuleWorld) -> None:
    """Limit (k)."""
    here.flags = ["--module-keep-default-resource"]
    await here.manifest(here.layers.push(sample_definition()), spec={"resource": sample()})
    async with here.controllers():
        await here.until(is_ready)
        await here.inside.delete(SAMPLES, "default-sample", MODULES)
        second = here.layers.push(sample_definition(), config_map("one"))
        await here.move(second)
        await here.until(lambda obj: noted(obj) == second)
    assert await here.read(SAMPLES, "default-sample", MODULES) is not None


async def test_12_a_resource_of_its_users_stays_as_it_is(here: ModuleWorld) -> None:
    await here.define_samples()
    await here.inside.create(SAMPLES, {**sample(), "spec": {"mine": True}})
    await here.manifest(here.layers.push(sample_definition()), spec={"resource": sample()})
    async with here.controllers():
        await here.until(is_ready)
    found = await here.read(SAMPLES, "default-sample", MODULES)
    assert found is not None
    assert found["spec"] == {"mine": True}


async def test_12_a_resource_of_a_kind_that_is_not_served_is_an_error(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(config_map("one")), spec={"resource": sample()})
    async with here.controllers():
        failed = await here.until(lambda obj: state(obj) == "Error")
    assert "spec.resource: the cluster does not serve Sample kyma-system/default-sample" in operation(failed)


async def test_13_the_resource_finalizer_depends_on_the_policy(here: ModuleWorld) -> None:
    ref = here.layers.push(sample_definition())
    await here.manifest(ref, spec={"resource": sample(), "customResourcePolicy": "Ignore"})
    async with here.controllers():
        ready = await here.until(is_ready)
        assert Finalizer.CUSTOM_RESOURCE not in ready["metadata"]["finalizers"]
        assert await here.read(SAMPLES, "default-sample", MODULES) is None
        await here.client.patch(MANIFESTS, "one-module", {"spec": {"customResourcePolicy": "CreateAndDelete"}}, HOME)
        held = await here.until(lambda obj: Finalizer.CUSTOM_RESOURCE in obj["metadata"].get("finalizers", ()))
    assert managers(held) == {FieldOwner.MODULE_RESOURCES, FieldOwner.CUSTOM_RESOURCE}


async def test_14_a_module_is_ready_when_its_workload_is_available(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(config_map("one", a="1"), deployment()))
    async with here.controllers():
        waiting = await here.until(lambda obj: operation(obj) == "waiting for resources to become ready")
        assert state(waiting) == "Processing"
        assert condition(waiting, "Installation") == ("False", "installation is not ready")
        await here.report_deployment("operator", "True", "ReplicaSetUpdated", "False")
        await here.become_available("operator")
        await here.until(is_ready)
        await here.report_deployment("operator", "False", "ProgressDeadlineExceeded", "False")
        failed = await here.until(lambda obj: state(obj) == "Error")
        assert operation(failed) == "manager is in error state"
        assert "Deployment kyma-system/operator" in await here.event("ManagerFailed")
        assert condition(failed, "Installation") == ("False", "installation is not ready")
        await here.become_available("operator")
        await here.until(is_ready)


async def test_14_a_stateful_set_counts_its_replicas(here: ModuleWorld) -> None:
    store = deployment("store")
    store = {**store, "kind": "StatefulSet", "spec": {**store["spec"], "serviceName": "store", "replicas": 1}}
    await here.manifest(here.layers.push(store))
    here.flags = ["--manifest-requeue-busy-interval=100ms"]
    async with here.controllers():
        await here.until(lambda obj: operation(obj) == "waiting for resources to become ready")
        await here.inside.patch(
            STATEFUL_SETS, "store", {"status": {"replicas": 1, "readyReplicas": 1}}, MODULES, subresource="status"
        )
        found = await here.until(is_ready)
        assert operation(found) == "resources are ready"


async def test_14_by_option_the_state_of_the_resource_counts(here: ModuleWorld) -> None:
    here.flags = ["--module-readiness=resource", "--manifest-requeue-busy-interval=100ms"]
    await here.manifest(here.layers.push(sample_definition()), spec={"resource": sample()})
    async with here.controllers():
        await here.until(lambda obj: operation(obj) == "waiting for resources to become ready")
        await here.inside.patch(SAMPLES, "default-sample", {"status": {"state": "Ready"}}, MODULES)
        found = await here.until(is_ready)
        assert operation(found) == "resources are ready"


async def test_the_namespace_of_modules_is_shared_by_all(here: ModuleWorld) -> None:
    """Modules that bring the namespace along do not take it from each other, and none deletes it."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": MODULES, "labels": {"a": "1"}}}
    await here.manifest(here.layers.push(namespace, config_map("one")))
    await here.manifest(here.layers.push(namespace, config_map("two")), "two-module")
    before = await here.read(NAMESPACES, MODULES)
    async with here.controllers():
        ready = await here.until(is_ready)
        await here.until(is_ready, "two-module")
        assert {one["kind"] for one in ready["status"]["synced"]} == {"Namespace", "ConfigMap"}
        await here.client.delete(MANIFESTS, "one-module", HOME)
        await here.until_gone()
    assert await here.read(NAMESPACES, MODULES) == before


async def test_a_name_clash_refuses_the_second_module_and_leaves_the_first_untouched(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(config_map("one", a="first")))
    async with here.controllers():
        await here.until(is_ready)
        before = await here.read(CONFIG_MAPS, "one", MODULES)
        await here.manifest(here.layers.push(config_map("one", a="second"), config_map("two")), "two-module")
        failed = await here.until(lambda obj: state(obj) == "Error", "two-module")
        assert "ConfigMap kyma-system/one: it is part of the module of Manifest kcp-system/one-module" in operation(
            failed
        )
        await here.client.delete(MANIFESTS, "two-module", HOME)
        await here.until_gone("two-module")
        assert await here.read(CONFIG_MAPS, "one", MODULES) == before
        assert await here.read(CONFIG_MAPS, "two", MODULES) is None


async def test_an_object_in_a_forbidden_namespace_is_refused(here: ModuleWorld) -> None:
    there = config_map("one")
    there["metadata"]["namespace"] = "kube-system"
    await here.manifest(here.layers.push(there))
    async with here.controllers():
        failed = await here.until(lambda obj: state(obj) == "Error")
    assert "metadata.namespace is kube-system, which --module-forbidden-namespaces forbids" in operation(failed)


async def test_secrets_of_the_restricted_deployer_are_filled_from_the_control_plane(here: ModuleWorld) -> None:
    """2.2.3, transform 6."""
    here.flags = ["--restricted-default-modules=deployer"]
    await here.client.create(
        SECRETS,
        {
            "metadata": {"name": "tokens", "namespace": HOME, "labels": {Label.MODULE_NAME: "deployer"}},
            "data": {"token": "dmFsdWU="},
        },
    )
    asks = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "tokens", "namespace": MODULES, "annotations": {Annotation.INJECT_DATA: "true"}},
    }
    await here.manifest(here.layers.push(asks), labels={Label.MODULE_NAME: "deployer"})
    async with here.controllers():
        await here.until(is_ready)
    found = await here.read(SECRETS, "tokens", MODULES)
    assert found is not None
    assert found["data"] == {"token": "dmFsdWU="}


async def test_a_whole_sample_module_of_the_go_system_is_installed(here: ModuleWorld, upstream: Any) -> None:
    text = (upstream / "klm/manifests/template-operator-manifest.yaml").read_bytes()
    await here.manifest(here.layers.push_text(text))
    async with here.controllers():
        await here.until(lambda obj: operation(obj) == "waiting for resources to become ready")
        found = (await here.inside.list(DEPLOYMENTS)).items
        await here.become_available(found[0]["metadata"]["name"], found[0]["metadata"]["namespace"])
        ready = await here.until(is_ready)
    assert len(ready["status"]["synced"]) == 13
