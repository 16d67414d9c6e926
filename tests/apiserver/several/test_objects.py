"""Objects written through one server are read, watched and guarded on the other."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.apiserver.wire import Wire, configmap, names

from hortus.testing.apiserver import TestServer


def version(obj: Any) -> int:
    return int(obj["metadata"]["resourceVersion"])


async def test_writes_of_one_server_are_visible_on_the_other_at_once(one: Wire, other: Wire, configmaps: str) -> None:
    for number in range(10):
        created = await one.post(configmaps, configmap(f"a{number}"))
        assert created.code == 201
        assert (await other.get(f"{configmaps}/a{number}")).body == created.body
        assert names(await other.get(configmaps)) == [f"a{each}" for each in range(number + 1)]
    assert (await one.delete(f"{configmaps}/a0")).code == 200
    assert (await other.get(f"{configmaps}/a0")).code == 404


async def test_a_watch_on_one_server_sees_the_writes_of_both_in_order_of_revision(
    one: Wire, other: Wire, configmaps: str
) -> None:
    start = version((await one.get(configmaps)).body)

    async def write(wire: Wire, prefix: str) -> list[int]:
        return [version((await wire.post(configmaps, configmap(f"{prefix}{number}"))).body) for number in range(15)]

    path = f"{configmaps}?watch=true&resourceVersion={start}"
    async with other.watch(path) as there, one.watch(path) as here:
        made = await asyncio.gather(write(one, "x"), write(other, "y"), write(one, "z"))
        written = sorted(number for numbers in made for number in numbers)
        seen = [[version((await events.next())["object"]) for _ in written] for events in (there, here)]
    assert seen == [written, written]


async def test_a_resource_version_of_one_server_means_the_same_on_the_other(
    one: Wire, other: Wire, configmaps: str
) -> None:
    first = (await one.post(configmaps, configmap("a"))).body
    second = (await other.post(configmaps, configmap("b"))).body
    third = (await one.post(configmaps, configmap("c"))).body
    assert version(first) < version(second) < version(third)
    exact = f"?resourceVersion={version(second)}&resourceVersionMatch=Exact"
    for wire in (one, other):
        assert names(await wire.get(configmaps + exact)) == ["a", "b"]
        assert names(await wire.get(f"{configmaps}?resourceVersion={version(third)}")) == ["a", "b", "c"]
        future = await wire.get(f"{configmaps}?resourceVersion={version(third) + 1_000_000}")
        assert (future.code, future.body["reason"]) == (504, "Timeout")
        async with wire.watch(f"{configmaps}?watch=true&resourceVersion={version(first)}") as events:
            assert await events.take(2) == [("ADDED", "b"), ("ADDED", "c")]


async def test_pages_begun_on_one_server_go_on_on_the_other_in_the_same_snapshot(
    one: Wire, other: Wire, configmaps: str
) -> None:
    for name in "abcde":
        await one.post(configmaps, configmap(name))
    page = (await one.get(f"{configmaps}?limit=2")).body
    await other.delete(f"{configmaps}/c")
    await one.post(configmaps, configmap("bb"))
    rest = await other.get(f"{configmaps}?limit=10&continue={page['metadata']['continue']}")
    assert names(rest) == ["c", "d", "e"]
    assert rest.body["metadata"]["resourceVersion"] == page["metadata"]["resourceVersion"]


async def test_no_update_is_lost_between_writers_of_one_object_on_both_servers(
    one: Wire, other: Wire, configmaps: str
) -> None:
    await one.post(configmaps, configmap("counter", {"n": "0"}))
    path = f"{configmaps}/counter"

    async def count(wire: Wire, times: int) -> None:
        done = 0
        while done < times:
            obj = (await wire.get(path)).body
            obj["data"]["n"] = str(int(obj["data"]["n"]) + 1)
            answer = await wire.put(path, obj)
            assert answer.code in (200, 409), answer.body
            done += answer.code == 200

    await asyncio.gather(*(count(wire, 8) for wire in (one, other, one, other)))
    assert {(await wire.get(path)).body["data"]["n"] for wire in (one, other)} == {"32"}


async def test_patches_that_were_answered_are_all_kept_and_others_are_conflicts(
    one: Wire, other: Wire, configmaps: str
) -> None:
    await one.post(configmaps, configmap("many", {}))
    wires = {f"{name}{number}": wire for number in range(12) for name, wire in (("a", one), ("b", other))}
    answers = await asyncio.gather(
        *(wire.merge(f"{configmaps}/many", {"data": {key: "x"}}) for key, wire in wires.items())
    )
    # Like kube-apiserver, a patch that meets another writer five times over is given back as a conflict.
    assert {answer.code for answer in answers} <= {200, 409}
    kept = {key for key, answer in zip(wires, answers, strict=True) if answer.code == 200}
    assert kept
    assert set((await other.get(f"{configmaps}/many")).body["data"]) == kept


async def test_server_side_apply_through_both_keeps_each_managers_fields(
    one: Wire, other: Wire, configmaps: str
) -> None:
    """Ten appliers: each loses to each of the others once at most, and a server tries ten times."""
    path = f"{configmaps}/shared"
    base = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}}
    answers = await asyncio.gather(
        *(
            wire.apply(path, {**base, "data": {f"from-{number}": "x"}}, manager=f"manager-{number}")
            for number, wire in enumerate((one, other) * 5)
        )
    )
    assert {answer.code for answer in answers} <= {200, 201}
    found = (await one.get(path)).body
    assert found["data"] == {f"from-{number}": "x" for number in range(10)}
    assert len(found["metadata"]["managedFields"]) == 10
    conflict = await other.apply(path, {**base, "data": {"from-0": "y"}}, manager="manager-1")
    assert (conflict.code, conflict.body["reason"]) == (409, "Conflict")
    assert 'conflict with "manager-0"' in conflict.message
    gone = await other.apply(path, base, manager="manager-0")
    assert "from-0" not in gone.body["data"]
    assert (await one.get(path)).body == gone.body


async def test_of_creates_of_one_name_on_both_one_wins_and_generated_names_never_meet(
    one: Wire, other: Wire, configmaps: str
) -> None:
    same = await asyncio.gather(*(wire.post(configmaps, configmap("same")) for wire in (one, other) * 4))
    assert sorted(answer.code for answer in same) == [201] + [409] * 7
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "g-"}}
    made = await asyncio.gather(*(wire.post(configmaps, body) for wire in (one, other) * 40))
    assert {answer.code for answer in made} == {201}
    assert len({answer.body["metadata"]["name"] for answer in made}) == 80


_STEPS = st.lists(
    st.tuples(st.booleans(), st.sampled_from(["put", "stale", "merge", "delete", "create"]), st.integers(0, 2)),
    min_size=5,
    max_size=25,
)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=_STEPS)
async def test_any_interleaving_on_both_servers_is_as_on_one(
    one: Wire, other: Wire, configmaps: str, steps: list[tuple[bool, str, int]]
) -> None:
    model: dict[str, dict[str, Any]] = {}
    before: dict[str, dict[str, Any]] = {}
    for count, (second, step, number) in enumerate(steps):
        wire, name = (other if second else one), f"h{number}"
        path, have = f"{configmaps}/{name}", model.get(name)
        if step == "create":
            answer = await wire.post(configmaps, configmap(name, {"n": str(count)}))
            assert answer.code == (409 if have else 201)
        elif step == "delete":
            answer = await wire.delete(path)
            assert answer.code == (200 if have else 404)
            model.pop(name, None)
            continue
        elif step == "merge":
            answer = await wire.merge(path, {"data": {"n": str(count)}})
            assert answer.code == (200 if have else 404)
        else:
            sent = before.get(name) if step == "stale" else have
            if sent is None:
                continue
            answer = await wire.put(path, {**sent, "data": {"n": str(count)}})
            fresh = have is not None and version(have) == version(sent)
            if have is None:
                assert answer.code in (404, 409)
            else:
                assert answer.code == (200 if fresh else 409)
        if answer.code < 300:
            if have:
                before[name] = have
            model[name] = answer.body
            assert have is None or version(answer.body) > version(have)
    for wire in (one, other):
        found = {item["metadata"]["name"]: version(item) for item in (await wire.get(configmaps)).body["items"]}
        assert found == {name: version(obj) for name, obj in model.items()}
    for name in model:
        await one.delete(f"{configmaps}/{name}")


async def test_revisions_that_etcd_compacted_are_gone_on_both(
    one: Wire, other: Wire, configmaps: str, servers: tuple[TestServer, TestServer]
) -> None:
    first = version((await one.post(configmaps, configmap("a"))).body)
    page = (await one.get(f"{configmaps}?limit=1")).body
    for name in "bcd":
        await other.post(configmaps, configmap(name))
    token = (await one.get(f"{configmaps}?limit=1")).body["metadata"]["continue"]
    assert page["metadata"]["resourceVersion"] == str(first)
    await other.post(configmaps, configmap("e"))
    await other.get(configmaps)
    for server in servers:
        backend = server.server.context.storage.backend
        server.run(backend.compact(backend.revision))
    for wire in (one, other):
        exact = await wire.get(f"{configmaps}?resourceVersion={first}&resourceVersionMatch=Exact")
        assert (exact.code, exact.body["reason"]) == (410, "Expired")
        paged = await wire.get(f"{configmaps}?limit=1&continue={token}")
        assert (paged.code, paged.body["reason"]) == (410, "Expired")
        async with wire.watch(f"{configmaps}?watch=true&resourceVersion={first}") as events:
            event = await events.next()
            assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
