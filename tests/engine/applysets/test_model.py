"""Any sequence of sets, killed at any call: the inventory never loses an object, others' objects are never touched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.applysets.objects import policy

from hortus.engine.applysets import (
    PART_OF,
    ApplySet,
    ConfigMapParent,
    InventoryEntry,
    LabelledAdoption,
    Member,
    Namespaced,
    ObjectAction,
)
from hortus.engine.applysets.inventory import decode, encode
from hortus.kube import PatchKind, Propagation
from hortus.kube.errors import AlreadyExists, Conflict, NotFound
from hortus.kube.objects import GroupVersionKind, Object, ObjectKey, Resource

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
WIDGETS = Resource("example.org", "v1", "widgets", "Widget")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
SERVICES = Resource("", "v1", "services", "Service")
KINDS = {resource.gvk: resource for resource in (CONFIGMAPS, WIDGETS, DEPLOYMENTS, SERVICES)}
NAMES = ("a", "b", "c", "d")


DONE = (ObjectAction.APPLIED, ObjectAction.PRUNED)
"""Members that a plan reports as pending."""


class Killed(BaseException):
    """The process ends here."""


class Cluster:
    """Objects in a dict. Dies at one call, before or after it took effect."""

    def __init__(self) -> None:
        self.objects: dict[tuple[Resource, ObjectKey], Object] = {}
        self.uids = 0
        self.calls = 0
        self.writes = 0
        self.dies_at: tuple[int, bool] | None = None
        self.deleted: list[tuple[Resource, str]] = []
        """Deletions, in order."""

    async def _step(self, effect: Callable[[], Object]) -> Object:
        self.calls += 1
        await asyncio.sleep(0)
        if self.dies_at is not None and self.calls > self.dies_at[0]:
            raise Killed
        if self.dies_at == (self.calls, False):
            raise Killed
        found = effect()
        if self.dies_at == (self.calls, True):
            raise Killed
        return found

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        return await self._step(lambda: self.find(resource, namespace, name))

    def find(self, resource: Resource, namespace: str, name: str) -> Object:
        found = self.objects.get((resource, ObjectKey(namespace, name)))
        if found is None:
            raise NotFound(f"{resource.plural} {name} not found", details={"name": name})
        return found

    def put(self, resource: Resource, obj: Object) -> Object:
        metadata = obj["metadata"]
        key = (resource, ObjectKey(metadata["namespace"], metadata["name"]))
        old = self.objects.get(key)
        if old is None:
            self.uids += 1
        uid = old["metadata"]["uid"] if old is not None else f"uid-{self.uids}"
        self.writes += 1
        self.objects[key] = {**obj, "metadata": {**metadata, "uid": uid, "resourceVersion": str(self.writes)}}
        return self.objects[key]

    async def create(self, resource: Resource, obj: Object, *, field_manager: str = "") -> Object:
        def effect() -> Object:
            metadata = obj["metadata"]
            if (resource, ObjectKey(metadata["namespace"], metadata["name"])) in self.objects:
                raise AlreadyExists("it is there")
            return self.put(resource, obj)

        return await self._step(effect)

    async def apply(
        self, resource: Resource, obj: Object, *, field_manager: str, force: bool = True, dry_run: bool = False
    ) -> Object:
        return await self._step(lambda: obj if dry_run else self.put(resource, obj))

    async def patch(self, *args: Any, kind: PatchKind = PatchKind.MERGE, **options: Any) -> Object:
        raise AssertionError("nobody patches")

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        propagation: Propagation | None = None,
        uid: str = "",
        resource_version: str = "",
        dry_run: bool = False,
    ) -> Object:
        def effect() -> Object:
            found = self.find(resource, namespace, name)
            if uid and found["metadata"]["uid"] != uid:
                raise Conflict("another uid")
            if resource_version and found["metadata"]["resourceVersion"] != resource_version:
                raise Conflict("another version")
            if dry_run:
                return {"kind": "Status"}
            self.writes += 1
            self.deleted.append((resource, name))
            if found["metadata"].get("finalizers"):
                marked = {**found["metadata"], "deletionTimestamp": "2023-01-01T12:00:00Z"}
                self.objects[resource, ObjectKey(namespace, name)] = {**found, "metadata": marked}
                return self.objects[resource, ObjectKey(namespace, name)]
            del self.objects[resource, ObjectKey(namespace, name)]
            return {"kind": "Status"}

        return await self._step(effect)

    def listed(self, resource: Resource, namespace: str) -> AsyncIterator[Object]:
        raise AssertionError("nothing here can hold anything")

    async def list_marked(self, resource: Resource, identity: str) -> list[Object]:
        raise AssertionError("the inventory says what there is")

    async def until(self, resource: Resource, obj: Object, holds: Callable[[Object], bool]) -> None:
        raise AssertionError("nothing here is waited for")

    async def until_gone(self, resource: Resource, obj: Object) -> None:
        raise AssertionError("nothing here is waited for")

    # Kinds.

    async def resource(self, gvk: GroupVersionKind, *, fresh: bool = False) -> Resource:
        return KINDS[gvk]

    async def named(self, group_kind: str, *, fresh: bool = False) -> Resource | None:
        raise AssertionError("nobody shares this set, and all kinds are served")

    async def namespaced(self) -> Namespaced:
        return Namespaced(list(KINDS.values()), [])


def wanted(choice: dict[tuple[int, str], int]) -> list[Object]:
    resources = (CONFIGMAPS, WIDGETS)
    return [
        {
            "apiVersion": resources[kind].api_version,
            "kind": resources[kind].kind,
            "metadata": {"name": name},
            "data": {"value": str(value)},
        }
        for (kind, name), value in choice.items()
    ]


SETS = st.dictionaries(st.tuples(st.integers(0, 1), st.sampled_from(NAMES)), st.integers(0, 2), max_size=6)
CRASH = st.one_of(st.none(), st.tuples(st.integers(1, 24), st.booleans()))
MEDDLING = st.one_of(
    st.none(), st.tuples(st.sampled_from(("delete", "recreate", "unmark")), st.integers(0, 1), st.sampled_from(NAMES))
)


class Machine:
    def __init__(self) -> None:
        self.cluster = Cluster()
        self.foreign: dict[tuple[Resource, ObjectKey], str] = {}
        self.identity = ConfigMapParent(self.cluster, "set", "default").identity

    def set(self) -> ApplySet:
        """The set as a process that has just begun sees it."""
        parent = ConfigMapParent(self.cluster, "set", "default")
        return ApplySet(self.cluster, parent, kinds=self.cluster, policy=policy(adopt=LabelledAdoption({}), parallel=2))

    def inventory(self) -> dict[Member, Any]:
        parent = self.cluster.objects.get((CONFIGMAPS, ObjectKey("default", "set")))
        return dict(decode(parent["data"]["inventory"])) if parent is not None else {}

    def ours(self) -> set[Member]:
        return {
            Member(resource.group, resource.kind, key.namespace, key.name)
            for (resource, key), obj in self.cluster.objects.items()
            if (obj["metadata"].get("labels") or {}).get(PART_OF) == self.identity
            and (resource, key) not in self.foreign
        }

    def meddle(self, what: str, kind: int, name: str) -> None:
        """Somebody deletes an object of ours, recreates it with our label, or removes the label."""
        place = ((CONFIGMAPS, WIDGETS)[kind], ObjectKey("default", name))
        obj = self.cluster.objects.get(place)
        if obj is None:
            return
        if what == "unmark":
            self.cluster.objects[place] = {**obj, "metadata": {**obj["metadata"], "labels": {}}}
            return
        del self.cluster.objects[place]
        was_foreign = self.foreign.pop(place, None) is not None
        if what == "recreate":
            member = Member(place[0].group, place[0].kind, "default", name)
            made = self.cluster.put(place[0], obj)
            entry = self.inventory().get(member)
            if was_foreign or (entry is not None and entry.uid):
                self.foreign[place] = made["metadata"]["uid"]

    def note_adoptions(self) -> None:
        """An object of any creator that is wanted again becomes ours, as soon as the inventory lists it."""
        inventory = self.inventory()
        for (resource, key), uid in list(self.foreign.items()):
            entry = inventory.get(Member(resource.group, resource.kind, key.namespace, key.name))
            if entry is not None and entry.uid in ("", uid):
                del self.foreign[resource, key]

    def check_nothing_lost(self) -> None:
        missing = self.ours() - self.inventory().keys()
        assert not missing, f"{missing} would never be found again"

    def check_others_untouched(self) -> None:
        for place, uid in list(self.foreign.items()):
            assert place in self.cluster.objects, f"{place[1]} was somebody else's and is gone"
            assert self.cluster.objects[place]["metadata"]["uid"] == uid

    def check_holds(self, choice: dict[tuple[int, str], int]) -> None:
        held = {}
        for (resource, key), obj in self.cluster.objects.items():
            marked = (obj["metadata"].get("labels") or {}).get(PART_OF) == self.identity
            if key.name in NAMES and marked and (resource, key) not in self.foreign:
                held[int(resource is WIDGETS), key.name] = int(obj["data"]["value"])
        assert held == choice


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(SETS, CRASH, MEDDLING), min_size=1, max_size=6))
def test_any_sequence_of_sets_with_crashes_converges_and_loses_nothing(
    steps: list[tuple[dict[tuple[int, str], int], tuple[int, bool] | None, tuple[str, int, str] | None]],
) -> None:
    async def play() -> None:
        machine = Machine()
        cluster = machine.cluster
        for choice, crash, meddling in steps:
            if meddling is not None:
                machine.meddle(*meddling)
            cluster.calls, cluster.dies_at = 0, crash
            with suppress(Killed):
                await machine.set().apply(wanted(choice), whole=True)
            cluster.dies_at = None
            machine.note_adoptions()
            machine.check_nothing_lost()
            machine.check_others_untouched()
        choice = steps[-1][0]
        report = await machine.set().apply(wanted(choice), whole=True)
        machine.note_adoptions()
        assert report.complete
        machine.check_holds(choice)
        machine.check_others_untouched()
        assert machine.inventory().keys() == machine.ours()
        cluster.writes = 0
        await machine.set().apply(wanted(choice), whole=True)
        report = await machine.set().delete()
        assert not report.of(ObjectAction.FAILED)
        machine.check_others_untouched()
        assert machine.ours() == set()

    asyncio.run(play())


@settings(max_examples=80, deadline=None)
@given(SETS, MEDDLING, SETS, st.booleans())
def test_a_plan_says_what_the_run_after_it_does_and_changes_nothing(
    before: dict[tuple[int, str], int],
    meddling: tuple[str, int, str] | None,
    choice: dict[tuple[int, str], int],
    whole: bool,
) -> None:
    async def play() -> None:
        machine = Machine()
        cluster = machine.cluster
        await machine.set().apply(wanted(before), whole=True)
        if meddling is not None:
            machine.meddle(*meddling)
        cluster.writes, held = 0, dict(cluster.objects)
        plan = await machine.set().plan(wanted(choice), whole=whole)
        assert (cluster.writes, cluster.objects) == (0, held)
        report = await machine.set().apply(wanted(choice), whole=whole)
        planned = {
            outcome.member: ObjectAction.PENDING if outcome.action in DONE else outcome.action
            for outcome in report.outcomes
        }
        assert {outcome.member: outcome.action for outcome in plan.outcomes} == planned
        left = before.keys() - choice.keys()
        if not whole and left and 2 * len(choice) < len(before):
            assert not report.of(ObjectAction.PRUNED)
            assert not report.complete

    asyncio.run(play())


STAGES = (WIDGETS, DEPLOYMENTS, SERVICES, CONFIGMAPS)
"""In the order in which they go."""


@settings(max_examples=80, deadline=None)
@given(
    st.sets(st.tuples(st.integers(0, 3), st.sampled_from(NAMES)), min_size=1),
    st.sets(st.tuples(st.integers(0, 3), st.sampled_from(NAMES))),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(NAMES)), max_size=20),
    st.booleans(),
)
def test_nothing_is_deleted_while_something_of_an_earlier_stage_is_held(
    members: set[tuple[int, str]], held: set[tuple[int, str]], released: list[tuple[int, str]], gone: bool
) -> None:
    """The claim holds for any order of releases, and when the whole set is deleted or only its members are pruned."""

    async def play() -> None:
        machine = Machine()
        cluster = machine.cluster
        objects = []
        for number, name in sorted(members):
            metadata: Object = {"name": name, **({"finalizers": ["x/y"]} if (number, name) in held else {})}
            resource = STAGES[number]
            objects.append({"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata})
        assert (await machine.set().apply(objects)).complete
        for release in [None, *released, *sorted(held)]:
            if release is not None:
                place = (STAGES[release[0]], ObjectKey("default", release[1]))
                if "deletionTimestamp" in cluster.objects.get(place, {"metadata": {}})["metadata"]:
                    del cluster.objects[place]
            cluster.deleted.clear()
            before = set(cluster.objects)
            run = machine.set().delete() if gone else machine.set().apply([], whole=True)
            report = await run
            for resource, name in cluster.deleted:
                earlier = STAGES[: STAGES.index(resource)]
                assert not [key for key in cluster.objects if key[0] in earlier], f"{name} went too early"
            left = {key for key in cluster.objects if key[0] in STAGES and key[1].name in NAMES}
            assert report.complete == (not left)
            assert before >= set(cluster.objects)
        assert machine.ours() == set()
        if gone:
            assert cluster.objects == {}

    asyncio.run(play())


@given(
    st.dictionaries(st.tuples(st.text(), st.text(), st.text(), st.text()), st.tuples(st.text(), st.text(), st.text()))
)
def test_an_inventory_survives_its_text(raw: dict[tuple[str, str, str, str], tuple[str, str, str]]) -> None:
    inventory = {Member(*member): InventoryEntry(*entry) for member, entry in raw.items()}
    assert decode(encode(inventory)) == inventory
