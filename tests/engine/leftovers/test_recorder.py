"""The recorder against a real API server: one object for a debt, and a deletion that ends without it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.engine.leftovers.test_debts import debt

from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.leftovers.types import LEFTOVERS, Leftover
from hortus.kube import Client, Resource
from hortus.kube.access import Access, Credentials, Secret
from hortus.kube.errors import ConnectionFailed, Forbidden, KubeError, ServiceUnavailable
from hortus.schema import crd
from hortus.testing.apiserver import TestServer

CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_numbers = itertools.count()


class FailingClient(Client):
    """A client whose applies fail as the test wants."""

    failure: KubeError | None = None

    async def apply(self, *args: Any, **options: Any) -> Any:
        if self.failure is not None:
            raise self.failure
        return await super().apply(*args, **options)


@pytest.fixture
async def client(server: TestServer) -> AsyncIterator[FailingClient]:
    """A logical cluster of the test's own, without Leftovers."""
    name = f"ledger-{next(_numbers)}"
    await asyncio.to_thread(server.create_cluster, name)
    credentials = Credentials(token=Secret(server.token_everywhere))
    async with FailingClient(Access(server=server.cluster_url(name), ca=server.ca, credentials=credentials)) as made:
        await made.create(NAMESPACES, {"metadata": {"name": "fleet"}})
        yield made


@pytest.fixture
async def ledger(client: FailingClient) -> FailingClient:
    await client.apply(CRDS, crd(Leftover), field_manager="tests")
    return client


def refusals(registry: CollectorRegistry) -> float | None:
    return registry.get_sample_value("hortus_leftovers_unrecorded_total")


async def test_a_debt_recorded_twice_is_one_object(ledger: FailingClient) -> None:
    recorder = LeftoverRecorder(ledger, "fleet", registry=CollectorRegistry())
    assert await recorder.record(debt(["a", "b"]))
    [first] = (await ledger.list(LEFTOVERS, "fleet")).items
    assert await recorder.record(debt(["a", "b"]))
    [second] = (await ledger.list(LEFTOVERS, "fleet")).items
    assert second == first, "a record that says the same writes nothing"


async def test_a_repeated_record_keeps_what_a_person_wrote(ledger: FailingClient) -> None:
    recorder = LeftoverRecorder(ledger, "fleet", registry=CollectorRegistry())
    await recorder.record(debt(["a"]))
    [made] = (await ledger.list(LEFTOVERS, "fleet")).items
    entry = {"by": "alice", "reason": "known"}
    await ledger.patch(
        LEFTOVERS, made["metadata"]["name"], {"spec": {"acknowledgement": entry}}, "fleet", field_manager="kubectl"
    )
    await recorder.record(debt(["a"], message="another obstacle"))
    [found] = (await ledger.list(LEFTOVERS, "fleet")).items
    assert found["spec"]["acknowledgement"] == entry
    assert found["spec"]["message"] == "another obstacle"


async def test_many_items_become_several_objects_that_the_api_server_takes(ledger: FailingClient) -> None:
    recorder = LeftoverRecorder(ledger, "fleet", registry=CollectorRegistry())
    assert await recorder.record(debt([f"{number:0>249}" for number in range(450)]))
    found = (await ledger.list(LEFTOVERS, "fleet")).items
    assert sorted(len(one["spec"]["items"]) for one in found) == [50, 200, 200]


async def test_a_withdrawn_debt_leaves_nothing(ledger: FailingClient) -> None:
    recorder = LeftoverRecorder(ledger, "fleet", registry=CollectorRegistry())
    await recorder.record(debt(["a"]))
    await recorder.withdraw(debt(["a"]))
    await recorder.withdraw(debt(["a"]))
    assert (await ledger.list(LEFTOVERS, "fleet")).items == []


async def test_without_the_kind_nothing_is_recorded_and_nothing_held_up(client: FailingClient) -> None:
    registry = CollectorRegistry()
    recorder = LeftoverRecorder(client, "fleet", registry=registry)
    assert not await recorder.record(debt(["a"]))
    assert refusals(registry) == 1


async def test_without_the_namespace_nothing_is_held_up_either(ledger: FailingClient) -> None:
    registry = CollectorRegistry()
    assert not await LeftoverRecorder(ledger, "elsewhere", registry=registry).record(debt(["a"]))
    assert refusals(registry) == 1


async def test_a_refusal_is_counted_and_holds_nothing_up(ledger: FailingClient) -> None:
    registry = CollectorRegistry()
    ledger.failure = Forbidden("no")
    assert not await LeftoverRecorder(ledger, "fleet", registry=registry).record(debt(["a"]))
    assert refusals(registry) == 1


@pytest.mark.parametrize("failure", [ServiceUnavailable("away"), ConnectionFailed("host", "refused")])
async def test_a_failure_that_may_pass_is_raised_so_that_nothing_is_let_go(
    ledger: FailingClient, failure: KubeError
) -> None:
    registry = CollectorRegistry()
    recorder = LeftoverRecorder(ledger, "fleet", registry=registry)
    ledger.failure = failure
    with pytest.raises(type(failure)):
        await recorder.record(debt(["a"]))
    assert refusals(registry) == 0


async def test_where_leftovers_are_off_no_call_is_made() -> None:
    recorder = LeftoverRecorder(None, "fleet", registry=CollectorRegistry())
    assert not recorder.records
    assert not await recorder.record(debt(["a"]))
    await recorder.withdraw(debt(["a"]))
