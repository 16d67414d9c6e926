"""The Go system's own samples, as its users have them: applied unchanged, and served."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest
from tests.domains.modules.kyma.world import HOME, KymaWorld, kyma_world
from tests.domains.modules.manifests.world import (
    CRDS,
    DEPLOYMENTS,
    MODULES,
    STATEFUL_SETS,
    ModuleWorld,
    is_ready,
    module_world,
    state,
)
from tests.domains.modules.watching.test_istio import definition
from tests.domains.modules.watching.world import started_world

from hortus.domains.modules.manifests.rendering import id_of, parse
from hortus.domains.modules.registry.components import component_of
from hortus.domains.modules.registry.descriptors import parse_descriptor
from hortus.domains.modules.types import (
    KYMAS,
    MANIFESTS,
    MODULE_RELEASE_METAS,
    MODULE_TEMPLATES,
    WATCHERS,
    InstallSource,
    ModuleTemplate,
)
from hortus.domains.modules.watching.certificates import CERT_MANAGER_CERTIFICATES
from hortus.domains.modules.watching.controller import GATEWAYS, VIRTUAL_SERVICES
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.typed import read
from hortus.kube import Resource, yaml
from hortus.kube.objects import Object
from hortus.render.artifacts import parse_digest
from hortus.testing import wait_for
from hortus.testing.apiserver import TestServer, started_apiserver


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_apiserver() as running:
        yield running


@pytest.fixture
async def here(server: TestServer) -> AsyncIterator[KymaWorld]:
    async with kyma_world(server) as made:
        yield made


@pytest.fixture
async def world(server: TestServer) -> AsyncIterator[ModuleWorld]:
    async with module_world(server) as made:
        yield made


def sample(folder: Path, name: str) -> list[Object]:
    return [obj for obj in yaml.load_all((folder / "klm" / name).read_text()) if obj]


async def test_the_sample_kyma_and_its_secret_are_served(here: KymaWorld, upstream: Path) -> None:
    """samples/kyma.yaml and secret_remote_cluster_access.yaml, with the cluster's kubeconfig in its place."""
    (kyma,) = sample(upstream, "samples/kyma.yaml")
    text = (upstream / "klm/samples/secret_remote_cluster_access.yaml").read_text()
    await here.cluster(kyma="unused")
    kubeconfig = yaml.dump(here.server.kubeconfig_dict(here.full("skr"))).encode()
    secret = yaml.load(text.replace("<INSERT_BASE64_CONFIG_HERE>", base64.b64encode(kubeconfig).decode()))
    name = kyma["metadata"]["name"]
    secret["metadata"] |= {"namespace": HOME, "name": name}
    secret["metadata"]["labels"]["operator.kyma-project.io/kyma-name"] = name
    await here.client.create(SECRETS, secret)
    await here.module("template-operator", {"regular": "1.0.0"}, labels={"operator.kyma-project.io/beta": "true"})
    await here.client.create(KYMAS, kyma)
    async with here.controllers():
        manifest = await here.manifest("template-operator")
        await here.set_manifest_state(manifest["metadata"]["name"], "Ready")
        ready = await here.until(is_ready, name=name)
    assert manifest["metadata"]["name"].startswith(f"{name}-template-operator-")
    assert ready["status"]["activeChannel"] == "regular"


async def test_the_sample_release_and_an_old_template_are_accepted(here: KymaWorld, upstream: Path) -> None:
    """template-operator/module-release-meta.yaml and an old-style ModuleTemplate are accepted as they are."""
    (release,) = sample(upstream, "template-operator/module-release-meta.yaml")
    release["metadata"]["namespace"] = HOME
    made = await here.client.create(MODULE_RELEASE_METAS, release)
    for field, value in release["spec"].items():
        assert made["spec"][field] == value
    template, *_ = sample(upstream, "moduletemplates/v1beta2_template_operator_new_ocm.yaml")
    made = await here.client.create(MODULE_TEMPLATES, template)
    assert made["spec"] == template["spec"]
    assert read(ModuleTemplate, made).spec.channel == "regular"


def test_layers_of_the_sample_descriptor_have_their_types(upstream: Path) -> None:
    """2.1.4, 2.2.2: tar layers are oci-dir, images of ociArtifact are localised; other layers are left out."""
    template, *_ = sample(upstream, "moduletemplates/v1beta2_template_operator_new_ocm.yaml")
    descriptor = parse_descriptor(yaml.dump(template["spec"]["descriptor"]).encode())
    found = component_of(
        descriptor, digest=parse_digest("sha256:" + "0" * 64), repository="registry.example.org/modules"
    )
    assert found.install == InstallSource(
        repo="registry.example.org/modules",
        name="kyma-project.io/module/template-operator",
        ref="sha256:d2cc278224a71384b04963a83e784da311a268a2b3fa8732bc31e70ca0c5bc52",
        type="oci-dir",
    )
    assert found.default_cr is not None
    assert found.config is None
    assert found.localized_images == ("europe-docker.pkg.dev/kyma-project/prod/template-operator:1.0.0",)
    assert msgspec.to_builtins(found.version) == "1.0.0-new-ocm-format"


@pytest.mark.parametrize(
    ("file", "objects"), [("rendered", 2), ("raw-manifest", 10), ("template-operator-manifest", 13)]
)
def test_manifests_of_the_go_system_have_distinct_objects(upstream: Path, file: str, objects: int) -> None:
    """2.2.3: parsed to the objects of the file, each once."""
    text = (upstream / f"klm/manifests/{file}.yaml").read_bytes()
    found = [id_of(obj) for obj in parse(text)]
    assert len(found) == len(set(found)) == objects


@pytest.mark.parametrize("workload", ["deployment", "statefulset"])
async def test_the_sample_module_becomes_ready_with_either_workload(
    world: ModuleWorld, upstream: Path, workload: str
) -> None:
    """template-operator: its CRDs, its operator as Deployment or StatefulSet, and its default resource."""
    world.flags = ["--manifest-requeue-busy-interval=50ms"]
    objects = [
        *sample(upstream, "template-operator/crd_samples.yaml"),
        *sample(upstream, "template-operator/crd_manageds.yaml"),
        *sample(upstream, f"template-operator/manager_{workload}.yaml"),
    ]
    (resource,) = sample(upstream, "template-operator/default-sample-cr.yaml")
    resource["metadata"]["namespace"] = MODULES
    await world.manifest(world.layers.push(*objects), spec={"resource": resource})
    kind: Resource = DEPLOYMENTS if workload == "deployment" else STATEFUL_SETS
    async with world.controllers():
        operator = await world.until_inside(kind, "controller-manager", "system")
        if kind is DEPLOYMENTS:
            await world.become_available("controller-manager", "system")
        else:
            status = {"status": {"replicas": 1, "readyReplicas": operator["spec"]["replicas"]}}
            await world.inside.patch(kind, "controller-manager", status, "system", subresource="status")
        ready = await world.until(is_ready)
    samples = Resource("operator.kyma-project.io", "v1alpha1", "samples", "Sample")
    made = await world.read(samples, "sample-yaml", MODULES)
    assert made is not None
    assert made["spec"]["resourceFilePath"] == "./module-data/yaml"
    assert len(ready["status"]["synced"]) == len(objects)


@pytest.mark.parametrize(
    "file",
    [
        "crds-test/operator.kyma-project.io_kcpmodules.yaml",
        "crds-test/operator.kyma-project.io_v1beta2_samplecrd.yaml",
        "template-operator/crd_samples.yaml",
        "template-operator/crd_manageds.yaml",
        "template-operator/crd_thirdparties.yaml",
    ],
)
async def test_kinds_of_the_go_system_s_modules_hold_a_removal(world: ModuleWorld, upstream: Path, file: str) -> None:
    """2.2.6 step 3, for each of its CRDs in a module: a resource of a user blocks, in any served version."""
    world.flags = ["--manifest-requeue-busy-interval=50ms"]
    (crd,) = sample(upstream, file)
    names = crd["spec"]["names"]
    spec = {"randomkey": "x"} if names["kind"] == "SampleCRD" else {}
    versions = [one["name"] for one in crd["spec"]["versions"] if one["served"]]
    group, namespaced = crd["spec"]["group"], crd["spec"]["scope"] == "Namespaced"
    resource = {
        "apiVersion": f"{group}/{versions[-1]}",
        "kind": names["kind"],
        "metadata": {"name": "default", "namespace": MODULES},
        "spec": spec,
    }
    kind = Resource(group, versions[0], names["plural"], names["kind"], namespaced=namespaced)
    await world.manifest(world.layers.push(crd), spec={"resource": resource})
    async with world.controllers():
        await world.until(is_ready)
        assert await world.read(kind, "default", MODULES if namespaced else "") is not None
        metadata = {"name": "mine", **({"namespace": "default"} if namespaced else {})}
        mine = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}
        await world.inside.create(kind, mine)
        await world.client.delete(MANIFESTS, "one-module", HOME)
        held = await world.until(lambda found: state(found) == "Deleting")
        assert held["status"]["lastOperation"]["operation"] == "waiting for module crs deletion"
        await world.inside.delete(kind, "mine", metadata.get("namespace", ""))
        await world.until_gone()
    assert await world.read(CRDS, crd["metadata"]["name"]) is None


async def test_the_sample_gateway_serves_the_sample_watcher(tmp_path: Path, upstream: Path) -> None:
    """samples/watcher_gateway.yaml is found by the selector of samples/kyma_watcher.yaml."""
    (gateway,) = sample(upstream, "samples/watcher_gateway.yaml")
    gateway["metadata"]["namespace"] = "kcp-system"
    found = sample(upstream, "samples/kyma_watcher.yaml")
    watcher = next(obj for obj in found if obj["kind"] == "Watcher")
    watcher["metadata"]["namespace"] = "kcp-system"
    async with started_world(tmp_path) as world:
        for resource in (GATEWAYS, VIRTUAL_SERVICES, CERT_MANAGER_CERTIFICATES):
            await world.control.create(CRDS, definition(resource))
            name = f"{resource.plural}.{resource.group}"
            await wait_for(world.control, CRDS, name, until=lambda one: "Established" in str(one))
        await world.control.create(GATEWAYS, gateway)
        async with world.watching():
            await world.control.create(WATCHERS, watcher)
            route = await wait_for(world.control, VIRTUAL_SERVICES, watcher["metadata"]["name"], "kcp-system")
    assert route["spec"]["hosts"] == ["listener.cp.kyma.cloud.sap"]
    assert route["spec"]["gateways"] == ["kcp-system/watcher"]
