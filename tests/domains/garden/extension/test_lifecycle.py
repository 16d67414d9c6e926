"""The frame with a small topic: operations that gardenlet asks for, on a seed behind real sockets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from tests.domains.garden.world import CONFIG_MAPS, OPERATION, SeedWorld, shoot_document
from tests.domains.granting import grant_verbs
from tests.waiting import until

from hortus.domains.garden.extension.composition import SeedView
from hortus.domains.garden.extension.context import ExtensionContext
from hortus.domains.garden.extension.references import referenced
from hortus.domains.garden.extension.topic import (
    ConfigFindings,
    ConfigReview,
    ExtensionFacts,
    ExtensionTopic,
    TopicObjects,
)
from hortus.domains.garden.types import EXTENSIONS, MANAGED_RESOURCES
from hortus.engine import Actor, StepError
from hortus.kube.objects import Object
from hortus.schema import FieldError
from hortus.schema.problems import required

FINALIZER = "extensions.gardener.cloud/notes"


class Notes(ExtensionTopic):
    """Writes the text of its configuration into a ConfigMap of the seed and one of the Shoot."""

    facts: ClassVar[ExtensionFacts] = ExtensionFacts(
        type="notes", seed_resource="notes-seed", shoot_resource="notes-shoot"
    )

    def __init__(self, view: SeedView) -> None:
        self.view = view
        self.rendered: list[str] = []
        self.outside = "a"
        self.failure: StepError | None = None
        self.asleep = False

    def dependencies(self, context: ExtensionContext) -> str:
        return self.outside

    def review(self, review: ConfigReview) -> ConfigFindings:
        config: Any = review.config or {}
        errors: list[FieldError] = [] if "text" in config else [required(f"{review.path}.text", "give a text")]
        if "secret" in config:
            found = referenced(review.shoot, config["secret"], kind="Secret", path=f"{review.path}.secret")
            errors += [found] if isinstance(found, FieldError) else []
        return ConfigFindings(tuple(errors))

    async def render(self, context: ExtensionContext) -> TopicObjects | None:
        self.rendered.append(context.operation)
        if self.failure is not None:
            raise self.failure
        if context.shoot.is_hibernated and self.asleep:
            return None
        text = f"{(context.config or {})['text']} {self.outside}"
        return TopicObjects(
            seed=(_note("seed-note", context.namespace, text),),
            shoot=(_note("shoot-note", "default", text),),
            state={"text": text},
        )


def _note(name: str, namespace: str, text: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": {"text": text},
    }


async def _shoot(seed: SeedWorld, **spec: Any) -> str:
    name = await seed.add_shoot(shoot_document(**spec))
    seed.server.create_cluster(name)
    return name


async def _note_of(seed: SeedWorld, name: str, namespace: str) -> str:
    found = await seed.get(CONFIG_MAPS, name, namespace)
    return found["data"]["text"] if found else ""


async def test_an_extension_gets_its_objects_and_reports_them_healthy(seed: SeedWorld) -> None:
    name = await _shoot(seed)
    async with seed.running(Notes):
        await seed.add_extension(name, "notes", {"text": "hello"})
        found = await seed.operated(name, "notes", kind="Create")
        assert FINALIZER in found["metadata"]["finalizers"]
        assert OPERATION not in (found["metadata"].get("annotations") or {})
        status = found["status"]
        assert {part: status["lastOperation"][part] for part in ("type", "state", "progress", "description")} == {
            "type": "Create",
            "state": "Succeeded",
            "progress": 100,
            "description": "Create of extension notes succeeded",
        }
        assert status["observedGeneration"] == found["metadata"]["generation"]
        assert status["state"] == {"text": "hello a"}
        assert "lastError" not in status

        async def healthy() -> Sequence[Any]:
            conditions = (await seed.extension(name, "notes"))["status"]["conditions"]
            return [one for one in conditions if one["status"] == "True"]

        (condition,) = await until(healthy)
        assert (condition["type"], condition["reason"]) == ("ExtensionsReady", "HealthCheckSuccessful")
        assert await _note_of(seed, "seed-note", name) == "hello a"
        resource = await seed.there(MANAGED_RESOURCES, "notes-seed", name)
        assert resource["spec"]["class"] == "seed"
        in_shoot = await seed.there(MANAGED_RESOURCES, "notes-shoot", name)
        assert in_shoot["spec"]["injectLabels"] == {"shoot.gardener.cloud/no-cleanup": "true"}
        assert "class" not in in_shoot["spec"]


async def test_a_changed_configuration_is_reconciled(seed: SeedWorld) -> None:
    name = await _shoot(seed)
    async with seed.running(Notes):
        await seed.add_extension(name, "notes", {"text": "one"})
        await seed.operated(name, "notes")
        await seed.configure(name, "notes", {"text": "two"})
        await seed.operated(name, "notes", kind="Reconcile")
        await until(lambda: _is(seed, "seed-note", name, "two a"))
        found = await seed.extension(name, "notes")
    assert (found["status"]["state"], "lastError" in found["status"]) == ({"text": "two a"}, False)


async def _is(seed: SeedWorld, note: str, namespace: str, text: str) -> bool:
    return await _note_of(seed, note, namespace) == text


async def test_nothing_is_written_for_an_extension_at_rest(seed: SeedWorld) -> None:
    name = await _shoot(seed)
    async with seed.running(Notes) as (topic,):
        assert isinstance(topic, Notes)
        await seed.add_extension(name, "notes", {"text": "one"})
        await seed.operated(name, "notes")

        async def healthy() -> bool:
            conditions = (await seed.extension(name, "notes"))["status"].get("conditions") or ()
            return any(one["status"] == "True" for one in conditions)

        await until(healthy)
    before = await seed.extension(name, "notes")
    async with seed.running(Notes) as (again,):
        assert isinstance(again, Notes)
        other = await seed.add_shoot(shoot_document("other"))
        seed.server.create_cluster(other)
        await seed.add_extension(other, "notes", {"text": "x"})
        await seed.operated(other, "notes")
        assert again.rendered == ["Create"], "the one at rest was rendered again after a restart"
        assert await seed.extension(name, "notes") == before


async def test_a_fact_outside_of_the_extension_leads_to_an_operation(seed: SeedWorld) -> None:
    name = await _shoot(seed)
    async with seed.running(Notes) as (topic,):
        assert isinstance(topic, Notes)
        await seed.add_extension(name, "notes", {"text": "one"})
        await seed.operated(name, "notes")
        topic.outside = "b"
        document = shoot_document()
        document["metadata"]["annotations"] = {"any": "change"}
        await seed.add_shoot(document)
        await until(lambda: _is(seed, "seed-note", name, "one b"))
        found = await seed.operated(name, "notes", kind="Reconcile")
    assert found["status"]["state"] == {"text": "one b"}


async def test_a_deleted_managed_resource_comes_back(seed: SeedWorld) -> None:
    name = await _shoot(seed)
    async with seed.running(Notes):
        await seed.add_extension(name, "notes", {"text": "one"})
        await seed.operated(name, "notes")
        await until(lambda: _is(seed, "seed-note", name, "one a"))
        former = await seed.there(MANAGED_RESOURCES, "notes-seed", name)
        await seed.client.delete(MANAGED_RESOURCES, "notes-seed", name)

        async def replaced() -> bool:
            found = await seed.get(MANAGED_RESOURCES, "notes-seed", name)
            return found is not None and found["metadata"]["uid"] != former["metadata"]["uid"]

        await until(replaced)
        await until(lambda: _is(seed, "seed-note", name, "one a"))
        again = await seed.there(MANAGED_RESOURCES, "notes-seed", name)
    assert again["spec"] == former["spec"]


async def test_deletion_removes_the_objects_of_seed_and_shoot(seed: SeedWorld) -> None:
    name = await _shoot(seed)
    async with seed.running(Notes):
        await seed.add_extension(name, "notes", {"text": "one"})
        await seed.operated(name, "notes")
        await until(lambda: _is(seed, "seed-note", name, "one a"))
        await seed.client.delete(EXTENSIONS, "notes", name)
        await seed.gone(EXTENSIONS, "notes", name)
        assert await seed.get(MANAGED_RESOURCES, "notes-seed", name) is None
        assert await seed.get(MANAGED_RESOURCES, "notes-shoot", name) is None
        assert await seed.get(CONFIG_MAPS, "seed-note", name) is None
        assert await _in_shoot(seed, name) is None


async def _in_shoot(seed: SeedWorld, name: str) -> Object | None:
    from hortus.kube import Client
    from hortus.kube.errors import NotFound

    async with Client.from_kubeconfig(seed.server.kubeconfig_for(name)) as shoot:
        try:
            return await shoot.get(CONFIG_MAPS, "shoot-note", "default")
        except NotFound:
            return None


async def test_migration_leaves_the_objects_of_the_shoot_and_the_restored_extension_takes_them(
    seed: SeedWorld,
) -> None:
    name = await _shoot(seed)
    async with seed.running(Notes):
        await seed.add_extension(name, "notes", {"text": "one"})
        await seed.operated(name, "notes")
        await until(lambda: _in_shoot(seed, name))
        await seed.ask(name, "notes", "migrate")
        moved = await seed.operated(name, "notes", kind="Migrate")
        assert FINALIZER not in (moved["metadata"].get("finalizers") or ())
        assert await seed.get(CONFIG_MAPS, "seed-note", name) is None
        assert await _in_shoot(seed, name) is not None
        state = moved["status"]["state"]
        await seed.ask(name, "notes", "reconcile")
        await seed.client.delete(EXTENSIONS, "notes", name)
        await seed.gone(EXTENSIONS, "notes", name)
        assert await _in_shoot(seed, name) is not None, "deletion after migration is no deletion"

        await seed.add_extension(name, "notes", {"text": "one"}, operation="wait-for-state")
        await seed.status(EXTENSIONS, "notes", name, {"state": state})
        await seed.ask(name, "notes", "restore")
        restored = await seed.operated(name, "notes", kind="Restore")
        assert FINALIZER in restored["metadata"]["finalizers"]
        await until(lambda: _is(seed, "seed-note", name, "one a"))


async def test_an_extension_that_waits_for_its_state_is_left_alone(seed: SeedWorld) -> None:
    name = await _shoot(seed)
    other = await seed.add_shoot(shoot_document("other"))
    seed.server.create_cluster(other)
    async with seed.running(Notes) as (topic,):
        assert isinstance(topic, Notes)
        await seed.add_extension(name, "notes", {"text": "one"}, operation="wait-for-state")
        await seed.add_extension(other, "notes", {"text": "one"})
        await seed.operated(other, "notes")
        assert topic.rendered == ["Create"]
        assert "lastOperation" not in ((await seed.extension(name, "notes")).get("status") or {})


async def test_force_deletion_ends_although_the_shoot_cannot_be_reached(seed: SeedWorld) -> None:
    name = await _shoot(seed)
    async with seed.running(Notes):
        await seed.add_extension(name, "notes", {"text": "one"})
        await seed.operated(name, "notes")
        await until(lambda: _in_shoot(seed, name))
        document = shoot_document()
        document["metadata"]["annotations"] = {"confirmation.gardener.cloud/force-deletion": "true"}
        await seed.add_shoot(document)
        await seed.client.delete(EXTENSIONS, "notes", name)
        await seed.gone(EXTENSIONS, "notes", name)
        assert await _in_shoot(seed, name) is not None
        assert await seed.get(CONFIG_MAPS, "seed-note", name) is None


async def test_a_failed_shoot_is_left_alone_until_it_is_retried(seed: SeedWorld) -> None:
    name = await _shoot(seed)
    async with seed.running(Notes) as (topic,):
        assert isinstance(topic, Notes)
        await seed.add_extension(name, "notes", {"text": "one"})
        await seed.operated(name, "notes")
        await until(lambda: _is(seed, "seed-note", name, "one a"))
        failed = shoot_document()
        failed["status"]["lastOperation"]["state"] = "Failed"
        await seed.add_shoot(failed)
        await until(lambda: topic.view.clusters.raw.get(("", name)) is not None)
        await until(lambda: _is_failed(topic, name))
        await seed.configure(name, "notes", {"text": "two"})
        other = await seed.add_shoot(shoot_document("other"))
        seed.server.create_cluster(other)
        await seed.add_extension(other, "notes", {"text": "x"})
        await seed.operated(other, "notes")
        assert await _note_of(seed, "seed-note", name) == "one a"
        await seed.add_shoot(shoot_document())
        await until(lambda: _is(seed, "seed-note", name, "two a"))


async def test_the_deletion_of_an_extension_goes_on_while_its_shoot_is_failed(seed: SeedWorld) -> None:
    name = await _shoot(seed)
    async with seed.running(Notes) as (topic,):
        assert isinstance(topic, Notes)
        await seed.add_extension(name, "notes", {"text": "one"})
        await seed.operated(name, "notes")
        failed = shoot_document()
        failed["status"]["lastOperation"]["state"] = "Failed"
        await seed.add_shoot(failed)
        await until(lambda: _is_failed(topic, name))
        await seed.client.delete(EXTENSIONS, "notes", name)
        await seed.gone(EXTENSIONS, "notes", name)
        assert await seed.get(CONFIG_MAPS, "seed-note", name) is None


def _is_failed(topic: Notes, name: str) -> bool:
    from hortus.kube.objects import ObjectKey

    found = topic.view.clusters.get(ObjectKey("", name))
    return (
        found is not None
        and found.shoot.status.last_operation is not None
        and (found.shoot.status.last_operation.state == "Failed")
    )


async def test_a_hibernated_shoot_keeps_what_it_has(seed: SeedWorld) -> None:
    name = await _shoot(seed)
    async with seed.running(Notes) as (topic,):
        assert isinstance(topic, Notes)
        await seed.add_extension(name, "notes", {"text": "one"})
        await seed.operated(name, "notes")
        topic.asleep = True
        await seed.add_shoot(shoot_document(hibernation={"enabled": True}))
        await seed.operated(name, "notes", kind="Reconcile")
        assert await seed.get(MANAGED_RESOURCES, "notes-seed", name) is not None
        topic.outside = "b"
        await seed.add_shoot(shoot_document())
        await until(lambda: _is(seed, "seed-note", name, "one b"))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (None, "spec.providerConfig.text: Required value: give a text"),
        (
            {"text": "x", "secret": "absent"},
            'spec.providerConfig.secret: Invalid value: "absent": spec.resources of the Shoot has no entry of this '
            "name; there are: map",
        ),
        (
            {"text": "x", "secret": "map"},
            'spec.providerConfig.secret: Invalid value: "map": refers to a ConfigMap; it must refer to a Secret',
        ),
    ],
)
async def test_a_configuration_that_cannot_be_used_is_the_owners_problem(
    seed: SeedWorld, config: Any, message: str
) -> None:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "m"}
    name = await _shoot(seed, resources=[{"name": "map", "resourceRef": reference}])
    async with seed.running(Notes):
        await seed.add_extension(name, "notes", config)
        found = await seed.operated(name, "notes", state="Error")
        error = found["status"]["lastError"]
        assert (error["description"], error["codes"]) == (message, ["ERR_CONFIGURATION_PROBLEM"])
        await seed.configure(name, "notes", {"text": "good"})
        found = await seed.operated(name, "notes")
        assert "lastError" not in found["status"]


async def test_a_failure_of_others_is_retried_without_the_code_of_the_owner(seed: SeedWorld) -> None:
    name = await _shoot(seed)
    async with seed.running(Notes) as (topic,):
        assert isinstance(topic, Notes)
        topic.failure = StepError("the registry is away", reason="Away", actor=Actor.PROVIDER)
        await seed.add_extension(name, "notes", {"text": "one"})
        found = await seed.operated(name, "notes", state="Error")
        assert found["status"]["lastError"]["description"] == "the registry is away"
        assert "codes" not in found["status"]["lastError"]
        topic.failure = None
        await seed.operated(name, "notes", kind="Create")


async def test_an_extension_without_a_cluster_waits_for_gardenlet(seed: SeedWorld) -> None:
    async with seed.running(Notes):
        await seed.add_extension("shoot--bar--foo", "notes", {"text": "one"})
        found = await until(lambda: _with_error(seed))
        assert found == "Cluster shoot--bar--foo does not exist: gardenlet creates it with the namespace"
        await _shoot(seed)
        await seed.operated("shoot--bar--foo", "notes")


async def _with_error(seed: SeedWorld) -> str:
    status = (await seed.extension("shoot--bar--foo", "notes")).get("status") or {}
    return str((status.get("lastError") or {}).get("description", ""))


async def test_an_extension_of_a_namespace_that_is_not_trusted_needs_its_deputy(seed: SeedWorld) -> None:
    """Gardener-resource-manager would do it for whoever may create a ManagedResource there."""
    name = await _shoot(seed)
    async with seed.running(Notes, trusted=""):
        await seed.add_extension(name, "notes", {"text": "hello"})

        async def refused() -> str:
            status = (await seed.extension(name, "notes")).get("status") or {}
            return str((status.get("lastError") or {}).get("description", ""))

        text = f"may not create managedresources of resources.gardener.cloud in namespace {name}"
        assert text in await until(refused)
        assert await seed.get(MANAGED_RESOURCES, "notes-seed", name) is None
    await grant_verbs(seed.client, name, MANAGED_RESOURCES.group, MANAGED_RESOURCES.plural, "create", where=name)
    async with seed.running(Notes, trusted=""):
        await seed.operated(name, "notes", kind="Create")
