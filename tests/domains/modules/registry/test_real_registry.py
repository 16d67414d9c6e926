"""Publishing and reading against the registry of the distribution project, of which most registries are made."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.domains.modules.registry.shelves import IMAGE, MANIFEST, NAME, VERSION, component
from tests.oracles.programs import built_program, why_not

from hortus.domains.modules.publishing.layout import component_layout
from hortus.domains.modules.publishing.pushing import AlreadyPublished, push_component
from hortus.domains.modules.registry import (
    ModuleRegistry,
    ModuleSourceError,
    ReadingLimits,
    RegistryAccess,
    access_from_host,
    fixed,
)
from hortus.render.artifacts import ArtifactCache

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def access() -> Iterator[RegistryAccess]:
    binary = built_program("registry")
    if binary is None:
        pytest.skip(why_not("registry"))
    process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    yield access_from_host(f"http://127.0.0.1:{int(process.stdout.readline())}", subpath="prod/modules")
    process.communicate()


async def test_a_module_is_published_and_read(access: RegistryAccess, tmp_path: Path) -> None:
    layout = component_layout(component(), {"raw-manifest": MANIFEST}, access=access)
    assert await push_component(access, layout) == layout.digest
    assert await push_component(access, layout) == layout.digest
    reader = ModuleRegistry(ReadingLimits(), fixed(access), cache=ArtifactCache(tmp_path / "cache"))
    found = await reader.component(NAME, VERSION)
    assert found.install is not None and found.localized_images == (IMAGE,)
    assert await reader.manifest(found.install) == MANIFEST
    with pytest.raises(ModuleSourceError, match="has no"):
        await reader.component(NAME, "9.9.9")
    await reader.close()


async def test_other_content_is_refused_until_it_is_asked_for(access: RegistryAccess) -> None:
    first = component_layout(component("2.0.0"), {"raw-manifest": MANIFEST}, access=access)
    second = component_layout(component("2.0.0"), {"raw-manifest": MANIFEST + b"---\n"}, access=access)
    await push_component(access, first)
    with pytest.raises(AlreadyPublished):
        await push_component(access, second)
    await push_component(access, second, overwrite=True)


async def test_a_version_with_build_metadata_has_a_tag(access: RegistryAccess) -> None:
    version = "1.0.0+build.5"
    await push_component(access, component_layout(component(version), {"raw-manifest": MANIFEST}, access=access))
    reader = ModuleRegistry(ReadingLimits(), fixed(access))
    assert (await reader.component(NAME, version)).version == version
    await reader.close()
