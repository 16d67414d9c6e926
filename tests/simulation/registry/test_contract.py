"""The embedded registry passes what the client is tested with against the registry of the distribution project."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator

import pytest
from tests.render.oci import test_real_registry as suite

from hortus.simulation.registry import RegistryFolder, RegistryServer

RegistryTest = Callable[[str], Awaitable[None]]
TESTS: list[RegistryTest] = [test for name, test in vars(suite).items() if name.startswith("test_")]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Host and port of a running registry."""
    server = RegistryServer(RegistryFolder(tmp_path_factory.mktemp("registry")))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(60)
    yield server.address
    asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.mark.parametrize("assert_claim", TESTS, ids=lambda test: str(test.__name__))
async def test_it_behaves_like_the_registry_of_distribution(registry: str, assert_claim: RegistryTest) -> None:
    await assert_claim(registry)
