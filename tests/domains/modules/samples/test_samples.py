"""The sample modules are modules: they build, publish, and their catalog is accepted."""

from __future__ import annotations

from pathlib import Path

from hortus.domains.modules.publishing.catalog import check_dependencies, published
from hortus.domains.modules.publishing.pushing import push_component
from hortus.domains.modules.registry import ModuleRegistry, ReadingLimits, access_from_host, fixed
from hortus.domains.modules.samples import CHANNELS, sample_catalog, sample_modules
from hortus.domains.modules.types import ModuleReleaseMeta, ModuleTemplate
from hortus.engine import read
from hortus.schema import Structural, crd
from hortus.simulation.registry import RegistryFolder, RegistryServer


def test_every_sample_builds_without_warnings() -> None:
    modules = sample_modules()
    assert [f"{one.config.module} {one.config.version}" for one in modules] == [
        "brittle 0.9.0",
        "greeter 0.1.0",
        "ledger 2.0.0",
        "template-operator 1.0.0",
        "template-operator 1.1.0",
    ]
    assert [one.warnings for one in modules] == [()] * len(modules)


def test_the_catalog_is_accepted_and_names_published_versions() -> None:
    modules = sample_modules()
    objects = sample_catalog(modules, namespace="kcp-system")
    for kind in (ModuleTemplate, ModuleReleaseMeta):
        version = next(one for one in crd(kind)["spec"]["versions"] if one["storage"])
        structural = Structural.compile(version["schema"]["openAPIV3Schema"])
        for obj in objects:
            if obj["kind"] == kind.FACTS.name:
                assert structural.validate(obj) == []
                assert obj["metadata"]["namespace"] == "kcp-system"
    known = {(one.config.module, one.config.version) for one in modules}
    wanted = {(name, version) for name, versions in CHANNELS.items() for version in versions.values()}
    assert wanted <= known


def test_what_samples_need_is_published() -> None:
    modules = sample_modules()
    templates = [read(ModuleTemplate, one.template) for one in modules]
    assert [check_dependencies(one.config, published(templates)) for one in modules] == [[]] * len(modules)


async def test_samples_are_published_and_read(tmp_path: Path) -> None:
    async with RegistryServer(RegistryFolder(tmp_path / "registry")) as server:
        access = access_from_host(f"http://{server.address}")
        reader = ModuleRegistry(ReadingLimits(), fixed(access))
        for module in sample_modules():
            await push_component(access, module.layout(access))
            found = await reader.component(module.config.name, module.config.version)
            assert found.install is not None
            assert await reader.manifest(found.install) == module.contents["raw-manifest"]
        await reader.close()
