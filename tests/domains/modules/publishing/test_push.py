"""`hortus module push`, and dependencies against a catalog."""

from __future__ import annotations

import base64
from pathlib import Path

import orjson
import pytest
from tests.domains.modules.publishing.conftest import MANIFEST, ModuleFolder

from hortus.domains.modules.registry import ModuleRegistry, ReadingLimits, access_from_host, fixed
from hortus.simulation.registry import RegistryServer


@pytest.fixture
def docker(tmp_path: Path, registry: RegistryServer) -> Path:
    """A docker config with the author's credentials."""
    path = tmp_path / "config.json"
    auth = base64.b64encode(b"author:right").decode()
    path.write_bytes(orjson.dumps({"auths": {registry.address: {"auth": auth}}}))
    return path


def _push(registry: RegistryServer, docker: Path, *more: str) -> tuple[str, ...]:
    return "push", "-r", f"http://{registry.address}/prod", "--docker-config", str(docker), *more


async def _manifest(registry: RegistryServer, version: str) -> bytes:
    reader = ModuleRegistry(ReadingLimits(), fixed(access_from_host(f"http://{registry.address}/prod")))
    component = await reader.component("kyma-project.io/module/hello", version)
    assert component.install is not None
    found = await reader.manifest(component.install)
    await reader.close()
    return found


def test_a_pushed_module_can_be_read(folder: ModuleFolder, registry: RegistryServer, docker: Path) -> None:
    import asyncio

    found = folder.type(*_push(registry, docker, "--channel", "regular"))
    reference = f"{registry.address}/prod/component-descriptors/kyma-project.io/module/hello:1.0.3"
    assert f"published {reference}" in found.output
    assert "next      kubectl apply -n kcp-system -f template.yaml -f module-release-meta.yaml" in found.output
    assert asyncio.run(_manifest(registry, "1.0.3")) == MANIFEST.encode()


def test_the_same_content_changes_nothing(folder: ModuleFolder, registry: RegistryServer, docker: Path) -> None:
    first = orjson.loads(folder.type(*_push(registry, docker, "-o", "json")).stdout)
    assert orjson.loads(folder.type(*_push(registry, docker, "-o", "json")).stdout) == first


def test_other_content_under_a_version_needs_overwrite(
    folder: ModuleFolder, registry: RegistryServer, docker: Path
) -> None:
    folder.type(*_push(registry, docker))
    (folder.path / "manifest.yaml").write_text(MANIFEST + "---\napiVersion: v1\nkind: Namespace\n")
    refused = folder.type(*_push(registry, docker), code=1)
    assert "publish another version, or pass --overwrite" in refused.output
    folder.type(*_push(registry, docker, "--overwrite"))


def test_credentials_are_needed_and_named(folder: ModuleFolder, registry: RegistryServer) -> None:
    refused = folder.type("push", "-r", f"http://{registry.address}/prod", code=1)
    assert "give credentials for this registry" in refused.output


def test_the_user_s_own_docker_config_is_used(
    folder: ModuleFolder, registry: RegistryServer, docker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = orjson.loads(docker.read_bytes()) | {"credsStore": "desktop"}
    docker.write_bytes(orjson.dumps(content))
    monkeypatch.setenv("DOCKER_CONFIG", str(docker.parent))
    assert "published " in folder.type("push", "-r", f"http://{registry.address}/prod").output


def test_an_address_that_names_no_registry_is_refused(folder: ModuleFolder) -> None:
    assert "names no registry" in folder.type("push", "-r", "modules", code=1).output


def catalog(folder: ModuleFolder, module: str, version: str, needs: str = "") -> None:
    """A ModuleTemplate in the folder `catalog`."""
    path = folder.path / "catalog"
    path.mkdir(exist_ok=True)
    annotation = f"annotations: {{dependencies.operator.kyma-project.io: '{needs}'}}" if needs else ""
    (path / f"{module}-{version}.yaml").write_text(
        "apiVersion: operator.kyma-project.io/v1beta2\nkind: ModuleTemplate\n"
        f"metadata: {{name: {module}-{version}, {annotation}}}\n"
        f"spec: {{moduleName: {module}, version: {version}, descriptor: {{}}}}\n"
    )


def test_dependencies_are_written_for_people_and_for_the_control_plane(folder: ModuleFolder) -> None:
    folder.write(dependencies=[{"module": "istio", "versions": ">=1.2"}])
    folder.type("build")
    text = '[{"module":"istio","versions":">=1.2"}]'
    template = (folder.path / "template.yaml").read_text()
    assert f"dependencies.operator.kyma-project.io: '{text}'" in template
    assert text in (folder.path / "component-constructor.yaml").read_text()


def test_a_cycle_is_refused_with_its_way(folder: ModuleFolder) -> None:
    """Issue of cyclic needs: refused at publication."""
    catalog(folder, "istio", "1.2.0", '[{"module":"nats","versions":"*"}]')
    catalog(folder, "nats", "0.1.0", '[{"module":"hello","versions":">=1"}]')
    folder.write(dependencies=[{"module": "istio", "versions": ">=1.2"}])
    refused = folder.type("build", "--catalog", "catalog", code=1)
    assert "hello would need itself: hello 1.0.3 -> istio 1.2.0 -> nats 0.1.0 -> hello 1.0.3" in refused.output


def test_a_range_that_leaves_the_version_out_makes_no_cycle(folder: ModuleFolder) -> None:
    catalog(folder, "istio", "1.2.0", '[{"module":"hello","versions":"<1"}]')
    folder.write(dependencies=[{"module": "istio"}])
    folder.type("build", "--catalog", "catalog")
    assert '[{"module":"istio"' in (folder.path / "template.yaml").read_text()


def test_needs_that_the_catalog_lacks_are_warnings(folder: ModuleFolder) -> None:
    catalog(folder, "istio", "1.2.0")
    folder.write(dependencies=[{"module": "istio", "versions": ">=2"}, {"module": "nats"}])
    found = folder.type("build", "--catalog", "catalog").output
    assert "the catalog has no version of istio (>=2); there are: 1.2.0" in found
    assert "the catalog has no module nats" in found
