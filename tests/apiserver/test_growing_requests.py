"""No request costs more than its size: each list, map, text and depth is made eight times as large, for every kind and
verb, and the processor time that it takes may grow little more than eightfold."""

from __future__ import annotations

import asyncio
import copy
import gc
import itertools
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import orjson
import pytest
from tests.apiserver import growing_custom as custom
from tests.apiserver.growing import Growth, Object, deep, grown, growths, part, sample
from tests.apiserver.growing_samples import METADATA, SPECS
from tests.apiserver.wire import Answer, Wire, connected
from tests.waiting import until

from hortus.apiserver.builtin import definitions
from hortus.apiserver.resources.definition import ResourceDefinition
from hortus.testing.apiserver import TestServer, started_apiserver

pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body")

SIZES = (2, 16, 128, 1024)
"""Members; a product of four lists is steep at the second size already, and its third is not tried."""
_SLOPE = 12.0
"""Growth of the time that is taken for linear, for eight times the size; the square of it is 64."""
_NOTICED = 0.02
"""Seconds of processor time below which no growth counts."""
_TRIES = 6
_NUMBERS = itertools.count()
AUTHOR = {"Impersonate-User": "author"}
"""A user who may write everything and holds little, so that what he grants is compared with what he holds."""


class Step(NamedTuple):
    name: str
    send: Callable[[], Awaitable[Answer]]


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_apiserver() as running:
        asyncio.run(_admit_the_author(running))
        yield running


async def _admit_the_author(server: TestServer) -> None:
    verbs = ["create", "update", "patch", "delete", "get", "list", "watch", "deletecollection"]
    rule = {"verbs": verbs, "apiGroups": ["*"], "resources": ["*"]}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "author"}
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    async with connected(server.url, server.token, server.tls()) as wire:
        made = [
            await wire.post(f"{rbac}/clusterroles", {"metadata": {"name": "author"}, "rules": [rule]}),
            await wire.post(
                f"{rbac}/clusterrolebindings",
                {
                    "metadata": {"name": "author"},
                    "roleRef": reference,
                    "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "author"}],
                },
            ),
        ]
        assert [answer.code for answer in made] == [201, 201]


@pytest.fixture
async def wire(server: TestServer) -> AsyncIterator[Wire]:
    async with connected(server.url, server.token, server.tls()) as found:
        yield found


@pytest.fixture(autouse=True)
def _without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def _time(step: Step) -> float:
    """Processor time of the whole process, the client's part included, which is linear."""
    began = time.process_time()
    await step.send()
    return time.process_time() - began


async def holds_the_slope(
    steps_at: Callable[[int], AsyncIterator[Step]], about: str, sizes: Sequence[int] = SIZES
) -> list[str]:
    """Runs the steps at each size; returns a line for each one whose time grows faster than the size.

    What else the process does can only add to a time, so the least of the tries counts. Memory that others use makes a
    large object dearer than its size: where a plain copy grows more than eightfold, a step may too.
    """
    least: dict[int, dict[str, float]] = {size: {} for size in sizes}
    for _ in range(_TRIES):
        found = await _steep(steps_at, about, least)
        if not found:
            return []
        gc.collect()
    return found


async def _steep(
    steps_at: Callable[[int], AsyncIterator[Step]], about: str, least: dict[int, dict[str, float]]
) -> list[str]:
    """One try, up to the size at which a step is steep; `least` has the shortest times by size and step."""
    before: dict[str, float] = {}
    for size, times in least.items():
        async for step in steps_at(size):
            times[step.name] = min(await _time(step), times.get(step.name, math.inf))
        if _steeper(before, times, _SLOPE) and (steep := _steeper(before, times, _SLOPE * _dearness_of_memory())):
            return [
                f"{about}: {name} took {before[name] * 1e3:.1f} ms and for {size} {times[name] * 1e3:.1f} ms"
                for name in steep
            ]
        before = times
    return []


def _steeper(before: dict[str, float], times: dict[str, float], slope: float) -> list[str]:
    """The steps that took longer than that many times the time before."""
    return [
        name for name, taken in times.items() if name in before and taken > _NOTICED and taken > before[name] * slope
    ]


def _dearness_of_memory() -> float:
    """The growth of a plain copy's time for eight times the size, over eight; 1 at least."""
    small, large = ([{"name": str(number), "at": [number]} for number in range(size)] for size in (500, 4_000))
    taken = []
    for copied in (small, large):
        began = time.process_time()
        copy.deepcopy(copied)
        taken.append(time.process_time() - began)
    return max(1.0, taken[1] / taken[0] / 8)


def _path(definition: ResourceDefinition) -> str:
    resource = definition.resource
    base = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.api_version}"
    return f"{base}/namespaces/default/{resource.plural}" if resource.namespaced else f"{base}/{resource.plural}"


def base_of(definition: ResourceDefinition, name: str) -> Object:
    """An object that can be stored."""
    resource = definition.resource
    made = sample(definition.schema) | SPECS.get(resource.kind, {})
    metadata = METADATA.get(resource.kind, {"name": name})
    return made | {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}


def _verbs(wire: Wire, definition: ResourceDefinition, growth: Growth) -> Callable[[int], AsyncIterator[Step]]:
    schema, path = definition.schema, _path(definition)

    async def steps(size: int) -> AsyncIterator[Step]:
        size *= 16 if growth.text else 1
        base = base_of(definition, f"grown-{next(_NUMBERS)}")
        name = base["metadata"]["name"]
        one = f"{path}/{name}"
        large, other = grown(base, schema, growth, size), grown(base, schema, growth, size, first=size // 2)
        yield Step("create", lambda: wire.post(path, large, headers=AUTHOR))
        if "get" not in definition.verbs or definition.answer is not None:
            return
        if (await wire.get(one)).code == 404 and (await wire.post(path, base)).code != 201:
            return
        yield Step("update", lambda: wire.put(one, other, headers=AUTHOR))
        yield Step("merge patch", lambda: wire.merge(one, part(large, growth), headers=AUTHOR))
        if not growth.text:
            yield Step("strategic merge patch", lambda: wire.strategic(one, part(other, growth), headers=AUTHOR))
            yield Step("strategic merge patch again", lambda: wire.strategic(one, part(large, growth), headers=AUTHOR))
            operations = list(_operations(large, growth))
            yield Step("JSON patch", lambda: wire.json_patch(one, operations, headers=AUTHOR))
        yield Step("apply", lambda: wire.apply(one, _intent(large, name, growth), manager="a"))
        yield Step("apply by another", lambda: wire.apply(one, _intent(other, name, growth), manager="b", force=True))
        yield Step("get as a table", lambda: wire.get(one, accept="application/json;as=Table;v=v1;g=meta.k8s.io"))
        yield Step("delete", lambda: wire.delete(one, headers=AUTHOR))
        await wire.merge(one, {"metadata": {"finalizers": None}})

    return steps


def _intent(obj: Object, name: str, growth: Growth) -> Object:
    metadata = {"name": name, **(obj["metadata"] if growth.paths[0][0] == "metadata" else {})}
    metadata.pop("managedFields", None)
    return part(obj, growth) | {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}


def _operations(obj: Object, growth: Growth) -> Iterator[Object]:
    """An operation for each member of what grows, where no list lies above it; else the whole field at once."""
    for path in growth.paths:
        value: Any = obj
        for name in path:
            value = value[name] if name != "*" and isinstance(value, dict) else None
        pointer = "/" + "/".join(path)
        if isinstance(value, list):
            yield {"op": "add", "path": pointer, "value": []}
            yield from ({"op": "add", "path": f"{pointer}/0", "value": item} for item in value)
        elif isinstance(value, dict):
            yield {"op": "add", "path": pointer, "value": {}}
            yield from ({"op": "add", "path": f"{pointer}/{key}", "value": item} for key, item in value.items())
        else:
            yield {"op": "add", "path": f"/{path[0]}", "value": obj[path[0]]}


def _first_to_last(definition: ResourceDefinition) -> tuple[bool, bool]:
    """Kinds that can be stored before others, and ConfigMaps first: what kinds share grows in the first of them."""
    return "update" not in definition.verbs, definition.resource.plural != "configmaps"


_SEEN: set[int] = set()
_CASES = [
    (definition, found)
    for definition in sorted(definitions(), key=_first_to_last)
    if "create" in definition.verbs and (found := list(growths(definition.schema, _SEEN)))
]


@pytest.mark.parametrize(
    ("definition", "found"), _CASES, ids=[f"{one.resource.plural}.{one.resource.api_version}" for one, _ in _CASES]
)
async def test_what_grows_in_an_object_costs_no_more_than_it_grows(
    wire: Wire, definition: ResourceDefinition, found: list[Growth]
) -> None:
    assert await _grow(wire, definition, found) == []


async def _grow(wire: Wire, definition: ResourceDefinition, found: Iterable[Growth]) -> list[str]:
    """A line for each growth that costs more than it grows."""
    steep: list[str] = []
    for growth in found:
        steep += await holds_the_slope(_verbs(wire, definition, growth), growth.title)
    return steep


_CUSTOM = "/apis/growing.example.com/v1/namespaces/default"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def _defined(server: TestServer, wire: Wire, plural: str, *columns: str) -> ResourceDefinition:
    """A custom resource that is served."""
    made = await wire.post(_CRDS, custom.definition(plural, columns))
    assert made.code == 201, made.body

    async def served() -> bool:
        return (await wire.get(f"{_CUSTOM}/{plural}")).code == 200

    await until(served)
    kind = server.run(server.server.context.registry.find("root", "growing.example.com", "v1", plural))
    assert kind is not None
    return kind.definition


async def test_what_grows_in_a_custom_resource_costs_no_more_than_it_grows(server: TestServer, wire: Wire) -> None:
    definition = await _defined(server, wire, "growings")
    assert await _grow(wire, definition, growths(definition.schema, set())) == []


_DEPTHS = (3, 24, 192)
"""Levels; the server reads no more than 200, and half of them in an apply."""
_DESCENTS = "..x..x..x..x..x.y"


async def test_depth_costs_no_more_than_it_grows(server: TestServer, wire: Wire) -> None:
    definition = await _defined(server, wire, "deeps", _DESCENTS, ".spec.free..x[?(@..x..x)].y")
    path = f"{_CUSTOM}/deeps"
    head = {"apiVersion": "growing.example.com/v1", "kind": definition.resource.kind}

    async def steps(size: int) -> AsyncIterator[Step]:
        one = f"{path}/deep-{size}-{next(_NUMBERS)}"
        name = {"name": one.rpartition("/")[2]}
        spec = {"free": deep(size)}
        pointer = "/spec/free" + "/x" * size
        nested = {"properties": {"spec": deep(size // 2, {"type": "string"}, "properties")}}
        operations = [{"op": "test", "path": pointer, "value": 1}, {"op": "replace", "path": pointer, "value": [1]}]
        lists = {"free": {"a": orjson.loads("[" * size + "]" * size)}}
        yield Step("create", lambda: wire.post(path, {**head, "metadata": name, "spec": spec}))
        yield Step("table", lambda: wire.get(one, accept="application/json;as=Table;v=v1;g=meta.k8s.io"))
        yield Step("list as a table", lambda: wire.get(path, accept="application/json;as=Table;v=v1;g=meta.k8s.io"))
        yield Step("JSON patch", lambda: wire.json_patch(one, operations))
        yield Step("merge patch", lambda: wire.merge(one, {"spec": {"free": deep(size, 2)}}))
        yield Step("merge patch of lists", lambda: wire.merge(one, {"spec": lists}))
        yield Step(
            "apply", lambda: wire.apply(one, {**head, "metadata": name, "spec": {"free": deep(size, 3)}}, force=True)
        )
        yield Step("schema", lambda: wire.merge(f"{_CRDS}/deeps.growing.example.com?dryRun=All", {"spec": nested}))
        yield Step("ConfigMap", lambda: wire.post("/api/v1/namespaces/default/configmaps", deep(size)))
        await wire.delete(one)

    assert await holds_the_slope(steps, "depth", _DEPTHS) == []


async def test_queries_and_headers_cost_no_more_than_they_grow(wire: Wire) -> None:
    config_maps = "/api/v1/namespaces/default/configmaps"

    async def steps(size: int) -> AsyncIterator[Step]:
        words = [f"a{number}" for number in range(size)]
        queries = {
            "labels of a set": "labelSelector=a in ({})".format(",".join(words)),
            "labels": "labelSelector=" + ",".join(words),
            "fields": "fieldSelector=" + ",".join(["metadata.name!=a"] * (size // 2)),
            "manager": "fieldManager=" + "a" * size * 8,
            "unknown": "&".join(words),
            "version": "resourceVersion=" + "1" * size * 8,
            "continue": "continue=" + "a" * size * 8,
        }
        for name, query in queries.items():
            yield Step(name, lambda query=query: wire.get(f"{config_maps}?{query}"))  # type: ignore[misc]
        for name, header in {
            "Accept": {"Accept": ",".join(f"{word}/json" for word in words)},
            "groups": {"Impersonate-User": "author", "Impersonate-Group": "a" * size * 8},
            "token": {"Authorization": "Bearer " + "a." * size * 4},
        }.items():
            yield Step(name, lambda header=header: wire.get(config_maps, headers=header))  # type: ignore[misc]
        yield Step("path", lambda: wire.get("/a" * size * 4))

    assert await holds_the_slope(steps, "request", (16, 128, 1024)) == []


async def test_operations_of_a_patch_cost_no_more_than_they_grow(server: TestServer, wire: Wire) -> None:
    definition = await _defined(server, wire, "patcheds")
    one = f"{_CUSTOM}/patcheds/one"
    head = {"apiVersion": "growing.example.com/v1", "kind": definition.resource.kind, "metadata": {"name": "one"}}

    async def steps(size: int) -> AsyncIterator[Step]:
        members = {f"k{number}": {"a": number} for number in range(size)}
        free = {"list": list(range(size)), "map": members, "one": {"a": 1}}
        await wire.delete(one)
        assert (await wire.post(f"{_CUSTOM}/patcheds", {**head, "spec": {"free": free}})).code == 201
        at = "/spec/free"
        for name, made in {
            "copies": [{"op": "copy", "from": f"{at}/one", "path": f"{at}/map/c{n}"} for n in range(size)],
            "copies to and fro": [
                step
                for number in range(size // 2)
                for step in (
                    {"op": "copy", "from": f"{at}/one", "path": f"{at}/map/k{number}/b"},
                    {"op": "add", "path": f"{at}/list/0", "value": 1},
                )
            ],
            "moves": [{"op": "move", "from": f"{at}/list/{size - 1}", "path": f"{at}/list/0"}] * size,
            "tests": [{"op": "test", "path": f"{at}/map/k0/a", "value": 0}] * size,
            "removals": [{"op": "remove", "path": f"{at}/map/k{number}"} for number in range(size)],
        }.items():
            yield Step(name, lambda made=made: wire.json_patch(f"{one}?dryRun=All", made))  # type: ignore[misc]

    assert await holds_the_slope(steps, "operations") == []
