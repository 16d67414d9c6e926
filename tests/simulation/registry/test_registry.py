"""The embedded registry speaks distribution-spec 1.1, with our own client and by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from tests.render.serving import loopback
from yarl import URL

from hortus.kube import Secret
from hortus.render.archive import Tree, pack_tgz
from hortus.render.artifacts import AccessDenied, NotFound, digest_of
from hortus.render.oci import CredentialStore, Descriptor, OciClient, OciSettings, RegistryCredentials, parse_reference
from hortus.simulation.registry import RegistryFolder, RegistryServer

CHART = pack_tgz(Tree({"web/Chart.yaml": b"name: web\nversion: 1.0.0\n"}))


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[RegistryServer]:
    async with RegistryServer(RegistryFolder(tmp_path / "registry")) as running:
        yield running


def client(registry: RegistryServer, user: str = "", **limits: object) -> OciClient:
    known = {registry.address: RegistryCredentials(username=user, password=Secret("right"))} if user else {}
    settings = OciSettings(transfer=loopback(registry.address), **limits)  # type: ignore[arg-type]
    return OciClient(settings=settings, credentials=CredentialStore(known))


async def test_a_chart_goes_in_and_comes_out(registry: RegistryServer) -> None:
    reference = parse_reference(f"{registry.address}/team/charts/web:1.0.0")
    async with client(registry) as oci:
        digest = await oci.push_chart(reference, CHART, metadata={"name": "web", "version": "1.0.0"})
        assert await oci.resolve(reference) == digest
        assert (await oci.chart(reference)).content == CHART
        assert await oci.tags(reference) == ["1.0.0"]


async def test_a_blob_comes_in_chunks_and_from_another_repository(registry: RegistryServer) -> None:
    data = bytes(range(256)) * 40
    async with client(registry, chunk=1000) as oci:
        first, second = (parse_reference(f"{registry.address}/{name}") for name in ("one", "two/deep"))
        stored = await oci.push_blob(first, data)
        await oci.push_blob(second, data, source="one")
        assert await oci.blob(second, Descriptor("application/x", stored.digest, len(data))) == data


async def test_content_survives_a_restart(tmp_path: Path) -> None:
    folder = tmp_path / "registry"
    async with RegistryServer(RegistryFolder(folder)) as first, client(first) as oci:
        await oci.push_chart(parse_reference(f"{first.address}/web:1"), CHART, metadata={"name": "web"})
    async with RegistryServer(RegistryFolder(folder)) as second, client(second) as oci:
        assert (await oci.chart(parse_reference(f"{second.address}/web:1"))).content == CHART


async def test_a_manifest_without_its_blobs_is_refused(registry: RegistryServer) -> None:
    url = f"http://{registry.address}/v2/web/manifests/1"
    body = {"schemaVersion": 2, "config": {"digest": digest_of(b"absent")}, "layers": []}
    async with aiohttp.ClientSession() as session, session.put(url, json=body) as answer:
        assert answer.status == 400
        assert (await answer.json())["errors"][0]["code"] == "MANIFEST_BLOB_UNKNOWN"


async def test_an_upload_with_another_digest_is_not_kept(registry: RegistryServer) -> None:
    url = f"http://{registry.address}/v2/web/blobs/uploads/?digest={digest_of(b'other')}"
    async with aiohttp.ClientSession() as session:
        async with session.post(url, data=b"this") as answer:
            assert answer.status == 400
        async with session.head(f"http://{registry.address}/v2/web/blobs/{digest_of(b'other')}") as answer:
            assert answer.status == 404


@pytest.mark.parametrize(
    "path", ["/v2/../../etc/manifests/1", "/v2/_blobs/manifests/1", "/v2/web/manifests/..%2f..", "/v2/WEB/tags/list"]
)
async def test_a_name_cannot_leave_the_folder(registry: RegistryServer, path: str) -> None:
    url = URL(f"http://{registry.address}{path}", encoded=True)
    async with aiohttp.ClientSession() as session, session.put(url, data=b"{}") as answer:
        assert answer.status == 404


async def test_everyone_pulls_and_users_push(tmp_path: Path) -> None:
    folder = RegistryFolder(tmp_path / "registry")
    async with RegistryServer(folder, users={"hortus": "right"}) as registry:
        reference = parse_reference(f"{registry.address}/web:1")
        async with client(registry) as oci:
            with pytest.raises(AccessDenied):
                await oci.push_chart(reference, CHART, metadata={"name": "web"})
        async with client(registry, "hortus") as oci:
            await oci.push_chart(reference, CHART, metadata={"name": "web"})
        async with client(registry) as oci:
            assert (await oci.chart(reference)).content == CHART


async def test_tags_come_page_by_page_and_can_be_deleted(registry: RegistryServer) -> None:
    async with client(registry, page=2) as oci:
        for number in range(5):
            reference = parse_reference(f"{registry.address}/web:{number}")
            await oci.push_chart(reference, CHART, metadata={"name": "web", "version": str(number)})
        assert await oci.tags(reference) == ["0", "1", "2", "3", "4"]
        url = f"http://{registry.address}/v2/web/manifests/3"
        async with aiohttp.ClientSession() as session, session.delete(url) as answer:
            assert answer.status == 202
        with pytest.raises(NotFound):
            await oci.resolve(parse_reference(f"{registry.address}/web:3"))


async def test_signatures_are_found_by_their_subject(registry: RegistryServer) -> None:
    reference = parse_reference(f"{registry.address}/web:1")
    async with client(registry) as oci:
        digest = await oci.push_chart(reference, CHART, metadata={"name": "web"})
        subject = Descriptor("application/vnd.oci.image.manifest.v1+json", digest, 0)
        plain = parse_reference(f"{registry.address}/web")
        await oci.push(plain, (("text/plain", b"signed"),), artifact_type="a/signature", subject=subject)
        (found,) = await oci.referrers(reference, artifact_type="a/signature")
        assert found.artifact_type == "a/signature"


async def test_a_private_registry_lets_users_alone_pull(tmp_path: Path) -> None:
    folder = RegistryFolder(tmp_path / "registry")
    async with RegistryServer(folder, users={"hortus": "right"}, private=True) as registry:
        reference = parse_reference(f"{registry.address}/web:1")
        async with client(registry, "hortus") as oci:
            await oci.push_chart(reference, CHART, metadata={"name": "web"})
        async with client(registry) as oci:
            with pytest.raises(AccessDenied):
                await oci.chart(reference)
