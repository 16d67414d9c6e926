"""Services that lead to this machine, and the clusters that may have them."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
from tests.apiserver.wire import Answer, Wire, connected
from tests.conformance.api.behind import SERVICES, TRUST, Behind, served, until_condition

from hortus.apiserver import ApiServerSettings
from hortus.engine.serving import ServingPair, self_signed
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer, running_apiserver

GROUP = "behind.example.com"


class Listening(NamedTuple):
    behind: Behind
    port: int
    pair: ServingPair


async def listening(wire: Wire, stack: list[object]) -> Listening:
    raise NotImplementedError


@pytest.fixture
async def server() -> AsyncIterator[TestServer]:
    settings = ApiServerSettings(local_webhooks=frozenset({"local"}))
    async with running_apiserver(clusters=["local", "tenant"], settings=settings) as running:
        yield running


async def register(wire: Wire, pair: ServingPair) -> None:
    spec = {
        "group": GROUP,
        "version": "v1",
        "service": {"namespace": "default", "name": "behind"},
        "caBundle": base64.b64encode(pair.bundle).decode(),
        "groupPriorityMinimum": 2000,
        "versionPriority": 10,
    }
    made = await wire.post(SERVICES, {"metadata": {"name": f"v1.{GROUP}"}, "spec": spec})
    assert made.code == 201, made.body


async def service(wire: Wire) -> None:
    made = await wire.post(
        "/api/v1/namespaces/default/services",
        {"metadata": {"name": "behind"}, "spec": {"ports": [{"name": "https", "port": 443}]}},
    )
    assert made.code == 201, made.body
