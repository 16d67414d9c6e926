"""The places that releases are published at: the interface, GitHub and OCI registries."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple, Protocol

from hortus.domains.stacks.releases.errors import BadRelease, ReleaseMissing, SourceUnusable, reading
from hortus.domains.stacks.releases.release import is_used
from hortus.kube import Clock, Secret
from hortus.render.artifacts import ArtifactCache, Digest, TransferSettings, digest_of
from hortus.render.github import Asset, GitHubClient, GitHubSettings, Release
from hortus.render.oci import (
    CredentialStore,
    Descriptor,
    OciClient,
    OciSettings,
    Reference,
    RegistryCredentials,
    parse_reference,
)

_TITLE: Final = "org.opencontainers.image.title"
_CREATED: Final = "org.opencontainers.image.created"


class PublishedTag(NamedTuple):
    """A tag, and the time of its publication in seconds since the epoch where the list has it."""

    tag: str
    published: float | None = None


class RemoteRelease(NamedTuple):
    """A release at its source. `fingerprint` differs when its files differ; `assets` are the files that are used."""

    fingerprint: str
    assets: Sequence[RemoteAsset]


class RemoteAsset(NamedTuple):
    """A file at its source."""

    name: str
    handle: Asset | Descriptor


class ReleaseSource(Protocol):
    """A place that releases are published at. Every method raises SourceUnusable and SourceFailed."""

    async def tags(self) -> Sequence[PublishedTag]:
        """All tags."""

    async def published(self, tag: str) -> float:
        """The time of publication of a tag in seconds since the epoch; 0 where it is unknown."""

    async def describe(self, tag: str) -> RemoteRelease:
        """The files of a release. Raises ReleaseMissing, BadRelease too."""

    async def download(self, tag: str, asset: RemoteAsset) -> Digest:
        """Put a file into the cache; returns its digest."""

    async def close(self) -> None:
        """Drop all connections."""


class GitHubSource:
    """The releases of a repository on GitHub."""

    def __init__(
        self, owner: str, repository: str, *, url: str, token: Secret | None, cache: ArtifactCache, clock: Clock
    ) -> None:
        settings = GitHubSettings(base_url=url, transfer=_transfer(url.partition("://")[2].partition("/")[0], url))
        self._client = GitHubClient(token=token, settings=settings, cache=cache, clock=clock)
        self._owner, self._repository = owner, repository
        self._cache = cache

    async def close(self) -> None:
        await self._client.close()

    async def tags(self) -> Sequence[PublishedTag]:
        with reading("list of releases", listing=True):
            found = await self._client.releases(self._owner, self._repository)
        return [PublishedTag(one.tag, _seconds(one.published_at)) for one in found if not one.draft and one.assets]

    async def published(self, tag: str) -> float:
        return _seconds((await self._release(tag)).published_at)

    async def describe(self, tag: str) -> RemoteRelease:
        release = await self._release(tag)
        if not release.assets:
            raise ReleaseMissing(f"release {tag}: has no files at {self._owner}/{self._repository} yet; upload them")
        assets = [RemoteAsset(asset.name, asset) for asset in release.assets if is_used(asset.name)]
        return RemoteRelease(str([(one.id, one.size, one.digest) for one in release.assets]), assets)

    async def download(self, tag: str, asset: RemoteAsset) -> Digest:
        assert isinstance(asset.handle, Asset)
        with reading(f"release {tag}"):
            data = await self._client.download(self._owner, self._repository, asset.handle)
        digest = digest_of(data)
        if asset.handle.known_digest() is None:  # otherwise the client has put it there
            await asyncio.to_thread(self._cache.put, digest, data)
        return digest

    async def _release(self, tag: str) -> Release:
        with reading(f"release {tag}"):
            return await self._client.release(self._owner, self._repository, tag)


class OciSource:
    """The tags of a repository in an OCI registry. Each layer is a file, named by its title."""

    def __init__(
        self,
        repository: str,
        *,
        credentials: RegistryCredentials | None,
        plain_http: bool,
        cache: ArtifactCache,
        clock: Clock,
    ) -> None:
        """Raises SourceUnusable."""
        with reading(f"OCI repository {repository!r}", listing=True):
            self._reference = parse_reference(repository)
        host = self._reference.registry
        store = CredentialStore({host: credentials} if credentials is not None else {})
        settings = OciSettings(transfer=_transfer(host, "http://" if plain_http else "https://"))
        self._client = OciClient(settings=settings, credentials=store, cache=cache, clock=clock)

    async def close(self) -> None:
        await self._client.close()

    async def tags(self) -> Sequence[PublishedTag]:
        with reading("list of tags", listing=True):
            return [PublishedTag(tag) for tag in await self._client.tags(self._reference)]

    async def published(self, tag: str) -> float:
        with reading(f"release {tag}"):
            return _seconds((await self._client.image(self._tagged(tag))).annotations.get(_CREATED))

    async def describe(self, tag: str) -> RemoteRelease:
        with reading(f"release {tag}"):
            manifest = await self._client.image(self._tagged(tag))
        titled = [(layer.annotations.get(_TITLE, ""), layer) for layer in manifest.layers]
        for title, _ in titled:
            if title in ("", ".", "..") or "/" in title or "\\" in title or not title.isprintable():
                raise BadRelease(f"release {tag}: a layer has the title {title[:100]!r}, which is no name of a file")
        return RemoteRelease(
            str(manifest.digest), [RemoteAsset(title, layer) for title, layer in titled if is_used(title)]
        )

    async def download(self, tag: str, asset: RemoteAsset) -> Digest:
        assert isinstance(asset.handle, Descriptor)
        with reading(f"release {tag}"):
            await self._client.blob(self._reference, asset.handle)
        return asset.handle.digest

    def _tagged(self, tag: str) -> Reference:
        return parse_reference(f"{self._reference}:{tag}")


class UnusableSource:
    """Stands for a source that is not configured; each call is answered with the reason."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    async def close(self) -> None:
        pass

    async def tags(self) -> Sequence[PublishedTag]:
        raise SourceUnusable(self._reason)

    async def published(self, tag: str) -> float:
        raise SourceUnusable(self._reason)

    async def describe(self, tag: str) -> RemoteRelease:
        raise SourceUnusable(self._reason)

    async def download(self, tag: str, asset: RemoteAsset) -> Digest:
        raise SourceUnusable(self._reason)


def _transfer(host: str, url: str) -> TransferSettings:
    """The operator names the host: it may have a local address, and be called without TLS where the URL says so."""
    hosts = frozenset((host,))
    return TransferSettings(
        connect_timeout=5.0,
        idle_timeout=15.0,
        whole_timeout=90.0,
        attempts=2,  # a reconcile waits for it, and is retried
        max_document=16 << 20,
        plain_http=hosts if url.startswith("http://") else frozenset(),
        local_hosts=hosts,
    )


def _seconds(text: str | None) -> float:
    try:
        return datetime.fromisoformat(text or "").timestamp()
    except (ValueError, OverflowError):
        return 0.0
