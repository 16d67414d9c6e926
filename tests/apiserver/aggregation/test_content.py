"""The loops of the server and the objects of servers behind it: namespaces in deletion, owners that are gone."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest
from tests.apiserver.wire import Answer, Wire, connected
from tests.oracles.extension import SAMPLE, running_extension
from tests.oracles.programs import built_program, why_not

from hortus.testing.apiserver import TestServer, started_apiserver

GROUP = "/apis/wardle.example.com"
FLUNDER = {
    "apiVersion": "wardle.example.com/v1beta1",
    "kind": "Flunder",
    "metadata": {"name": "f"},
    "spec": {"flunderReference": "other", "referenceType": "Flunder"},
}
_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestServer]:
    binary = built_program("sampleapiserver")
    if binary is None:
        pytest.skip(why_not("sampleapiserver"))
    folder = tmp_path_factory.mktemp("sample")
    with started_apiserver() as running, running_extension(binary, folder, running, SAMPLE):
        yield running


@pytest.fixture
async def wire(server: TestServer) -> AsyncIterator[Wire]:
    async with connected(server.url, server.token, server.tls()) as found:
        yield found


@pytest.fixture
async def namespace(wire: Wire) -> str:
    name = f"test-{next(_NUMBERS)}"
    assert (await wire.post("/api/v1/namespaces", {"metadata": {"name": name}})).code == 201
    return name


async def until(ask: Callable[[], Awaitable[Answer]], holds: Callable[[Answer], bool]) -> Answer:
    async with asyncio.timeout(60):
        while not holds(answer := await ask()):
            await asyncio.sleep(0.02)
    return answer


async def test_a_namespace_takes_the_objects_of_servers_behind_with_it(wire: Wire, namespace: str) -> None:
    flunders = f"{GROUP}/v1beta1/namespaces/{namespace}/flunders"
    held = {**FLUNDER, "metadata": {"name": "held", "finalizers": ["example.com/held"]}}
    assert [(await wire.post(flunders, obj)).code for obj in (FLUNDER, held)] == [201, 201]
    space = f"/api/v1/namespaces/{namespace}"
    await wire.delete(space)

    def remaining(answer: Answer) -> bool:
        conditions = answer.body.get("status", {}).get("conditions") or ()
        return any(each["type"] == "NamespaceContentRemaining" and each["status"] == "True" for each in conditions)

    shown = await until(lambda: wire.get(space), remaining)
    messages = {each["type"]: each["message"] for each in shown.body["status"]["conditions"]}
    assert messages["NamespaceContentRemaining"] == (
        "Some resources are remaining: flunders.wardle.example.com has 1 resource instances"
    )
    assert (await wire.get(f"{flunders}/f")).code == 404
    await wire.merge(f"{flunders}/held", {"metadata": {"finalizers": None}})
    await until(lambda: wire.get(space), lambda answer: answer.code == 404)


async def test_an_object_goes_with_its_owner_behind_the_server(wire: Wire, namespace: str) -> None:
    flunders = f"{GROUP}/v1beta1/namespaces/{namespace}/flunders"
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    owner = (await wire.post(flunders, FLUNDER)).body["metadata"]["uid"]
    reference = {"apiVersion": "wardle.example.com/v1beta1", "kind": "Flunder", "name": "f", "uid": owner}
    for name, uid in (("kept", owner), ("orphan", "00000000-0000-0000-0000-000000000000")):
        metadata = {"name": name, "ownerReferences": [{**reference, "uid": uid}]}
        assert (await wire.post(maps, {"metadata": metadata})).code == 201
    await until(lambda: wire.get(f"{maps}/orphan"), lambda answer: answer.code == 404)
    assert (await wire.get(f"{maps}/kept")).code == 200
    await wire.delete(f"{flunders}/f")
    await until(lambda: wire.get(f"{maps}/kept"), lambda answer: answer.code == 404)


async def test_an_object_behind_the_server_goes_with_its_owner(wire: Wire, namespace: str) -> None:
    flunders = f"{GROUP}/v1beta1/namespaces/{namespace}/flunders"
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    owner = (await wire.post(maps, {"metadata": {"name": "owner"}})).body["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner}
    owned = {**FLUNDER, "metadata": {"name": "owned", "ownerReferences": [reference]}}
    assert (await wire.post(flunders, owned)).code == 201
    assert (await wire.post(flunders, FLUNDER)).code == 201
    await wire.delete(f"{maps}/owner")
    await until(lambda: wire.get(f"{flunders}/owned"), lambda answer: answer.code == 404)
    assert (await wire.get(f"{flunders}/f")).code == 200


async def test_an_object_behind_the_server_keeps_the_owner_that_is_left(wire: Wire, namespace: str) -> None:
    flunders = f"{GROUP}/v1beta1/namespaces/{namespace}/flunders"
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    uids = {name: (await wire.post(maps, {"metadata": {"name": name}})).body["metadata"]["uid"] for name in ("a", "b")}
    references = [{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid} for name, uid in uids.items()]
    owned = {**FLUNDER, "metadata": {"name": "owned", "ownerReferences": references}}
    assert (await wire.post(flunders, owned)).code == 201
    await wire.delete(f"{maps}/a")

    def has_one(answer: Answer) -> bool:
        return len(answer.body["metadata"]["ownerReferences"]) == 1

    left = await until(lambda: wire.get(f"{flunders}/owned"), has_one)
    assert left.body["metadata"]["ownerReferences"] == references[1:]
