from __future__ import annotations

import pytest
from tests.engine.fake_api import WIDGETS, FakeApi, widget

from hortus.engine.finalizers import add_finalizer, finalizers_of, has_finalizer, is_deleting, remove_finalizer
from hortus.engine.owners import controller_of, is_owned_by, own, owner_reference, owners_of
from hortus.kube.errors import Conflict, Invalid, NotFound
from hortus.kube.objects import Object

OURS = "hortus.dev/cleanup"


def stored(api: FakeApi, *finalizers: str, **fields: object) -> Object:
    return api.put(WIDGETS, widget("a", metadata={"finalizers": list(finalizers), **fields}))


async def test_a_finalizer_is_added_once_without_a_call_for_what_is_there() -> None:
    api = FakeApi()
    with_ours = await add_finalizer(api, WIDGETS, stored(api), OURS)
    assert finalizers_of(with_ours) == [OURS]
    calls = len(api.calls)
    assert await add_finalizer(api, WIDGETS, with_ours, OURS) is with_ours
    assert len(api.calls) == calls


async def test_others_finalizers_stay_even_when_they_come_and_go_meanwhile() -> None:
    api = FakeApi()
    seen = stored(api, "theirs")
    stored(api, "another", "theirs")
    added = await add_finalizer(api, WIDGETS, seen, OURS)
    assert finalizers_of(added) == ["another", "theirs", OURS]
    stored(api, "theirs", OURS)
    left = await remove_finalizer(api, WIDGETS, added, OURS)
    assert left is not None and finalizers_of(left) == ["theirs"]


async def test_a_status_write_meanwhile_disturbs_nobody() -> None:
    api = FakeApi()
    seen = stored(api, "theirs", OURS)
    api.put(WIDGETS, {**seen, "status": {"x": 1}})
    left = await remove_finalizer(api, WIDGETS, seen, OURS)
    assert left is not None and left["status"] == {"x": 1}
    assert api.count("patch") == 1


async def test_a_list_that_changes_without_end_is_left_to_the_back_off() -> None:
    api = FakeApi()
    seen = stored(api, OURS)
    api.failures = [failure for _ in range(4) for failure in (Invalid("test failed"), None)][:7]
    with pytest.raises(Invalid):
        await remove_finalizer(api, WIDGETS, seen, OURS)


async def test_what_is_gone_or_recreated_is_left_alone() -> None:
    api = FakeApi()
    seen = stored(api, OURS)
    api.remove(WIDGETS, "a")
    assert await remove_finalizer(api, WIDGETS, seen, OURS) is None
    with pytest.raises(NotFound):
        await add_finalizer(api, WIDGETS, {**seen, "metadata": {**seen["metadata"], "finalizers": []}}, OURS)
    another = stored(api, OURS)
    assert await remove_finalizer(api, WIDGETS, seen, OURS) is None
    assert has_finalizer(api.objects[WIDGETS, next(iter(api.objects))[1]], OURS)
    assert not is_deleting(another)


async def test_what_is_being_deleted_takes_no_new_finalizer() -> None:
    api = FakeApi()
    going = stored(api, "theirs", deletionTimestamp="2023-01-01T12:00:00Z")
    with pytest.raises(Conflict, match="is being deleted"):
        await add_finalizer(api, WIDGETS, going, OURS)


def test_an_owner_is_written_down_once() -> None:
    owner, dependent = widget("o", metadata={"uid": "u1"}), widget("d")
    own(dependent, owner)
    own(dependent, owner)
    reference = {"apiVersion": "example.org/v1", "kind": "Widget", "name": "o", "uid": "u1"}
    assert owners_of(dependent) == [{**reference, "controller": True, "blockOwnerDeletion": True}]
    assert owner_reference(owner, controller=False, block_deletion=False) == reference
    assert controller_of(dependent) == owners_of(dependent)[0]
    assert is_owned_by(dependent, owner)
    assert not is_owned_by(dependent, widget("o", metadata={"uid": "u2"}))


def test_owners_across_namespaces_and_second_controllers_are_refused() -> None:
    dependent = widget("d", namespace="elsewhere")
    with pytest.raises(ValueError, match="owners work within one namespace"):
        own(dependent, widget("o", metadata={"uid": "u1"}))
    cluster_scoped = widget("o", namespace="", metadata={"uid": "u1"})
    own(dependent, cluster_scoped)
    with pytest.raises(ValueError, match="has a controller already"):
        own(dependent, widget("o", namespace="", metadata={"uid": "u2"}))
    own(dependent, widget("o", namespace="", metadata={"uid": "u2"}), controller=False)
    assert len(owners_of(dependent)) == 2
