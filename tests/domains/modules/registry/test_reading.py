"""Modules are read from a registry: descriptors by component and version, layers by digest."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from tests.domains.modules.registry.shelves import IMAGE, MANIFEST, NAME, VERSION, Shelf, component, shelf

from hortus.domains.modules.publishing.layout import component_layout
from hortus.domains.modules.publishing.pushing import AlreadyPublished, push_component
from hortus.domains.modules.registry import (
    ModuleRegistry,
    ModuleSourceError,
    ReadingLimits,
    connections,
    fixed,
)
from hortus.domains.modules.registry.reading import FAILURE_AGE
from hortus.domains.modules.types import InstallSource
from hortus.engine.outcomes import Actor
from hortus.render.artifacts import ArtifactCache, digest_of
from hortus.testing import FakeClock


@pytest.fixture
async def running() -> AsyncIterator[Shelf]:
    async with shelf() as found:
        yield found


@pytest.fixture
async def reader(running: Shelf, tmp_path: Path) -> AsyncIterator[ModuleRegistry]:
    cache = ArtifactCache(tmp_path / "cache")
    found = ModuleRegistry(ReadingLimits(), fixed(running.access), cache=cache, clock=FakeClock())
    yield found
    await found.close()


async def test_a_component_holds_what_a_manifest_needs(running: Shelf, reader: ModuleRegistry) -> None:
    """Contract 2.1.4 and 2.2.2: install source, images and version come from the descriptor in the registry."""
    layout = await running.publish()
    found = await reader.component(NAME, VERSION)
    layer = digest_of(layout.layers[1])
    host = running.site.host
    assert found.install == InstallSource(repo=f"{host}/prod/modules", name=NAME, ref=layer, type="oci-dir")
    assert found.localized_images == (IMAGE,)
    assert (found.name, found.version, found.digest) == (NAME, VERSION, layout.digest)
    assert found.label("operator.kyma-project.io/beta") == "true"
    assert found.default_cr is None


async def test_the_manifest_is_the_file_in_the_tar(running: Shelf, reader: ModuleRegistry) -> None:
    """Contract 2.2.2: a layer of type oci-dir is a tar."""
    await running.publish()
    found = await reader.component(NAME, VERSION)
    assert found.install is not None
    assert await reader.manifest(found.install) == MANIFEST


async def test_a_layer_is_fetched_once(running: Shelf, reader: ModuleRegistry) -> None:
    await running.publish()
    found = await reader.component(NAME, VERSION)
    assert found.install is not None
    await reader.manifest(found.install)
    before = len(running.asked)
    assert await reader.manifest(found.install) == MANIFEST
    assert len(running.asked) == before


async def test_a_component_in_memory_costs_no_call(running: Shelf, reader: ModuleRegistry) -> None:
    await running.publish()
    found = await reader.component(NAME, VERSION)
    before = len(running.asked)
    assert await reader.component(NAME, VERSION) is found
    assert len(running.asked) == before


async def test_a_version_that_was_pushed_again_is_seen(running: Shelf, tmp_path: Path) -> None:
    """Limit (i) of the Go system: its descriptors and layers never expire."""
    clock = FakeClock()
    settings = ReadingLimits(revalidation=60.0)
    reader = ModuleRegistry(settings, fixed(running.access), cache=ArtifactCache(tmp_path / "cache"), clock=clock)
    await running.publish()
    first = await reader.component(NAME, VERSION)
    await running.publish(manifest=MANIFEST + b"data: {changed: 'yes'}\n")
    assert await reader.component(NAME, VERSION) is first
    await clock.advance(61.0)
    second = await reader.component(NAME, VERSION)
    assert second.install is not None and first.install is not None
    assert second.install.ref != first.install.ref
    assert b"changed" in await reader.manifest(second.install)
    await reader.close()


async def test_an_unchanged_version_costs_one_head(running: Shelf, tmp_path: Path) -> None:
    clock = FakeClock()
    reader = ModuleRegistry(ReadingLimits(revalidation=60.0), fixed(running.access), clock=clock)
    await running.publish()
    first = await reader.component(NAME, VERSION)
    before = len(running.asked)
    await clock.advance(61.0)
    assert await reader.component(NAME, VERSION) is first
    assert [method for method, _ in running.asked[before:]] == ["HEAD"]
    await reader.close()


@pytest.mark.parametrize("status", [401, 403, 404, 429, 503])
async def test_a_known_component_survives_an_outage_of_the_registry(running: Shelf, status: int) -> None:
    """Bad input: the registry is down, its storage is away, or it refuses the credentials."""
    reader = ModuleRegistry(ReadingLimits(revalidation=0.0), fixed(running.access), clock=FakeClock())
    await running.publish()
    first = await reader.component(NAME, VERSION)

    async def broken(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, headers={"Retry-After": "3600", "WWW-Authenticate": "Basic"})

    running.registry.fault = broken
    assert await reader.component(NAME, VERSION) is first
    await reader.close()


async def test_a_version_that_was_pushed_again_broken_is_an_error(running: Shelf) -> None:
    clock = FakeClock()
    reader = ModuleRegistry(ReadingLimits(revalidation=0.0), fixed(running.access), clock=clock)
    await running.publish()
    await reader.component(NAME, VERSION)
    odd = {"name": "chart", "type": "helmChart", "version": "1", "relation": "local", "access": {"type": "helm"}}
    await running.publish(component(resources=[odd]))
    with pytest.raises(ModuleSourceError, match="access type 'helm'"):
        await reader.component(NAME, VERSION)
    await running.publish()
    await clock.advance(FAILURE_AGE)
    assert (await reader.component(NAME, VERSION)).version == VERSION
    await reader.close()


async def test_a_crowd_waits_for_a_failing_registry_once(running: Shelf) -> None:
    """A reconcile does not wait for what another one has just seen to fail."""
    clock = FakeClock()
    reader = ModuleRegistry(ReadingLimits(), fixed(running.access), clock=clock)
    results = await asyncio.gather(*(reader.component(NAME, VERSION) for _ in range(50)), return_exceptions=True)
    assert all(isinstance(one, ModuleSourceError) for one in results)
    assert [method for method, _ in running.asked] == ["HEAD", "GET"]
    await running.publish()
    await clock.advance(FAILURE_AGE)
    assert (await reader.component(NAME, VERSION)).version == VERSION
    await reader.close()


async def test_a_registry_that_is_away_for_long_costs_no_memory(running: Shelf) -> None:
    """An error that is met again and again keeps nothing of the attempts."""
    clock = FakeClock()
    reader = ModuleRegistry(ReadingLimits(), fixed(running.access), clock=clock)

    class Work:
        """Stands for the objects of a reconcile."""

    async def attempt(work: Work) -> None:
        with contextlib.suppress(ModuleSourceError):
            await reader.component(NAME, VERSION)

    kept = []
    for _ in range(5):
        for _ in range(4):
            work = Work()
            kept.append(weakref.ref(work))
            await attempt(work)
        await clock.advance(FAILURE_AGE)
    del work
    gc.collect()
    assert sum(one() is not None for one in kept) <= 1, "the last attempt's"
    await reader.close()


async def test_a_crowd_fetches_a_component_once(running: Shelf) -> None:
    reader = ModuleRegistry(ReadingLimits(), fixed(running.access), clock=FakeClock())
    await running.publish()
    before = len(running.asked)
    found = await asyncio.gather(*(reader.component(NAME, VERSION) for _ in range(50)))
    assert len({id(one) for one in found}) == 1
    assert len(running.asked) - before == 4, "tag, manifest, config and descriptor"
    await reader.close()


async def test_an_unpublished_version_is_named(running: Shelf, reader: ModuleRegistry) -> None:
    with pytest.raises(ModuleSourceError) as caught:
        await reader.component(NAME, "9.9.9")
    assert f"module {NAME} 9.9.9" in caught.value.message
    assert caught.value.reason == "ModuleNotPublished" and caught.value.actor is Actor.OPERATOR


async def test_a_registry_that_is_down_is_no_fault_of_ours(running: Shelf, reader: ModuleRegistry) -> None:
    async def broken(request: web.Request) -> web.StreamResponse:
        return web.Response(status=429, headers={"Retry-After": "77"})

    running.registry.fault = broken
    with pytest.raises(ModuleSourceError) as caught:
        await reader.component(NAME, VERSION)
    assert caught.value.reason == "ModuleRegistryUnavailable"
    assert caught.value.after == 77.0


async def test_a_registry_that_stays_silent_is_given_up(
    running: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad input: it takes the connection and never answers."""
    monkeypatch.setattr(connections, "SILENCE", 0.1)
    over = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        await over.wait()
        return web.Response(status=503)

    running.registry.fault = silent
    reader = ModuleRegistry(ReadingLimits(), fixed(running.access), cache=ArtifactCache(tmp_path / "slow"))
    try:
        with pytest.raises(ModuleSourceError) as caught:
            await reader.component(NAME, VERSION)
        assert caught.value.reason == "ModuleRegistryUnavailable"
        assert NAME in caught.value.message
    finally:
        over.set()
        await reader.close()


async def test_a_lying_registry_is_found_out(running: Shelf, reader: ModuleRegistry) -> None:
    """Bad input: a layer with another digest than it is stored under."""
    layout = await running.publish()
    found = await reader.component(NAME, VERSION)
    blobs = running.registry.blobs
    for name, digest in list(blobs):
        if digest == digest_of(layout.layers[1]):
            blobs[name, digest] = layout.layers[1][:-1] + b"x"
    assert found.install is not None
    with pytest.raises(ModuleSourceError, match="digest") as caught:
        await reader.manifest(found.install)
    assert NAME in caught.value.message and caught.value.reason == "ModuleSourceInvalid"


async def test_a_descriptor_of_another_component_is_refused(running: Shelf, reader: ModuleRegistry) -> None:
    await running.publish()
    manifests, tags = running.registry.manifests, running.registry.tags
    (name,) = tags
    tags[name]["2.0.0"] = tags[name][VERSION]
    assert manifests
    with pytest.raises(ModuleSourceError, match="the descriptor is of"):
        await reader.component(NAME, "2.0.0")


async def test_a_component_without_repository_contexts_has_no_layers(running: Shelf, reader: ModuleRegistry) -> None:
    """Contract 2.1.4: such a descriptor yields no layers."""
    layout = component_layout(component(), {"raw-manifest": MANIFEST})
    await push_component(running.access, layout)
    assert (await reader.component(NAME, VERSION)).install is None


async def test_an_unknown_access_type_is_an_error(running: Shelf, reader: ModuleRegistry) -> None:
    """Contract 2.1.4: localBlob, localOciBlob and the ociArtifact family are accepted."""
    odd = {"name": "chart", "type": "helmChart", "version": "1", "relation": "local", "access": {"type": "helm"}}
    await running.publish(component(resources=[odd]))
    with pytest.raises(ModuleSourceError, match="'chart' has access type 'helm'"):
        await reader.component(NAME, VERSION)


async def test_the_same_version_with_other_content_is_not_replaced_unasked(running: Shelf) -> None:
    await running.publish()
    await running.publish(overwrite=False)
    with pytest.raises(AlreadyPublished, match=r"published already .* other content"):
        await running.publish(manifest=b"kind: Other\n", overwrite=False)
