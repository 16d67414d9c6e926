"""hortus.testing for authors: controllers on a cluster of their own, as an account with their permissions alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated

import pytest
import structlog
from tests.oracles.controlplane import find_assets, running_control_plane, why_none
from tests.waiting import until

from hortus.engine import (
    NEVER,
    Actor,
    KindController,
    Manager,
    Permission,
    ReconcileContext,
    Result,
    Source,
    StepError,
    Steps,
    Watch,
    controller,
)
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey, Resource, key_of
from hortus.schema import Condition, Fields, Kind, ListMap, ObjectMeta, kind
from hortus.testing import FakeClock, TestCluster, condition_is, install, wait_for, wait_gone
from hortus.testing.apiserver import TestServer
from hortus.testing.clusters import RunningControllers

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
GUARD = "example.org/guard"


class NoteSpec(Fields, frozen=True):
    text: str = ""


class NoteStatus(Fields, frozen=True):
    conditions: Annotated[tuple[Condition, ...], ListMap("type")] = ()


@kind(group="example.org", version="v1", status=True)
class Note(Kind, frozen=True):
    """A text."""

    spec: NoteSpec
    status: NoteStatus = NoteStatus()


class Keeper(KindController[ReconcileContext[Note]]):
    """Keeps the text of a Note in a ConfigMap, until its finalizer is removed."""

    kind = Note
    owns = (CONFIG_MAPS,)
    field_manager = "keeper"

    def steps(self, context: ReconcileContext[Note]) -> Steps:
        return (self._guard, self._keep)

    def finalize_steps(self, context: ReconcileContext[Note]) -> Steps:
        return (self._leave,)

    async def _guard(self, context: ReconcileContext[Note]) -> None:
        await context.ensure_finalizer(GUARD)

    async def _keep(self, context: ReconcileContext[Note]) -> None:
        await context.apply(CONFIG_MAPS, {"data": {"text": context.object.spec.text}})
        context.ready("Kept")

    async def _leave(self, context: ReconcileContext[Note]) -> None:
        await context.remove_finalizer(GUARD)


class Reader(KindController[ReconcileContext[Note]]):
    """Reads the Secret that the text of a Note names, without a permission for that."""

    kind = Note
    field_manager = "reader"

    def steps(self, context: ReconcileContext[Note]) -> Steps:
        return (self._read,)

    async def _read(self, context: ReconcileContext[Note]) -> None:
        try:
            await self.wiring.client.get(SECRETS, context.object.spec.text, context.key.namespace)
        except NotFound as error:
            raise StepError("no such Secret", reason="NoSecret", actor=Actor.USER, after=60) from error
        context.ready("Read")


class AllowedReader(Reader):
    permissions = (Permission("", ("secrets",), ("get",), "reads the Secrets that Notes name"),)


class Follower(KindController[ReconcileContext[Note]]):
    """Reports the names of the keys in the Secret that a Note names, also when the Secret changes."""

    kind = Note
    field_manager = "follower"
    permissions = (Permission("", ("secrets",), ("list", "watch"), "follows the Secrets that Notes name"),)

    def sources(self, manager: Manager) -> Sequence[Source]:
        self.secrets = manager.cache(SECRETS)
        return [Watch(self.secrets, to=self._notes_with)]

    def _notes_with(self, secret: Object) -> Iterable[ObjectKey]:
        changed = key_of(secret)
        for key in self.wiring.cache.raw:
            note = self.wiring.cache.get(key)
            if note is not None and (key.namespace, note.spec.text) == (changed.namespace, changed.name):
                yield key

    def steps(self, context: ReconcileContext[Note]) -> Steps:
        return (self._report,)

    async def _report(self, context: ReconcileContext[Note]) -> None:
        secret = self.secrets.get(ObjectKey(context.key.namespace, context.object.spec.text))
        if secret is None:
            raise StepError("no such Secret", reason="NoSecret", actor=Actor.USER, after=NEVER)
        context.ready("Followed", ",".join(sorted(secret.get("data", {}))))


class Patient(KindController[ReconcileContext[Note]]):
    """Reports a Note as ready an hour after the first reconcile."""

    kind = Note
    field_manager = "patient"
    began = 0.0

    def steps(self, context: ReconcileContext[Note]) -> Steps:
        return (self._wait,)

    async def _wait(self, context: ReconcileContext[Note]) -> Result | None:
        self.began = self.began or context.now
        if context.now < self.began + 3600:
            context.reconciling("Waiting")
            return Result(requeue_after=self.began + 3600 - context.now)
        context.ready("Waited")
        return None


def note(name: str, text: str = "") -> Note:
    return Note(metadata=ObjectMeta(name=name), spec=NoteSpec(text=text))


async def _expect_life(cluster: TestCluster) -> None:
    """Asserts that a Note is kept, changed and deleted."""
    async with cluster.running(Keeper) as running:
        made = await running.create(note("a", "good day"))
        assert made.metadata.namespace == "default"
        await running.wait_for(Note, "a", until=condition_is("Ready", reason="Kept"))
        await running.patch(Note, "a", {"spec": {"text": "good evening"}})
        found = await running.wait_for(CONFIG_MAPS, "a", until=lambda one: one["data"]["text"] == "good evening")
        assert found["metadata"]["ownerReferences"][0]["uid"] == made.metadata.uid
        await running.delete(Note, "a")


async def test_the_permissions_that_follow_from_a_controller_are_enough(hortus_cluster: TestCluster) -> None:
    await _expect_life(hortus_cluster)
    async with hortus_cluster.client() as client:
        await wait_gone(client, CONFIG_MAPS, "a")


@pytest.mark.real_apiserver
async def test_they_are_enough_on_a_real_server_that_checks_owners(tmp_path: Path) -> None:
    assets = find_assets()
    if assets is None:
        pytest.skip(why_none())
    flags = ("--enable-admission-plugins=OwnerReferencesPermissionEnforcement",)
    with running_control_plane(assets, tmp_path, flags=flags, with_controllers=False) as server:
        await _expect_life(TestCluster(server.kubeconfig))


async def _failed(running: RunningControllers) -> None:
    """Return when a reconcile has failed; waits are short from then on."""
    await until(lambda: running._failures)
    running._patience = 0.5


async def test_a_request_without_permission_fails_the_test_with_the_fix(hortus_cluster: TestCluster) -> None:
    async with hortus_cluster.running(Reader) as running:
        await running.create(note("a", "s"))
        await _failed(running)
        with pytest.raises(AssertionError) as error:
            await running.wait_for(Note, "a", until=condition_is("Ready"))
    text = str(error.value)
    assert text.startswith("waited 0.5 s for notes a in namespace default; it is:\napiVersion: example.org/v1\n")
    assert "managedFields" not in text
    assert 'the last reconcile of default/a failed: Forbidden: secrets "s" is forbidden' in text
    assert text.endswith("(declare it in the controller's `permissions`)")


async def test_a_declared_permission_is_granted(hortus_cluster: TestCluster) -> None:
    async with hortus_cluster.running(AllowedReader) as running:
        await running.client.create(SECRETS, {"metadata": {"name": "s", "namespace": "default"}})
        await running.create(note("a", "s"))
        found = await running.wait_for(Note, "a", until=lambda found: bool(found.status.conditions))
        assert condition_is("Ready", reason="Read")(found)


async def test_a_controller_follows_the_objects_that_its_own_name(hortus_cluster: TestCluster) -> None:
    def shows(keys: str) -> Callable[[Note], bool]:
        return lambda found: any(one.message == keys for one in found.status.conditions)

    async with hortus_cluster.running(Follower) as running:
        await running.create(note("a", "s"))
        await running.wait_for(Note, "a", until=condition_is("Stalled", reason="NoSecret"))
        metadata = {"name": "s", "namespace": "default"}
        await running.client.create(SECRETS, {"metadata": metadata, "stringData": {"one": "1"}})
        await running.wait_for(Note, "a", until=shows("one"))
        await running.client.patch(SECRETS, "s", {"stringData": {"two": "2"}}, "default")
        found = await running.wait_for(Note, "a", until=shows("one,two"))
        assert not condition_is("Stalled")(found)


async def test_controllers_that_cannot_start_fail_the_test(hortus_cluster: TestCluster) -> None:
    class Widgets(Keeper):
        owns = (Resource("example.org", "v1", "widgets", "Widget"),)

    with pytest.raises(AssertionError, match=r"did not start within 3 s: .*the CRD widgets\.example\.org is not inst"):
        async with hortus_cluster.running(Widgets, patience=3.0):
            raise RuntimeError("it started")


async def test_a_fake_clock_is_the_time_of_the_controllers(
    hortus_cluster: TestCluster, hortus_clock: FakeClock
) -> None:
    async with hortus_cluster.running(Patient, clock=hortus_clock) as running:
        await running.create(note("a"))
        await running.wait_for(Note, "a", until=condition_is("Reconciling", reason="Waiting"))
        await hortus_clock.advance(3600)
        found = await running.wait_for(Note, "a", until=condition_is("Ready"))
        assert condition_is("Ready", reason="Waited")(found)


async def test_each_test_has_a_cluster_of_its_own(hortus_apiserver: TestServer, hortus_cluster: TestCluster) -> None:
    hortus_apiserver.create_cluster("another")
    other = TestCluster(hortus_apiserver.kubeconfig_for("another"))
    async with hortus_cluster.client() as client, other.client() as elsewhere:
        await install(client, Note)
        await client.create(CONFIG_MAPS, {"metadata": {"name": "mine", "namespace": "default"}})
        await wait_for(client, CONFIG_MAPS, "mine")
        await wait_gone(elsewhere, CONFIG_MAPS, "mine")
        with pytest.raises(
            AssertionError, match=r"waited 0\.1 s for configmaps mine in namespace default: it does not"
        ):
            await wait_for(elsewhere, CONFIG_MAPS, "mine", patience=0.1)
        with pytest.raises(AssertionError, match=r"waited 0\.1 s for configmaps mine"):
            await wait_gone(client, CONFIG_MAPS, "mine", patience=0.1)


async def test_a_failure_shows_no_value_of_a_secret(hortus_cluster: TestCluster) -> None:
    async with hortus_cluster.client() as client:
        metadata = {"name": "s", "namespace": "default"}
        await client.create(SECRETS, {"metadata": metadata, "stringData": {"key": "hunter2"}})
        with pytest.raises(AssertionError) as error:
            await wait_for(client, SECRETS, "s", until=lambda one: False, patience=2.0)
    assert "data:\n- key\n" in str(error.value)
    assert "aHVudGVyMg" not in str(error.value)


@pytest.fixture
def unconfigured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs as in a project that configures none: another test of this process may have done so."""
    structlog.reset_defaults()
    monkeypatch.setattr(controller, "_log", structlog.get_logger())


async def test_a_failed_reconcile_is_logged_with_its_object_and_without_variables(
    unconfigured: None, hortus_cluster: TestCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    class Careless(Reader):
        async def _read(self, context: ReconcileContext[Note]) -> None:
            password = context.object.spec.text
            raise RuntimeError(f"{len(password)} characters")

    async with hortus_cluster.running(Careless) as running:
        await running.create(note("a", "hunter2"))
        await _failed(running)
        with pytest.raises(AssertionError, match="default/a failed: RuntimeError: 7 characters"):
            await running.wait_for(Note, "a", until=condition_is("Ready"))
    printed = capsys.readouterr().out
    assert re.search("reconcile failed unexpectedly.*controller=note.*name=a namespace=default", printed)
    assert "RuntimeError: 7 characters" in printed
    assert "hunter2" not in printed
