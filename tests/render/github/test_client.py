"""Releases from a scripted GitHub: pages, ETags, allowances, downloads, and advice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote

import orjson
import pytest
from aiohttp import web
from tests.render.serving import Site, cut, loopback, serving

from hortus.kube import Secret
from hortus.render.artifacts import (
    AccessDenied,
    ArtifactCache,
    BadAnswer,
    DigestMismatch,
    NotFound,
    PolicyRefused,
    RateLimited,
    TooLarge,
    Unavailable,
    digest_of,
)
from hortus.render.github import Asset, BadRepository, GitHubClient, GitHubSettings
from hortus.testing import FakeClock

TOKEN = "canary-token"
DATA = bytes(range(256)) * 100


def release(number: int, **fields: object) -> dict[str, object]:
    asset = {"id": number, "name": "metadata.yaml", "size": len(DATA), "digest": None, "uploader": {"login": "x"}}
    return {"id": number, "tag_name": f"v{number}", "name": None, "assets": [asset], "url": "ignored", **fields}


class GitHub:
    """Five releases, two a page; knobs for what goes wrong."""

    def __init__(self) -> None:
        self.answers: list[web.Response] = []
        """Answered first, in order."""
        self.etags = True
        self.storage = ""
        self.site: Site | None = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.answers:
            return self.answers.pop(0)
        parts = request.raw_path.partition("?")[0].removeprefix("/api/v3").split("/")[1:]
        if parts[:3] != ["repos", "owner", "name"]:
            return web.Response(status=404)
        match parts[3:]:
            case ["releases"]:
                return self._page(request)
            case ["releases", "tags", tag]:
                return self._etagged(request, orjson.dumps(release(1, tag_name=unquote(tag))), {})
            case ["releases", "latest"]:
                return self._etagged(request, orjson.dumps(release(5)), {})
            case ["releases", "assets", _]:
                return web.Response(status=302, headers={"Location": self.storage}) if self.storage else self._bytes()
        return web.Response(status=404)

    def _bytes(self) -> web.Response:
        return web.Response(body=DATA)

    def _page(self, request: web.Request) -> web.Response:
        page = int(request.query.get("page", "1"))
        found = [release(number) for number in range(5, 0, -1)][(page - 1) * 2 : page * 2]
        assert self.site is not None
        link = f'<{self.site.url}{request.path}?page={page + 1}>; rel="next", <{self.site.url}/x>; rel="last"'
        return self._etagged(request, orjson.dumps(found), {"Link": link} if page < 3 else {})

    def _etagged(self, request: web.Request, body: bytes, headers: dict[str, str]) -> web.Response:
        etag = f'"{digest_of(body)[7:20]}"'
        headers = {"X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "59", "ETag": etag, **headers}
        if request.headers.get("If-None-Match") == etag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=body, headers=headers)


@pytest.fixture
def github() -> GitHub:
    return GitHub()


@pytest.fixture
async def site(github: GitHub) -> AsyncIterator[Site]:
    async with serving(github.handle) as found:
        github.site = found
        yield found


def settings(*sites: Site, base: str = "", **fields: object) -> GitHubSettings:
    transfer = fields.pop("transfer", None) or loopback(*(site.host for site in sites), attempts=2)
    return GitHubSettings(base_url=sites[0].url + base, transfer=transfer, **fields)  # type: ignore[arg-type]


ASSET = Asset(id=7, name="metadata.yaml", size=len(DATA))


async def test_all_pages_of_releases_are_read(site: Site) -> None:
    async with GitHubClient(settings=settings(site)) as client:
        found = await client.releases("owner", "name")
        assert [one.tag for one in found] == ["v5", "v4", "v3", "v2", "v1"]
        assert client.rate_limit is not None
        assert client.rate_limit.remaining == 59


async def test_what_has_not_changed_is_not_sent_again(site: Site) -> None:
    async with GitHubClient(settings=settings(site)) as client:
        first = await client.releases("owner", "name")
        assert await client.releases("owner", "name") == first
        assert await client.release("owner", "name", "v1") == await client.release("owner", "name", "v1")
    conditional = [asked for asked in site.asked if "if-none-match" in asked.headers]
    assert len(conditional) == 4


async def test_remembered_answers_are_bounded(site: Site) -> None:
    async with GitHubClient(settings=settings(site, remembered=1)) as client:
        for tag in ("a", "b", "a"):
            await client.release("owner", "name", tag)
    assert not any("if-none-match" in asked.headers for asked in site.asked)


async def test_an_enterprise_server_is_reached_under_its_own_path(site: Site) -> None:
    async with GitHubClient(settings=settings(site, base="/api/v3/"), token=Secret(TOKEN)) as client:
        assert (await client.latest("owner", "name")).tag == "v5"
        assert (await client.release("owner", "name", "charts/web-1.0")).tag == "charts/web-1.0"
    assert site.asked[0].path == "/api/v3/repos/owner/name/releases/latest"
    assert site.asked[1].path.endswith("/tags/charts%2Fweb-1.0")
    assert site.asked[0].authorization == f"Bearer {TOKEN}"
    assert site.asked[0].headers["x-github-api-version"] == "2022-11-28"


@pytest.mark.parametrize("url", ["ftp://x", "api.github.com", "https://user:pw@x", "https://x?y=z", ""])
def test_a_base_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="base URL"):
        GitHubClient(settings=GitHubSettings(base_url=url))


async def test_an_asset_comes_from_storage_without_the_token(site: Site, github: GitHub, tmp_path: Path) -> None:
    async def storage(request: web.Request) -> web.StreamResponse:
        return web.Response(body=DATA)

    async with serving(storage) as other:
        github.storage = f"{other.url}/signed?signature=secret"
        cache = ArtifactCache(tmp_path / "cache")
        async with GitHubClient(settings=settings(site, other), token=Secret(TOKEN), cache=cache) as client:
            for _ in range(2):
                assert await client.download("owner", "name", ASSET, digest=digest_of(DATA)) == DATA
        assert [asked.authorization for asked in other.asked] == [None]
        assert site.asked[0].headers["accept"] == "application/octet-stream"

        only = loopback(site.host, other.host, redirects=frozenset({"objects.example.com"}))
        async with GitHubClient(settings=settings(site, transfer=only)) as client:
            with pytest.raises(PolicyRefused) as caught:
                await client.download("owner", "name", ASSET)
        assert "signature" not in str(caught.value)


async def test_the_digest_that_github_reports_is_compared_with_the_bytes(site: Site, github: GitHub) -> None:
    good = Asset(id=7, name="a", size=len(DATA), digest=digest_of(DATA))
    bad = Asset(id=7, name="a", size=len(DATA), digest=digest_of(b"other"))
    async with GitHubClient(settings=settings(site)) as client:
        assert await client.download("owner", "name", good) == DATA
        with pytest.raises(DigestMismatch):
            await client.download("owner", "name", bad)
        with pytest.raises(TooLarge):
            await client.download("owner", "name", Asset(id=7, name="a", size=10))
        with pytest.raises(Unavailable, match="ended after"):
            await client.download("owner", "name", Asset(id=7, name="a", size=len(DATA) + 1))
        with pytest.raises(TooLarge):
            await client.download("owner", "name", Asset(id=7, name="a", size=1 << 40))


async def test_a_download_that_breaks_off_goes_on(site: Site, github: GitHub) -> None:
    async def storage(request: web.Request) -> web.StreamResponse:
        asked = request.headers.get("Range")
        if asked is None:
            return await cut(request, DATA[:9_000], length=len(DATA))
        start = int(asked.removeprefix("bytes=").removesuffix("-"))
        headers = {"Content-Range": f"bytes {start}-{len(DATA) - 1}/{len(DATA)}"}
        return web.Response(status=206, body=DATA[start:], headers=headers)

    async with serving(storage) as other:
        github.storage = other.url
        async with GitHubClient(settings=settings(site, other)) as client:
            assert await client.download("owner", "name", ASSET, digest=digest_of(DATA)) == DATA


async def test_a_used_up_allowance_is_reported_once_and_then_not_asked_for_until_it_is_back(
    site: Site, github: GitHub
) -> None:
    clock = FakeClock()
    reset = str(int(clock.now()) + 1800)
    limits = {"X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}
    github.answers = [web.Response(status=403, headers=limits)]
    async with GitHubClient(settings=settings(site), clock=clock) as client:
        with pytest.raises(RateLimited) as caught:
            await client.latest("owner", "name")
        assert caught.value.retry_after == pytest.approx(1800, abs=2)
        assert "give a token" in str(caught.value)
        for call in (client.latest("owner", "name"), client.download("owner", "name", ASSET)):
            with pytest.raises(RateLimited):
                await call
        assert len(site.asked) == 1
        clock.skip(1801)
        assert (await client.latest("owner", "name")).tag == "v5"


async def test_a_short_secondary_limit_is_waited_for(site: Site, github: GitHub) -> None:
    github.answers = [web.Response(status=403, headers={"Retry-After": "0"})]
    async with GitHubClient(settings=settings(site)) as client:
        assert (await client.latest("owner", "name")).tag == "v5"
    assert len(site.asked) == 2


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (lambda: web.Response(status=401), AccessDenied, "does not accept the token"),
        (lambda: web.Response(status=403), AccessDenied, "contents: read"),
        (lambda: web.Response(status=403, headers={"X-GitHub-SSO": "required; url=x"}), AccessDenied, "single sign-on"),
        (lambda: web.Response(status=404), NotFound, "contents: read"),
        (lambda: web.Response(status=451), BadAnswer, "451"),
        (lambda: web.Response(body=b"<html>"), BadAnswer, "not JSON"),
        (lambda: web.Response(body=b"[]"), BadAnswer, "cannot be read"),
        (lambda: web.Response(body=b'{"id": 1, "tag_name": 5}'), BadAnswer, "cannot be read"),
        (
            lambda: web.Response(status=302, headers={"Location": "https://169.254.169.254/"}),
            PolicyRefused,
            "not allow",
        ),
    ],
)
async def test_errors_say_what_to_do_and_never_show_the_token(
    site: Site, github: GitHub, answer: object, error: type[Exception], words: str
) -> None:
    github.answers = [answer(), answer()]  # type: ignore[operator]
    hosts = loopback(site.host, redirects=frozenset())
    async with GitHubClient(settings=settings(site, transfer=hosts), token=Secret(TOKEN)) as client:
        with pytest.raises(error, match=words) as caught:
            await client.latest("owner", "name")
    assert TOKEN not in str(caught.value)


async def test_without_a_token_a_missing_repository_may_be_a_private_one(site: Site) -> None:
    async with GitHubClient(settings=settings(site)) as client:
        with pytest.raises(NotFound, match="a private repository needs a token"):
            await client.latest("owner", "other")


@pytest.mark.parametrize(
    "arguments",
    [
        ("..", "name", "v1"),
        ("owner", "..", "v1"),
        ("owner", "a/b", "v1"),
        ("owner", "name?x", "v1"),
        ("own%2er", "name", "v1"),
        ("owner", "name", "../../x"),
        ("owner", "name", ""),
        ("owner", "name", "a b"),
        ("owner", "name", "x" * 300),
    ],
)
async def test_names_that_lead_elsewhere_are_refused(site: Site, arguments: tuple[str, str, str]) -> None:
    async with GitHubClient(settings=settings(site)) as client:
        with pytest.raises(BadRepository):
            await client.release(*arguments)
    assert site.asked == []


async def test_a_list_that_goes_in_a_circle_or_elsewhere_is_given_up(site: Site, github: GitHub) -> None:
    body = orjson.dumps([release(1)])
    async with GitHubClient(settings=settings(site)) as client:
        circle = f"<{site.url}/repos/owner/name/releases?per_page=100>; rel=next"
        github.answers = [web.Response(body=body, headers={"Link": circle})]
        with pytest.raises(BadAnswer, match="does not end"):
            await client.releases("owner", "name")
        github.answers = [web.Response(body=body, headers={"Link": "<https://evil.example.com/x>; rel=next"})]
        with pytest.raises(PolicyRefused):
            await client.releases("owner", "name")


async def test_the_error_for_a_missing_asset_names_the_assets_that_exist(site: Site) -> None:
    async with GitHubClient(settings=settings(site)) as client:
        found = await client.latest("owner", "name")
    assert found.asset("metadata.yaml").id == 5
    with pytest.raises(NotFound, match=r"it has 'metadata\.yaml'"):
        found.asset("other")
