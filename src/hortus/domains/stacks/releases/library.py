"""The releases of a process: listed from their source, downloaded once, read from disk."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from hortus.domains.stacks.names import BadName, ReleaseName, parse_tag
from hortus.domains.stacks.releases.errors import BadRelease, ReleaseError, ReleaseMissing
from hortus.domains.stacks.releases.release import StackRelease, opened
from hortus.domains.stacks.releases.sources import PublishedTag, ReleaseSource, RemoteRelease
from hortus.domains.stacks.releases.stores import ReleaseCache, ReleaseFolder
from hortus.kube import Clock
from hortus.render.artifacts import Digest

LIST_AGE: Final = 30.0
"""Seconds for which one list serves all ClusterStacks; they reconcile every five minutes."""
DOWNLOADS: Final = 4
"""Releases that are downloaded at once."""
LOOKUPS: Final = 8
"""Tags whose time of publication is asked for at once."""


class ReleaseListing(NamedTuple):
    """The releases at the source."""

    names: frozenset[ReleaseName]
    published: Mapping[ReleaseName, float]
    """Times of publication in seconds since the epoch, as far as they are known."""
    unknown: Sequence[str]
    """Names that are no names of releases, each with the reason."""


class Library(Protocol):
    """The releases of a process."""

    async def get(self, name: ReleaseName) -> StackRelease:
        """The release, from disk. Raises BadRelease, ReleaseMissing."""

    async def fetch(self, name: ReleaseName) -> StackRelease:
        """The release, downloaded unless it is there. Raises ReleaseError."""

    async def listing(self) -> ReleaseListing:
        """The releases at the source, at most `LIST_AGE` old. Raises ReleaseError."""

    async def published(self, names: Sequence[ReleaseName]) -> Mapping[ReleaseName, float]:
        """Times of publication, asked for where the list has none. Raises ReleaseError."""

    async def close(self) -> None:
        """Drop all connections."""


class RemoteLibrary:
    """Releases of a source, kept in a cache. Used in one event loop."""

    def __init__(self, source: ReleaseSource, cache: ReleaseCache, *, clock: Clock) -> None:
        self._source = source
        self._cache = cache
        self._list = SharedListing(source.tags, clock)
        self._times: dict[ReleaseName, float] = {}
        self._refused: dict[ReleaseName, tuple[str, BadRelease]] = {}
        self._locks: dict[ReleaseName, asyncio.Lock] = {}
        self._downloads = asyncio.Semaphore(DOWNLOADS)
        self._lookups = asyncio.Semaphore(LOOKUPS)

    async def close(self) -> None:
        await self._source.close()

    async def listing(self) -> ReleaseListing:
        return await self._list.get()

    async def published(self, names: Sequence[ReleaseName]) -> Mapping[ReleaseName, float]:
        listed = (await self.listing()).published
        missing = [name for name in names if name not in listed and name not in self._times]
        self._times.update(zip(missing, await asyncio.gather(*map(self._published, missing)), strict=True))
        return {name: listed.get(name, self._times.get(name, 0.0)) for name in names}

    async def _published(self, name: ReleaseName) -> float:
        async with self._lookups:
            return await self._source.published(name.tag)

    async def get(self, name: ReleaseName) -> StackRelease:
        return await asyncio.to_thread(self._cache.open, name)

    async def fetch(self, name: ReleaseName) -> StackRelease:
        async with self._locks.setdefault(name, asyncio.Lock()):
            try:
                return await self.get(name)
            except ReleaseMissing:
                async with self._downloads:
                    return await self._download(name)
            finally:
                self._locks.pop(name, None)

    async def _download(self, name: ReleaseName) -> StackRelease:
        remote = await self._source.describe(name.tag)
        fingerprint, refusal = self._refused.get(name, ("", None))
        if refusal is not None and fingerprint == remote.fingerprint:
            raise refusal.with_traceback(None)  # the frames of each attempt would be kept with it
        files = {asset.name: await self._source.download(name.tag, asset) for asset in remote.assets}
        try:
            found = await asyncio.to_thread(self._opened, name, files)
        except BadRelease as error:
            self._refuse(name, remote, error)
            raise
        self._refused.pop(name, None)
        await asyncio.to_thread(self._cache.save, name, files)
        return found

    def _opened(self, name: ReleaseName, files: Mapping[str, Digest]) -> StackRelease:
        return opened(name, files, self._cache.reader(name, files))

    def _refuse(self, name: ReleaseName, remote: RemoteRelease, error: BadRelease) -> None:
        self._refused[name] = remote.fingerprint, error


class LocalLibrary:
    """Releases in folders."""

    def __init__(self, folder: ReleaseFolder, *, clock: Clock) -> None:
        self._folder = folder
        self._list = SharedListing(self._tags, clock)

    async def close(self) -> None:
        pass

    async def _tags(self) -> Sequence[PublishedTag]:
        return await asyncio.to_thread(self._folder.tags)

    async def listing(self) -> ReleaseListing:
        return await self._list.get()

    async def published(self, names: Sequence[ReleaseName]) -> Mapping[ReleaseName, float]:
        times = (await self.listing()).published
        return {name: times.get(name, 0.0) for name in names}

    async def get(self, name: ReleaseName) -> StackRelease:
        return await asyncio.to_thread(self._folder.open, name)

    async def fetch(self, name: ReleaseName) -> StackRelease:
        return await self.get(name)


class SharedListing:
    """One list for all who ask within `LIST_AGE`; a failure is an answer too, so that no crowd asks in turn."""

    def __init__(self, tags: Callable[[], Awaitable[Sequence[PublishedTag]]], clock: Clock) -> None:
        self._tags = tags
        self._clock = clock
        self._lock = asyncio.Lock()
        self._found: ReleaseListing | ReleaseError | None = None
        self._at = 0.0

    async def get(self) -> ReleaseListing:
        """Raises ReleaseError."""
        async with self._lock:
            if self._found is None or self._clock.monotonic() - self._at >= LIST_AGE:
                try:
                    self._found = _listing(await self._tags())
                except ReleaseError as error:
                    self._found = error
                self._at = self._clock.monotonic()
        if isinstance(self._found, ReleaseError):
            raise self._found.with_traceback(None)  # the frames of all who asked would be kept with it
        return self._found


def _listing(tags: Sequence[PublishedTag]) -> ReleaseListing:
    published: dict[ReleaseName, float] = {}
    names, unknown = set(), []
    for tag, time in tags:
        try:
            name = parse_tag(tag)
        except BadName as error:
            unknown.append(str(error))
            continue
        names.add(name)
        if time is not None:
            published[name] = time
    return ReleaseListing(frozenset(names), published, tuple(unknown))
