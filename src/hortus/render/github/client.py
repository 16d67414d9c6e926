"""Calls to the API, with ETags and allowances kept between them."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import NamedTuple, Self
from urllib.parse import quote

import aiohttp
import msgspec
from yarl import URL

from hortus.kube import Clock, Secret
from hortus.render.artifacts import (
    AccessDenied,
    ArtifactCache,
    ArtifactError,
    BadAnswer,
    Digest,
    MemorySink,
    NotFound,
    RateLimit,
    RateLimited,
    Sink,
    TooLarge,
    Transfer,
    TransferSettings,
    Unavailable,
)
from hortus.render.artifacts.download import download
from hortus.render.artifacts.paging import next_page
from hortus.render.artifacts.redirects import authority
from hortus.render.artifacts.transfer import Answer
from hortus.render.github.releases import Asset, Release, check_tag, decode, repository_path

_JSON = "application/vnd.github+json"
_BYTES = "application/octet-stream"
_API = {"X-GitHub-Api-Version": "2022-11-28"}
_PER_PAGE = 100
"""The most that the API gives at once."""


class GitHubSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The server and the limits; sizes in bytes."""

    base_url: str = "https://api.github.com"
    """The base address; that of an enterprise server: `https://github.example.com/api/v3`."""
    transfer: TransferSettings = TransferSettings(max_document=16 << 20)
    max_releases: int = 10_000
    max_asset: int = 256 << 20
    remembered: int = 256
    """Answers kept with their ETag."""
    remembered_bytes: int = 32 << 20


class _Kept(NamedTuple):
    etag: str
    answer: Answer


class GitHubClient:
    """Made anywhere, used in one event loop, closed once. One token, so one view of what there is."""

    def __init__(
        self,
        *,
        token: Secret | None = None,
        settings: GitHubSettings | None = None,
        cache: ArtifactCache | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.settings = settings or GitHubSettings()
        base = URL(self.settings.base_url)
        if base.scheme not in ("http", "https") or not base.host or base.user or base.query_string:
            raise ValueError(
                f"base URL {self.settings.base_url!r}: write https://api.github.com or https://<host>/api/v3"
            )
        self._base = str(base).rstrip("/")
        self._place = authority(base)
        self._authorization = Secret("Bearer " + token.reveal()) if token else None
        self._cache = cache
        self._transfer = Transfer(self.settings.transfer, clock=clock)
        self._kept: OrderedDict[URL, _Kept] = OrderedDict()
        self._kept_bytes = 0
        self._blocked_until = 0.0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Drop all connections."""
        await self._transfer.close()

    @property
    def rate_limit(self) -> RateLimit | None:
        """The allowance as of the last answer."""
        return self._transfer.rate_limits.get(self._place)

    async def releases(self, owner: str, name: str) -> tuple[Release, ...]:
        """All releases of a repository, newest first. Raises ArtifactError, BadRepository."""
        path = f"{repository_path(owner, name)}/releases"
        url: URL | None = URL(f"{self._base}/{path}?per_page={_PER_PAGE}", encoded=True)
        found: list[Release] = []
        seen: set[URL] = set()
        while url is not None:
            if url in seen or len(found) > self.settings.max_releases:
                raise BadAnswer(self._place, f"the list of releases of {owner}/{name} does not end")
            seen.add(url)
            answer = await self._get(url, f"releases of {owner}/{name}")
            found += decode(answer.body, list[Release], self._place)
            url = next_page(answer.headers.getall("Link", []), url, self._transfer.destinations)
        return tuple(found)

    async def release(self, owner: str, name: str, tag: str) -> Release:
        """The release of `tag`. Raises ArtifactError, BadRepository."""
        check_tag(tag)
        path = f"{repository_path(owner, name)}/releases/tags/{quote(tag, safe='')}"
        answer = await self._get(URL(f"{self._base}/{path}", encoded=True), f"release {tag} of {owner}/{name}")
        return decode(answer.body, Release, self._place)

    async def latest(self, owner: str, name: str) -> Release:
        """The newest release that is neither draft nor pre-release. Raises ArtifactError, BadRepository."""
        path = f"{repository_path(owner, name)}/releases/latest"
        answer = await self._get(URL(f"{self._base}/{path}", encoded=True), f"latest release of {owner}/{name}")
        return decode(answer.body, Release, self._place)

    async def download(self, owner: str, name: str, asset: Asset, *, digest: Digest | None = None) -> bytes:
        """The bytes of one asset; verified by `digest`, or by the one that GitHub reports. Raises ArtifactError.

        With neither, only the size is checked, and nothing is cached.
        """
        what = f"asset {asset.name} of {owner}/{name}"
        if asset.size > self.settings.max_asset:
            raise TooLarge(self._place, f"{what} has {asset.size} bytes; {self.settings.max_asset} are allowed")
        path = f"{repository_path(owner, name)}/releases/assets/{asset.id}"
        url = URL(f"{self._base}/{path}", encoded=True)

        async def fill(sink: Sink) -> None:
            await download(
                self._transfer,
                lambda start: self._open(url, start, what),
                sink,
                place=f"{self._place}, {what}",
                size=asset.size,
                largest=self.settings.max_asset,
            )

        wanted = digest or asset.known_digest()
        if wanted is not None and self._cache is not None:
            return await self._cache.fetch(wanted, fill)
        sink = MemorySink(wanted)
        await fill(sink)
        return sink.value(what)

    @contextlib.asynccontextmanager
    async def _open(self, url: URL, start: int, what: str) -> AsyncIterator[aiohttp.ClientResponse]:
        self._check_blocked(what)
        headers = {"Accept": _BYTES, **_API} | ({"Range": f"bytes={start}-"} if start else {})
        async with self._transfer.stream("GET", url, headers=headers, authorization=self._authorization) as response:
            if response.status not in (200, 206, 416):
                body = await response.content.read(4096)
                raise self._refusal(Answer(response.status, response.headers, body, response.url), what)
            yield response

    async def _get(self, url: URL, what: str) -> Answer:
        """One answer, perhaps one that GitHub says has not changed. Raises ArtifactError."""
        self._check_blocked(what)
        kept = self._kept.get(url)
        headers = {"Accept": _JSON, **_API} | ({"If-None-Match": kept.etag} if kept is not None else {})
        answer = await self._transfer.document("GET", url, headers=headers, authorization=self._authorization)
        if answer.status == 304 and kept is not None:
            self._kept.move_to_end(url)
            return kept.answer
        if answer.status != 200:
            raise self._refusal(answer, what)
        self._keep(url, answer)
        return answer

    def _keep(self, url: URL, answer: Answer) -> None:
        known = self._kept.pop(url, None)
        self._kept_bytes -= len(known.answer.body) if known is not None else 0
        etag = answer.headers.get("ETag")
        if etag is None or len(answer.body) > self.settings.remembered_bytes:
            return
        self._kept[url] = _Kept(etag, answer)
        self._kept_bytes += len(answer.body)
        while len(self._kept) > self.settings.remembered or self._kept_bytes > self.settings.remembered_bytes:
            _, oldest = self._kept.popitem(last=False)
            self._kept_bytes -= len(oldest.answer.body)

    def _check_blocked(self, what: str) -> None:
        left = self._blocked_until - self._transfer.clock.monotonic()
        if left > 0:
            raise self._limited(what, left)

    def _refusal(self, answer: Answer, what: str) -> ArtifactError:
        wish = self._transfer.wish(answer.headers)
        if answer.status == 429 or (answer.status == 403 and wish is not None):
            self._blocked_until = self._transfer.clock.monotonic() + (wish or 60.0)
            return self._limited(what, wish)
        if answer.status == 401:
            return AccessDenied(self._place, f"does not accept the token, asking for {what}", "give one that is valid")
        if answer.status == 403:
            return AccessDenied(self._place, f"denies access to {what}", self._rights(answer))
        if answer.status == 404:
            return NotFound(self._place, f"has no {what}, or hides it", self._rights(answer))
        if answer.status >= 500:
            problem = f"failed with HTTP status {answer.status}, asking for {what}"
            return Unavailable(authority(answer.url), problem, retry_after=wish)
        return BadAnswer(authority(answer.url), f"answered with HTTP status {answer.status}, asking for {what}")

    def _rights(self, answer: Answer) -> str:
        if self._authorization is None:
            return "check the name; a private repository needs a token with contents: read"
        if "X-GitHub-SSO" in answer.headers:
            return "authorize the token for the organization's single sign-on"
        return "check the name, and that the token has contents: read on this repository"

    def _limited(self, what: str, wish: float | None) -> RateLimited:
        later = f"come again in {wish:.0f} s" if wish is not None else "come again in some minutes"
        advice = (
            later if self._authorization is not None else f"{later}, or give a token: it allows 5,000 calls an hour"
        )
        return RateLimited(self._place, f"the allowance is used up, asking for {what}", advice, retry_after=wish)
