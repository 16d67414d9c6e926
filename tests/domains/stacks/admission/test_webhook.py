"""The webhook over HTTPS, called by an API server with the configuration of the documentation."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.apiserver.admission.scripted import scripted_webhook
from tests.domains.stacks.catalog.world import CLUSTERS, HOME, TEAM, CatalogWorld, catalog_world
from tests.waiting import until

from hortus.domains.stacks.admission.lookups import ServerLookups
from hortus.domains.stacks.admission.registration import CLUSTER_PATH, RELEASE_PATH, STACK_PATH
from hortus.domains.stacks.admission.reviews import AdmissionReviews
from hortus.domains.stacks.capi import CLUSTERS as CLUSTERS_BY_VERSION
from hortus.domains.stacks.types import CLUSTER_STACK_RELEASES, CLUSTER_STACKS, STACK_POLICIES
from hortus.engine.health import Address
from hortus.engine.serving import AdmissionWebhooks, HttpsServer, MountedCertificate, ServingPair, self_signed
from hortus.kube import Client, PatchKind, Resource, yaml
from hortus.kube.access import Access
from hortus.kube.clock import SystemClock
from hortus.kube.errors import ApiError, BadRequest
from hortus.kube.objects import Object
from hortus.simulation.capi.definitions import CRDS
from hortus.testing.apiserver import TestServer

WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
PAGE = Path(__file__).resolve().parents[4] / "docs" / "stacks" / "admission.md"
PRESENT = CLUSTERS_BY_VERSION["v1beta2"]
V1 = "docker-ferrol-1-27-v1"


def documented() -> Object:
    """The configuration that the page shows."""
    block = re.search(r"```yaml\n(.*?)```", PAGE.read_text(), re.S)
    assert block is not None
    found: Object = yaml.load(block[1])
    return found


def pair() -> ServingPair:
    return self_signed(["127.0.0.1"], now=SystemClock().now())


def write(folder: Path, made: ServingPair) -> None:
    (folder / "tls.crt").write_bytes(made.certificate)
    (folder / "tls.key").write_text(made.key.reveal())


class Served:
    """A world whose API server calls the webhook."""

    def __init__(self, world: CatalogWorld, server: HttpsServer, certificate: MountedCertificate, folder: Path) -> None:
        self.world = world
        self.server = server
        self.certificate = certificate
        self.folder = folder


@asynccontextmanager
async def served(server: TestServer, tmp_path: Path) -> AsyncIterator[Served]:
    async with catalog_world(server, tmp_path) as world:
        made = pair()
        write(tmp_path, made)
        webhooks = AdmissionWebhooks()
        AdmissionReviews(ServerLookups(world.client, "")).add_to(webhooks)
        https = HttpsServer("webhook", Address("127.0.0.1", 0), webhooks.routes)
        certificate = MountedCertificate(tmp_path, https)
        certificate.show()
        serving = asyncio.create_task(https.run())
        await until(lambda: https.port)
        yield Served(world, https, certificate, tmp_path)
        serving.cancel()
        await asyncio.wait((serving,))


@pytest.fixture
async def here(server: TestServer, tmp_path: Path) -> AsyncIterator[Served]:
    async with served(server, tmp_path) as found:
        yield found


@asynccontextmanager
async def registered(here: Served) -> AsyncIterator[None]:
    """The API server calls the webhook, through a server whose connections can be ended."""

    def answer(path: str) -> Any:
        async def forward(request: dict[str, Any]) -> Object:
            review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
            response = (await ask(here, path, review))["response"]
            return {name: value for name, value in response.items() if name != "uid"}

        return forward

    configuration = documented()
    async with scripted_webhook(here.folder) as hook:
        for webhook in configuration["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = hook.client(path, answer(path))
        await here.world.client.create(WEBHOOKS, configuration)
        yield


def test_the_documented_configuration_is_that_of_the_go_operator(upstream: Path) -> None:
    """Clusters are named in v1beta2 besides."""
    theirs = yaml.load((upstream / "cso/deploy/cso-webhook-manifests.yaml").read_text())
    clusters = next(one for one in theirs["webhooks"] if one["name"] == "validation.cluster.cluster.x-k8s.io")
    clusters["rules"][0]["apiVersions"].append(PRESENT.version)
    ours = documented()
    for webhook in (*theirs["webhooks"], *ours["webhooks"]):
        service = webhook["clientConfig"]["service"]
        webhook["clientConfig"] = service["path"]
    assert ours["webhooks"] == theirs["webhooks"]


async def test_an_api_server_denies_what_the_webhook_denies(here: Served) -> None:
    world = here.world
    await world.create(CLUSTER_STACK_RELEASES, V1, spec={})
    status = {"status": {"kubernetesVersion": "v1.27.3"}}
    await world.client.patch(CLUSTER_STACK_RELEASES, V1, status, HOME, PatchKind.MERGE, "status")
    async with registered(here):
        await check(world)


async def check(world: CatalogWorld) -> None:
    with pytest.raises(ApiError, match=r"spec\.topology\.version: is 'v1\.27\.4'"):
        await world.cluster("shop", V1, namespace=TEAM, classNamespace=HOME, version="v1.27.4")
    await world.cluster("shop", V1, namespace=TEAM, classNamespace=HOME)
    await world.create(CLUSTERS, "classic", TEAM, spec={})
    with pytest.raises(ApiError, match="is used by Clusters team/shop"):
        await world.client.delete(CLUSTER_STACK_RELEASES, V1, HOME)
    with pytest.raises(ApiError, match=r"spec\.versions\[0\]"):
        await world.stack("v1-alpha")
    await world.stack("v1")
    with pytest.raises(ApiError, match="ClusterStack stack is used by Clusters team/shop"):
        await world.client.delete(CLUSTER_STACKS, "stack", HOME)
    await world.client.delete(CLUSTERS, "shop", TEAM)
    await world.client.delete(CLUSTER_STACK_RELEASES, V1, HOME)


async def test_a_cluster_that_names_its_class_by_reference_is_reviewed_as_well(here: Served) -> None:
    world = here.world
    await world.create(CLUSTER_STACK_RELEASES, V1, spec={})
    status = {"status": {"kubernetesVersion": "v1.27.3"}}
    await world.client.patch(CLUSTER_STACK_RELEASES, V1, status, HOME, PatchKind.MERGE, "status")
    topology = {"classRef": {"name": V1, "namespace": HOME}, "version": "v1.27.4"}
    async with registered(here):
        with pytest.raises(ApiError, match=r"spec\.topology\.version: is 'v1\.27\.4'"):
            await world.create(PRESENT, "shop", TEAM, spec={"topology": topology})
        await world.create(PRESENT, "shop", TEAM, spec={"topology": {**topology, "version": "v1.27.3"}})
        with pytest.raises(ApiError, match="is used by Clusters team/shop"):
            await world.client.delete(CLUSTER_STACK_RELEASES, V1, HOME)


async def test_a_cluster_does_not_take_a_class_before_its_version_is_approved(here: Served) -> None:
    """No release is installed, so the name of the class alone decides: on every way to it, and in both forms."""
    world = here.world
    await world.create(STACK_POLICIES, "ferrol", spec={"provider": "docker", "versions": ["v2"]})
    denied = pytest.raises(ApiError, match=r"release docker-ferrol-1-27-v1 is not approved for namespace team")
    topology = {"class": V1, "classNamespace": HOME, "version": "v1.27.3"}
    by_reference = {"classRef": {"name": V1, "namespace": HOME}, "version": "v1.27.3"}
    async with registered(here):
        with denied:
            await world.create(CLUSTERS, "shop", TEAM, spec={"topology": topology})
        with denied:
            await world.create(PRESENT, "shop", TEAM, spec={"topology": by_reference})
        body = {"apiVersion": CLUSTERS.api_version, "kind": "Cluster", "metadata": {"name": "shop"}}
        with denied:
            await world.client.create(CLUSTERS, {**body, "spec": {"topology": topology}}, namespace=TEAM, dry_run=True)
        with denied:
            await world.client.apply(
                CLUSTERS,
                {**body, "metadata": {"name": "shop", "namespace": TEAM}, "spec": {"topology": topology}},
                field_manager="team",
            )
        await world.create(CLUSTERS, "classic", TEAM, spec={})
        with denied:
            await world.client.patch(CLUSTERS, "classic", {"spec": {"topology": topology}}, TEAM)
        with denied:
            await world.client.patch(PRESENT, "classic", {"spec": {"topology": by_reference}}, TEAM)
        await world.cluster("approved", "docker-ferrol-1-27-v2", namespace=TEAM, classNamespace=HOME)
        moved = {"spec": {"topology": {"class": V1}}}
        with denied:
            await world.client.patch(CLUSTERS, "approved", moved, TEAM)


async def test_clusters_are_reviewed_on_a_server_that_serves_v1beta2_alone(here: Served) -> None:
    world = here.world
    await world.create(STACK_POLICIES, "ferrol", spec={"provider": "docker", "versions": ["v2"]})
    crd = await world.client.get(CRDS, "clusters.cluster.x-k8s.io")
    served = [{**one, "served": one["name"] == PRESENT.version} for one in crd["spec"]["versions"]]
    await world.client.patch(CRDS, "clusters.cluster.x-k8s.io", {"spec": {"versions": served}})
    topology = {"classRef": {"name": V1, "namespace": HOME}, "version": "v1.27.3"}
    async with registered(here):
        with pytest.raises(ApiError, match="is not approved for namespace team"):
            await world.create(PRESENT, "shop", TEAM, spec={"topology": topology})


async def ask(here: Served, path: str, body: Any) -> Object:
    access = Access(server=f"https://127.0.0.1:{here.server.port}", ca=(here.folder / "tls.crt").read_bytes())
    async with Client(access) as client:
        answer = await client.request("POST", path, orjson.dumps(body))
    found: Object = orjson.loads(answer.body)
    return found


async def test_a_review_is_answered_in_its_own_version(here: Served) -> None:
    request = {"uid": "1", "operation": "CREATE", "object": {"metadata": {"name": "a"}, "spec": {}}}
    for version in ("v1", "v1beta1"):
        body = {"apiVersion": f"admission.k8s.io/{version}", "kind": "AdmissionReview", "request": request}
        assert await ask(here, CLUSTER_PATH, body) == {
            "apiVersion": f"admission.k8s.io/{version}",
            "kind": "AdmissionReview",
            "response": {"uid": "1", "allowed": True},
        }


async def test_an_object_of_another_shape_is_denied_with_the_field(here: Served) -> None:
    odd = {"metadata": {"name": "a", "namespace": "b"}, "spec": {"topology": "docker"}}
    request = {"uid": "1", "operation": "CREATE", "object": odd}
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    answer = await ask(here, CLUSTER_PATH, body)
    assert not answer["response"]["allowed"]
    assert "$.spec.topology" in answer["response"]["status"]["message"]


@pytest.mark.parametrize("field", ["provider", "name"])
async def test_a_cluster_stack_without_provider_or_name_is_denied(here: Served, field: str) -> None:
    spec = {"provider": "docker", "name": "ferrol", "kubernetesVersion": "1.27", "noProvider": True, field: ""}
    request = {"uid": "1", "operation": "CREATE", "object": {"metadata": {"name": "a"}, "spec": spec}}
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    answer = await ask(here, STACK_PATH, body)
    assert f"$.spec.{field}" in answer["response"]["status"]["message"]


async def test_a_body_that_is_no_review_is_a_bad_request(here: Served) -> None:
    with pytest.raises(BadRequest):
        await ask(here, RELEASE_PATH, [1])


async def test_a_renewed_certificate_is_shown_and_a_broken_one_is_not(here: Served) -> None:
    body = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "1", "operation": "CONNECT"},
    }
    good = (here.folder / "tls.crt").read_bytes()
    (here.folder / "tls.crt").write_bytes(b"broken")
    here.certificate.refresh()
    (here.folder / "tls.crt").write_bytes(good)
    assert (await ask(here, CLUSTER_PATH, body))["response"]["allowed"]
    write(here.folder, pair())
    here.certificate.refresh()
    assert (await ask(here, CLUSTER_PATH, body))["response"]["allowed"]
