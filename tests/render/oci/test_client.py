"""The client against a registry: pulling, verifying, getting in, pushing, and what a bad registry may not do."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest
from aiohttp import web
from tests.render.oci.registry import Registry
from tests.render.serving import Site, cut, loopback, serving

from hortus.kube import Secret
from hortus.render.archive import Tree, pack_tgz
from hortus.render.artifacts import (
    AccessDenied,
    ArtifactCache,
    ArtifactError,
    BadAnswer,
    DigestMismatch,
    NotFound,
    PolicyRefused,
    RateLimited,
    TooLarge,
    TransferSettings,
    Unavailable,
    digest_of,
)
from hortus.render.oci import (
    CredentialStore,
    ImageManifest,
    OciClient,
    OciSettings,
    Platform,
    Reference,
    RegistryCredentials,
    parse_reference,
)
from hortus.render.oci.manifests import OCI_INDEX, OCI_MANIFEST
from hortus.testing import FakeClock

CANARY = "canary-password"
CHART = pack_tgz(Tree({"web/Chart.yaml": b"name: web\nversion: 1.0.0\n"}))


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
async def site(registry: Registry) -> AsyncIterator[Site]:
    async with serving(registry.handle) as found:
        registry.site = found
        yield found


def settings(*sites: Site, **fields: object) -> OciSettings:
    transfer = fields.pop("transfer", None) or loopback(*(one.host for one in sites))
    return OciSettings(transfer=transfer, **fields)  # type: ignore[arg-type]


def reference(site: Site, rest: str = "team/web:1.0.0") -> Reference:
    return parse_reference(f"{site.host}/{rest}")


def as_user(site: Site, **fields: object) -> CredentialStore:
    return CredentialStore({site.host: RegistryCredentials(username="me", password=Secret(CANARY), **fields)})  # type: ignore[arg-type]


def redirect(to: str, status: int = 307) -> web.Response:
    return web.Response(status=status, headers={"Location": to})


async def test_a_chart_that_was_pushed_comes_back_by_tag_and_by_digest(site: Site, tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path / "cache")
    async with OciClient(settings=settings(site), cache=cache) as client:
        digest = await client.push_chart(reference(site), CHART, metadata={"name": "web", "version": "1.0.0"})
        chart = await client.chart(reference(site))
        assert (chart.digest, chart.content, chart.provenance) == (digest, CHART, None)
        assert await client.resolve(reference(site)) == digest
        pinned = reference(site).at(digest)
        asked = len(site.asked)
        assert (await client.chart(pinned)).content == CHART
        assert len(site.asked) == asked, "by digest, all of it comes out of the cache"


async def test_any_artifact_is_pushed_and_pulled_with_its_annotations(site: Site) -> None:
    layers = (("text/plain", b"one"), ("application/json", b"{}"))
    async with OciClient(settings=settings(site)) as client:
        subject_digest = await client.push(reference(site), layers, artifact_type="application/vnd.example")
        pulled = await client.artifact(reference(site))
        assert pulled.layers == (b"one", b"{}")
        assert pulled.manifest.artifact_type == "application/vnd.example"
        assert [layer.media_type for layer in pulled.manifest.layers] == ["text/plain", "application/json"]
        again = await client.push(reference(site), layers, artifact_type="application/vnd.example")
        assert again == subject_digest, "the same artifact has the same digest"
        assert sum(asked.method == "POST" for asked in site.asked) == 2, "blobs that are there are not sent again"


async def test_a_large_blob_goes_in_chunks_and_finds_its_way_after_a_lost_answer(
    site: Site, registry: Registry
) -> None:
    data = bytes(range(256)) * 100
    lost = iter([True])

    async def forget(request: web.Request) -> web.StreamResponse | None:
        if request.method == "PATCH" and request.headers["Content-Range"].startswith("4096-") and next(lost, False):
            upload = request.path.rpartition("/")[2]
            registry.uploads[upload] += await request.read()
            place = f"/v2/team/web/blobs/uploads/{upload}?state=stale"
            return web.Response(status=416, headers={"Location": place})
        return None

    registry.fault = forget
    async with OciClient(settings=settings(site, chunk=4096)) as client:
        await client.push_blob(reference(site), data)
    assert registry.blobs["team/web", digest_of(data)] == data
    assert sum(asked.method == "PATCH" for asked in site.asked) == 7


async def test_chunks_are_as_large_as_the_registry_wants(site: Site, registry: Registry) -> None:
    registry.chunk_minimum = 10_000
    async with OciClient(settings=settings(site, chunk=1000)) as client:
        await client.push_blob(reference(site), bytes(25_000))
    assert sum(asked.method == "PATCH" for asked in site.asked) == 3


async def test_a_blob_of_another_repository_is_mounted_without_sending_it(site: Site, registry: Registry) -> None:
    registry.add_blob("other/base", b"x" * 1000)
    registry.users["me"] = CANARY
    async with OciClient(settings=settings(site), credentials=as_user(site)) as client:
        await client.push_blob(reference(site), b"x" * 1000, source="other/base")
    assert registry.blobs["team/web", digest_of(b"x" * 1000)]
    assert not any(asked.method in ("PATCH", "PUT") for asked in site.asked)


async def test_tags_are_listed_to_the_end(site: Site, registry: Registry) -> None:
    registry.tags["team/web"] = {f"v{n:02}": "sha256:0" for n in range(9)}
    async with OciClient(settings=settings(site)) as client:
        assert await client.tags(reference(site)) == [f"v{n:02}" for n in range(9)]
        with pytest.raises(NotFound):
            await client.tags(reference(site, "team/absent"))


@pytest.mark.parametrize(
    "link", ['</v2/team/web/tags/list?n=1000>; rel="next"', "</v2/team/web/tags/list?n={page}>; rel=next"]
)
async def test_a_list_that_never_ends_is_given_up(site: Site, registry: Registry, link: str) -> None:
    async def endless(request: web.Request) -> web.StreamResponse | None:
        header = link.format(page=int(request.query["n"]) + 1)
        return web.json_response({"name": "x", "tags": [f"t{request.query['n']}"]}, headers={"Link": header})

    registry.fault = endless
    async with OciClient(settings=settings(site, max_pages=20)) as client:
        with pytest.raises(BadAnswer, match="does not end"):
            await client.tags(reference(site))
    assert len(site.asked) <= 20


async def test_the_next_page_is_never_at_another_host(site: Site, registry: Registry) -> None:
    async with serving(registry.handle) as other:

        async def elsewhere(request: web.Request) -> web.StreamResponse | None:
            return web.json_response({"tags": ["a"]}, headers={"Link": f"<{other.url}/v2/x/tags/list>; rel=next"})

        registry.fault = elsewhere
        async with OciClient(settings=settings(site, other)) as client:
            with pytest.raises(PolicyRefused, match="another host"):
                await client.tags(reference(site))
        assert other.asked == []


async def test_a_token_is_asked_for_once_per_scope_and_again_when_it_is_refused(site: Site, registry: Registry) -> None:
    registry.users["me"] = CANARY
    async with OciClient(settings=settings(site), credentials=as_user(site)) as client:
        await client.push_chart(reference(site), CHART, metadata={"name": "web"})
        await client.chart(reference(site))
        await client.chart(reference(site))
        assert registry.token_number == 2, "one to push, one to pull"
        registry.tokens.clear()
        await client.chart(reference(site))
        assert registry.token_number == 3
    asked = next(one for one in site.asked if one.path.startswith("/token"))
    assert "scope=repository%3Ateam%2Fweb%3Apull%2Cpush" in asked.path
    assert "service=registry%2C%20ours" in asked.path


async def test_a_token_is_not_used_after_its_time(site: Site, registry: Registry) -> None:
    registry.users["me"] = CANARY
    clock = FakeClock()
    async with OciClient(settings=settings(site), credentials=as_user(site), clock=clock) as client:
        registry.tags["team/web"] = {"v1": "x"}
        await client.tags(reference(site))
        clock.skip(295)
        await client.tags(reference(site))
        assert registry.token_number == 2
        refused = [one for one in site.asked if one.path.startswith("/v2") and one.authorization is None]
        assert len(refused) == 2, "an old token is not even shown"


async def test_basic_credentials_are_shown_where_the_registry_asks_for_them(site: Site, registry: Registry) -> None:
    registry.users["me"], registry.basic = CANARY, True
    registry.tags["team/web"] = {"v1": "x"}
    async with OciClient(settings=settings(site), credentials=as_user(site)) as client:
        assert await client.tags(reference(site)) == ["v1"]
    async with OciClient(settings=settings(site)) as client:
        with pytest.raises(AccessDenied, match="give credentials"):
            await client.tags(reference(site))
    wrong = CredentialStore({site.host: RegistryCredentials(username="me", password=Secret("wrong" + CANARY))})
    async with OciClient(settings=settings(site), credentials=wrong) as client:
        with pytest.raises(AccessDenied) as caught:
            await client.tags(reference(site))
    assert CANARY not in str(caught.value)


async def test_an_identity_token_is_traded_for_an_access_token(site: Site, registry: Registry) -> None:
    registry.realm = f"{site.url}/token"
    registry.identity_tokens.add("refresh-me")
    registry.tags["team/web"] = {"v1": "x"}
    store = CredentialStore({site.host: RegistryCredentials(identity_token=Secret("refresh-me"))})
    async with OciClient(settings=settings(site), credentials=store) as client:
        assert await client.tags(reference(site)) == ["v1"]


async def test_a_token_realm_at_another_host_is_refused_and_never_called(site: Site, registry: Registry) -> None:
    registry.users["me"] = CANARY
    async with serving(registry.handle) as attacker:
        registry.realm = f"{attacker.url}/token"
        for store in (as_user(site), CredentialStore()):
            async with OciClient(settings=settings(site, attacker), credentials=store) as client:
                with pytest.raises(PolicyRefused, match="wants a token from"):
                    await client.tags(reference(site))
        assert attacker.asked == []


async def test_a_token_realm_that_redirects_elsewhere_is_refused(site: Site, registry: Registry) -> None:
    registry.users["me"] = CANARY
    async with serving(registry.handle) as attacker:

        async def hijack(request: web.Request) -> web.StreamResponse | None:
            at_site = request.path == "/token" and request.host == site.host
            return redirect(f"{attacker.url}/token?scope=x") if at_site else None

        registry.fault = hijack
        async with OciClient(settings=settings(site, attacker), credentials=as_user(site)) as client:
            with pytest.raises((PolicyRefused, AccessDenied)):
                await client.tags(reference(site))
        assert all(asked.authorization is None for asked in attacker.asked)


async def stored(registry: Registry, data: bytes = b"layer" * 1000) -> bytes:
    digest = registry.add_blob("team/web", data)
    config = registry.add_blob("team/web", b"{}")
    raw = orjson.dumps(
        {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": config, "size": 2},
            "layers": [{"mediaType": "text/plain", "digest": digest, "size": len(data)}],
        }
    )
    registry.add("team/web", raw, OCI_MANIFEST, "1.0.0")
    return data


async def test_a_download_redirected_to_storage_carries_no_credentials_there(site: Site, registry: Registry) -> None:
    data = await stored(registry)
    registry.users["me"] = CANARY

    async def storage(request: web.Request) -> web.StreamResponse:
        return web.Response(body=data)

    async with serving(storage) as other:

        async def elsewhere(request: web.Request) -> web.StreamResponse | None:
            wanted = "/blobs/" in request.path and request.headers.get("Authorization", "").startswith("Bearer")
            return redirect(f"{other.url}/stored?signature=secret") if wanted else None

        registry.fault = elsewhere
        async with OciClient(settings=settings(site, other), credentials=as_user(site)) as client:
            assert (await client.artifact(reference(site))).layers == (data,)
        assert [asked.authorization for asked in other.asked] == [None]

        hosts = loopback(site.host, other.host, redirects=frozenset({"storage.example.com"}))
        async with OciClient(settings=settings(transfer=hosts), credentials=as_user(site)) as client:
            with pytest.raises(PolicyRefused, match="redirects to"):
                await client.artifact(reference(site))


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://localhost:{port}/x",
        "http://[::ffff:169.254.169.254]/x",
        "https://127.0.0.1:{port}/x",
        "https://localhost:{port}/x",
        "https://[::1]:{port}/x",
        "https://[::ffff:127.0.0.1]:{port}/x",
        "https://169.254.169.254/latest",
        "https://0.0.0.0:{port}/",
        "https://2130706433:{port}/",
        "file:///etc/passwd",
        "ftp://example.com/x",
        "https://user:password@example.com/x",
        "http://",
        "https://[::1",
        "//169.254.169.254/x",
    ],
)
async def test_a_redirect_to_this_machine_or_its_metadata_is_refused(
    site: Site, registry: Registry, target: str
) -> None:
    await stored(registry)
    async with serving(registry.handle) as local:

        async def astray(request: web.Request) -> web.StreamResponse | None:
            return redirect(target.format(port=local.port)) if "/blobs/" in request.path else None

        registry.fault = astray
        # Plain http is allowed everywhere here, so that the address alone decides.
        everywhere = frozenset(
            {site.host, "169.254.169.254", "localhost", "::ffff:169.254.169.254", "[::ffff:a9fe:a9fe]"}
        )
        hosts = TransferSettings(plain_http=everywhere, local_hosts=frozenset({site.host}), attempts=1)
        async with OciClient(settings=settings(transfer=hosts)) as client:
            with pytest.raises((PolicyRefused, BadAnswer)):
                await client.artifact(reference(site))
        assert local.asked == []


async def test_redirects_without_end_are_given_up(site: Site, registry: Registry) -> None:
    await stored(registry)

    async def around(request: web.Request) -> web.StreamResponse | None:
        return redirect(request.path + "x") if "/blobs/" in request.path else None

    registry.fault = around
    async with OciClient(settings=settings(site)) as client:
        with pytest.raises(BadAnswer, match="redirects in a row"):
            await client.artifact(reference(site))


async def test_an_upload_is_never_sent_to_another_host(site: Site, registry: Registry) -> None:
    registry.users["me"] = CANARY
    async with serving(registry.handle) as other:

        async def astray(request: web.Request) -> web.StreamResponse | None:
            is_open = request.method == "POST" and request.path.endswith("uploads/")
            if is_open and request.headers.get("Authorization", "").startswith("Bearer"):
                return web.Response(status=202, headers={"Location": f"{other.url}/v2/x/blobs/uploads/1"})
            return None

        registry.fault = astray
        async with OciClient(settings=settings(site, other), credentials=as_user(site)) as client:
            with pytest.raises(PolicyRefused, match="upload Location"):
                await client.push_blob(reference(site), b"private")
        assert other.asked == []


async def test_a_download_that_breaks_off_goes_on_where_it_stopped(
    site: Site, registry: Registry, tmp_path: Path
) -> None:
    data = await stored(registry, bytes(range(256)) * 2000)
    starts: list[str] = []

    async def breaking(request: web.Request) -> web.StreamResponse | None:
        if not request.path.endswith(digest_of(data)):
            return None
        starts.append(request.headers.get("Range", ""))
        if len(starts) == 1:
            return await cut(request, data[:100_000], length=len(data))
        return None

    registry.fault = breaking
    async with OciClient(settings=settings(site), cache=ArtifactCache(tmp_path / "cache")) as client:
        assert (await client.artifact(reference(site))).layers == (data,)
    assert starts[0] == ""
    assert len(starts) == 2
    assert 0 < int(starts[1].removeprefix("bytes=").removesuffix("-")) <= 100_000


async def test_a_server_that_cannot_go_on_is_asked_from_the_beginning(site: Site, registry: Registry) -> None:
    data = await stored(registry, bytes(range(256)) * 2000)
    answers: list[str] = []

    async def breaking(request: web.Request) -> web.StreamResponse | None:
        if not request.path.endswith(digest_of(data)):
            return None
        answers.append(request.headers.get("Range", ""))
        match len(answers):
            case 1:
                return await cut(request, data[:50_000], length=len(data))
            case 2:
                return web.Response(status=416)
            case 3:
                return await cut(request, data[:60_000], length=len(data))
        return web.Response(body=data)

    registry.fault = breaking
    async with OciClient(settings=settings(site)) as client:
        assert (await client.artifact(reference(site))).layers == (data,)
    assert [bool(one) for one in answers] == [False, True, False, True]


async def test_a_part_from_another_place_is_refused(site: Site, registry: Registry) -> None:
    data = await stored(registry, bytes(1000))
    first = iter([True])

    async def breaking(request: web.Request) -> web.StreamResponse | None:
        if not request.path.endswith(digest_of(data)):
            return None
        if next(first, False):
            return await cut(request, data[:500], length=1000)
        return web.Response(status=206, body=data[400:], headers={"Content-Range": "bytes 400-999/1000"})

    registry.fault = breaking
    async with OciClient(settings=settings(site)) as client:
        with pytest.raises(BadAnswer, match="another place"):
            await client.artifact(reference(site))


Body = Callable[[web.Request, bytes], Awaitable[web.StreamResponse]]


async def _other(request: web.Request, data: bytes) -> web.StreamResponse:
    return web.Response(body=data[:-1] + b"!")


async def _longer(request: web.Request, data: bytes) -> web.StreamResponse:
    return web.Response(body=data + b"!")


async def _shorter(request: web.Request, data: bytes) -> web.StreamResponse:
    return web.Response(body=data[:-1])


async def _endless(request: web.Request, data: bytes) -> web.StreamResponse:
    response = web.StreamResponse()
    response.enable_chunked_encoding()
    await response.prepare(request)
    while True:
        await response.write(bytes(65536))


async def _gzipped(request: web.Request, data: bytes) -> web.StreamResponse:
    return web.Response(body=data, headers={"Content-Encoding": "gzip"})


async def _html(request: web.Request, data: bytes) -> web.StreamResponse:
    return web.Response(status=204)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (_other, DigestMismatch),
        (_longer, TooLarge),
        (_shorter, Unavailable),
        (_endless, TooLarge),
        (_gzipped, BadAnswer),
        (_html, BadAnswer),
    ],
)
async def test_a_blob_that_is_not_the_one_asked_for_is_not_kept(
    site: Site, registry: Registry, tmp_path: Path, body: Body, error: type[ArtifactError]
) -> None:
    data = await stored(registry)

    async def lie(request: web.Request) -> web.StreamResponse | None:
        return await body(request, data) if request.path.endswith(digest_of(data)) else None

    registry.fault = lie
    cache = ArtifactCache(tmp_path / "cache")
    async with OciClient(settings=settings(site), cache=cache) as client:
        with pytest.raises(error):
            await client.artifact(reference(site))
        assert cache.read(digest_of(data)) is None
        registry.fault = None
        assert (await client.artifact(reference(site))).layers == (data,), "and the truth is taken afterwards"
    async with OciClient(settings=settings(site)) as client:
        registry.fault = lie
        with pytest.raises(error):
            await client.artifact(reference(site))


async def test_a_tag_that_moves_between_looking_and_fetching_changes_nothing(site: Site, registry: Registry) -> None:
    data = await stored(registry)
    async with OciClient(settings=settings(site)) as client:
        digest = await client.resolve(reference(site))
        registry.add("team/web", b'{"schemaVersion":2,"evil":true}', OCI_MANIFEST, "1.0.0")
        pulled = await client.artifact(reference(site).at(digest))
        assert pulled.manifest.digest == digest
        assert pulled.layers == (data,)


async def test_a_manifest_with_another_digest_than_asked_is_refused(site: Site, registry: Registry) -> None:
    await stored(registry)
    wanted = reference(site, f"team/web:1.0.0@sha256:{'0' * 64}")

    async def lie(request: web.Request) -> web.StreamResponse | None:
        if "/manifests/" not in request.path:
            return None
        raw = registry.manifests["team/web", registry.tags["team/web"]["1.0.0"]][1]
        return web.Response(
            body=raw, headers={"Content-Type": OCI_MANIFEST, "Docker-Content-Digest": wanted.identifier}
        )

    registry.fault = lie
    async with OciClient(settings=settings(site)) as client:
        with pytest.raises(DigestMismatch):
            await client.manifest(wanted)
        with pytest.raises(DigestMismatch):
            await client.manifest(reference(site))


EMPTY = {"mediaType": "a/b", "digest": "sha256:" + "0" * 64, "size": 2}
MANIFEST = {"schemaVersion": 2, "config": EMPTY, "layers": [EMPTY]}


@pytest.mark.parametrize(
    ("document", "media_type"),
    [
        ({**MANIFEST, "manifests": [EMPTY]}, OCI_MANIFEST),
        ({**MANIFEST, "manifests": [EMPTY]}, OCI_INDEX),
        (MANIFEST, OCI_INDEX),
        ({"schemaVersion": 2, "manifests": [EMPTY]}, OCI_MANIFEST),
        ({**MANIFEST, "mediaType": OCI_INDEX}, OCI_MANIFEST),
        ({**MANIFEST, "schemaVersion": 1}, OCI_MANIFEST),
        ({"schemaVersion": 2, "config": EMPTY}, OCI_MANIFEST),
        ({"schemaVersion": 2, "layers": []}, OCI_MANIFEST),
        ({**MANIFEST, "layers": [{**EMPTY, "digest": "sha256:short"}]}, OCI_MANIFEST),
        ({**MANIFEST, "layers": [{**EMPTY, "digest": "../../x"}]}, OCI_MANIFEST),
        ({**MANIFEST, "layers": [{**EMPTY, "size": -1}]}, OCI_MANIFEST),
        ({**MANIFEST, "layers": [EMPTY] * 501}, OCI_MANIFEST),
        ({"schemaVersion": 2, "manifests": [EMPTY] * 501}, OCI_INDEX),
        (MANIFEST, "text/html"),
        ([], OCI_MANIFEST),
        ("x" * (5 << 20), OCI_MANIFEST),
    ],
)
async def test_a_manifest_of_two_minds_or_beyond_bounds_is_refused(
    site: Site, registry: Registry, document: object, media_type: str
) -> None:
    registry.add("team/web", orjson.dumps(document), media_type, "1.0.0")
    async with OciClient(settings=settings(site)) as client:
        with pytest.raises((BadAnswer, TooLarge)):
            await client.manifest(reference(site))


async def test_a_deeply_nested_manifest_is_refused(site: Site, registry: Registry) -> None:
    raw = b'{"schemaVersion":2,"annotations":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    registry.add("team/web", raw, OCI_MANIFEST, "1.0.0")
    async with OciClient(settings=settings(site)) as client:
        with pytest.raises(BadAnswer):
            await client.manifest(reference(site))


async def test_an_index_gives_the_manifest_of_a_platform(site: Site, registry: Registry) -> None:
    await stored(registry)
    inner = registry.tags["team/web"]["1.0.0"]
    entry = {"mediaType": OCI_MANIFEST, "digest": inner, "size": 1}
    platforms = [{"os": "linux", "architecture": "arm64", "variant": "v8"}, {"os": "linux", "architecture": "amd64"}]
    index = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [entry | {"platform": p} for p in platforms]}
    registry.add("team/web", orjson.dumps(index), OCI_INDEX, "multi")
    async with OciClient(settings=settings(site)) as client:
        found = await client.image(reference(site, "team/web:multi"), platform=Platform("arm64", "linux"))
        assert isinstance(found, ImageManifest)
        assert found.digest == inner
        with pytest.raises(PolicyRefused, match="which platform"):
            await client.image(reference(site, "team/web:multi"))
        with pytest.raises(NotFound, match=r"linux/amd64, linux/arm64/v8"):
            await client.image(reference(site, "team/web:multi"), platform=Platform("s390x", "linux"))
        index["manifests"] = [entry | {"mediaType": OCI_INDEX}]
        registry.add("team/web", orjson.dumps(index), OCI_INDEX, "liar")
        with pytest.raises(BadAnswer, match="media type"):
            await client.image(reference(site, "team/web:liar"))


async def test_indexes_within_indexes_end(site: Site, registry: Registry) -> None:
    await stored(registry)
    digest, media_type = registry.tags["team/web"]["1.0.0"], OCI_MANIFEST
    for _ in range(5):
        entry = {"mediaType": media_type, "digest": digest, "size": 1}
        index = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [entry]}
        digest, media_type = registry.add("team/web", orjson.dumps(index), OCI_INDEX, "deep"), OCI_INDEX
    async with OciClient(settings=settings(site)) as client:
        with pytest.raises(BadAnswer, match="one inside the other"):
            await client.image(reference(site, "team/web:deep"))


async def test_what_is_no_chart_is_not_taken_for_one(site: Site, registry: Registry) -> None:
    await stored(registry)
    async with OciClient(settings=settings(site)) as client:
        with pytest.raises(BadAnswer, match="is no Helm chart"):
            await client.chart(reference(site))


async def test_too_many_requests_are_waited_for_or_reported(site: Site, registry: Registry) -> None:
    await stored(registry)
    waits = iter(["0", "7", "100000"])

    async def busy(request: web.Request) -> web.StreamResponse | None:
        wait = next(waits, None)
        limits = {"RateLimit-Limit": "100;w=21600", "RateLimit-Remaining": "42;w=21600"}
        return web.Response(status=429, headers={"Retry-After": wait, **limits}) if wait else None

    registry.fault = busy
    clock = FakeClock()
    async with OciClient(settings=settings(site), clock=clock) as client:
        call = client.manifest(reference(site))
        with pytest.raises(RateLimited) as caught:
            await _driven(clock, call)
        assert caught.value.retry_after == 600.0
        assert client.rate_limits[site.host].remaining == 42
        assert len(site.asked) == 3
        assert (await client.manifest(reference(site))).digest


async def _driven(clock: FakeClock, call: Awaitable[object]) -> object:
    """Let `call` run, moving time whenever it waits."""
    running = asyncio.ensure_future(call)
    while not running.done():
        await asyncio.wait([running], timeout=0.01)
        await clock.advance(10)
    return await running


async def test_a_failing_registry_is_tried_again_and_then_reported(site: Site, registry: Registry) -> None:
    await stored(registry)
    failures = iter([500, 502, 503])

    async def failing(request: web.Request) -> web.StreamResponse | None:
        status = next(failures, None)
        return web.Response(status=status) if status else None

    registry.fault = failing
    async with OciClient(settings=settings(site)) as client:
        assert (await client.manifest(reference(site))).digest
        registry.fault = lambda request: _status(500)
        with pytest.raises(Unavailable, match="500"):
            await client.manifest(reference(site))


async def _status(status: int) -> web.StreamResponse:
    return web.Response(status=status)


async def test_refusals_say_what_and_where_without_terminal_codes(site: Site, registry: Registry) -> None:
    async with OciClient(settings=settings(site)) as client:
        with pytest.raises(NotFound) as caught:
            await client.manifest(reference(site))
    assert str(caught.value).isprintable()
    assert "MANIFEST_UNKNOWN" in str(caught.value)
    assert site.host in str(caught.value)


async def test_plain_http_and_local_addresses_are_refused_unless_allowed(site: Site) -> None:
    async with OciClient() as client:
        with pytest.raises(PolicyRefused, match="this machine"):
            await client.manifest(parse_reference(f"127.0.0.1:{site.port}/a/b:c"))
        with pytest.raises(PolicyRefused, match="this machine"):
            await client.manifest(parse_reference(f"localhost:{site.port}/a/b:c"))
    assert site.asked == []
    only_local = OciSettings(transfer=TransferSettings(local_hosts=frozenset({site.host}), attempts=1))
    async with OciClient(settings=only_local) as client:
        with pytest.raises(Unavailable):
            await client.manifest(reference(site))
    assert site.asked == [], "plain http was not tried"


async def test_credentials_of_a_docker_config_reach_the_registry(site: Site, registry: Registry) -> None:
    registry.users["me"] = CANARY
    await stored(registry)
    auth = base64.b64encode(f"me:{CANARY}".encode()).decode()
    store = CredentialStore.from_docker_config(orjson.dumps({"auths": {f"http://{site.host}/v2/": {"auth": auth}}}))
    async with OciClient(settings=settings(site), credentials=store) as client:
        assert (await client.manifest(reference(site))).digest


@asynccontextmanager
async def _closed() -> AsyncIterator[OciClient]:
    client = OciClient()
    await client.close()
    yield client


async def test_a_closed_client_says_so() -> None:
    async with _closed() as client:
        with pytest.raises(RuntimeError, match="closed"):
            await client.manifest(parse_reference("registry.example.com/a:b"))


@pytest.mark.parametrize("status", [403, 500])
async def test_the_error_for_a_registry_that_repeats_our_password_omits_it(status: int) -> None:
    async def repeating(request: web.Request) -> web.Response:
        header = request.headers.get("Authorization", "")
        if not header:
            return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="r"'})
        plain = base64.b64decode(header.removeprefix("Basic ")).decode()
        return web.json_response({"errors": [{"code": "DENIED", "message": f"not by {plain}"}]}, status=status)

    async with serving(repeating) as found:
        quick = settings(found, transfer=loopback(found.host, attempts=1))
        async with OciClient(settings=quick, credentials=as_user(found)) as client:
            with pytest.raises(ArtifactError, match="DENIED: not by me:") as caught:
                await client.tags(reference(found))
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("status", [404, 500])
async def test_the_error_for_a_realm_that_repeats_our_refresh_token_omits_it(status: int) -> None:
    async def repeating(request: web.Request) -> web.Response:
        if request.method == "GET":
            realm = f"{request.url.origin()}/token"
            return web.Response(status=401, headers={"WWW-Authenticate": f'Bearer realm="{realm}",service="s"'})
        sent = (await request.post())["refresh_token"]
        return web.json_response({"errors": [{"code": "DENIED", "message": f"not by {sent}"}]}, status=status)

    async with serving(repeating) as found:
        quick = settings(found, transfer=loopback(found.host, attempts=1))
        store = CredentialStore({found.host: RegistryCredentials(identity_token=Secret(CANARY))})
        async with OciClient(settings=quick, credentials=store) as client:
            with pytest.raises(ArtifactError, match="DENIED: not by ") as caught:
                await client.tags(reference(found))
    assert CANARY not in str(caught.value)
