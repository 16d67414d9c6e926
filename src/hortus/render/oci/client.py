"""Pulling, listing and pushing, by references. One client serves any number of registries."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Self

import msgspec
import orjson
from yarl import URL

from hortus.kube import Clock
from hortus.render.artifacts import (
    ArtifactCache,
    BadAnswer,
    BadDigest,
    Digest,
    MemorySink,
    NotFound,
    PolicyRefused,
    RateLimit,
    Sink,
    TooLarge,
    Transfer,
    TransferSettings,
    digest_of,
    parse_digest,
)
from hortus.render.artifacts.digests import matches
from hortus.render.artifacts.download import download, mismatch
from hortus.render.artifacts.paging import next_page
from hortus.render.artifacts.redirects import listed
from hortus.render.oci import pushing
from hortus.render.oci.auth import Authorizer
from hortus.render.oci.credentials import CredentialStore
from hortus.render.oci.manifests import (
    ACCEPT,
    CHART_CONFIG,
    CHART_CONTENT,
    EMPTY_CONFIG,
    OCI_INDEX,
    OCI_MANIFEST,
    ChartArtifact,
    Descriptor,
    ImageManifest,
    Index,
    Platform,
    chart_layers,
    manifest_bytes,
    parse_manifest,
)
from hortus.render.oci.references import Reference
from hortus.render.oci.registry import Repository


def _known_realms() -> Mapping[str, frozenset[str]]:
    return {
        "registry-1.docker.io": frozenset(("auth.docker.io",)),
        "registry.gitlab.com": frozenset(("gitlab.com",)),
    }


class OciSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and allowances besides those of the transfer; sizes in bytes."""

    transfer: TransferSettings = TransferSettings()
    realms: Mapping[str, frozenset[str]] = msgspec.field(default_factory=_known_realms)
    """Hosts, besides the registry's own, where tokens for a registry may be asked for."""
    max_blob: int = 64 << 20
    max_artifact: int = 256 << 20
    """All layers of one artifact that is pulled whole."""
    max_manifests: int = 500
    """Entries of one index."""
    max_layers: int = 500
    max_tags: int = 100_000
    page: int = 1_000
    """Tags asked for at once."""
    max_pages: int = 1_000
    chunk: int = 8 << 20
    """Uploads larger than this go in chunks of this size."""


_DIGEST_HEADER = "Docker-Content-Digest"
_DEEPEST_INDEX = 2
"""Indexes within an index that are looked into."""


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest and the verified bytes of its layers, in the manifest's order."""

    manifest: ImageManifest
    layers: tuple[bytes, ...]


class OciClient:
    """Made anywhere, used in one event loop, closed once. With a `cache`, nothing is downloaded twice."""

    def __init__(
        self,
        *,
        settings: OciSettings | None = None,
        credentials: CredentialStore | None = None,
        cache: ArtifactCache | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.settings = settings or OciSettings()
        self._credentials = credentials or CredentialStore()
        self._cache = cache
        self._transfer = Transfer(self.settings.transfer, clock=clock)
        self._authorizers: dict[tuple[str, str], Authorizer] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Drop all connections."""
        await self._transfer.close()

    @property
    def rate_limits(self) -> Mapping[str, RateLimit]:
        """The last allowance that each host reported."""
        return self._transfer.rate_limits

    async def resolve(self, reference: Reference) -> Digest:
        """The digest that a tag stands for now. Raises ArtifactError, BadReference."""
        if reference.digest is not None:
            return reference.digest
        repository = self._repository(reference)
        url = repository.url("manifests", reference.identifier)
        answer = await repository.call(
            "HEAD", url, headers={"Accept": ACCEPT}, expect=(200, 404, 405), what=f"tag {reference.tag}"
        )
        if answer.status == 200 and _DIGEST_HEADER in answer.headers:
            return _stated_digest(answer.headers, repository.place)
        return (await self.manifest(reference)).digest

    async def manifest(self, reference: Reference) -> ImageManifest | Index:
        """The manifest or index that `reference` names, verified when it names a digest. Raises ArtifactError."""
        if reference.digest is not None and (known := self._cached_manifest(reference)) is not None:
            return known
        repository = self._repository(reference)
        answer = await repository.call(
            "GET",
            repository.url("manifests", reference.identifier),
            headers={"Accept": ACCEPT},
            what=f"manifest {reference.identifier}",
        )
        digest = reference.digest or digest_of(answer.body)
        stated = answer.headers.get(_DIGEST_HEADER)
        if not matches(digest, answer.body) or (stated is not None and not _agrees(stated, answer.body)):
            raise mismatch(str(reference), digest)
        found = self._parsed(answer.body, answer.headers.get("Content-Type", ""), digest, repository.place)
        if self._cache is not None:
            await asyncio.to_thread(self._cache.put, digest, answer.body)
        return found

    async def image(self, reference: Reference, *, platform: Platform | None = None) -> ImageManifest:
        """The manifest that `reference` names, or of an index the one for `platform`. Raises ArtifactError."""
        found = await self.manifest(reference)
        for _ in range(_DEEPEST_INDEX):
            if isinstance(found, ImageManifest):
                return found
            chosen = _choose(found, platform, str(reference))
            inner = await self.manifest(reference.at(chosen.digest))
            if inner.media_type != chosen.media_type:
                raise BadAnswer(str(reference), f"{chosen.digest} is not of the media type that the index says")
            found = inner
        if isinstance(found, Index):
            raise BadAnswer(str(reference), f"more than {_DEEPEST_INDEX} indexes one inside the other")
        return found

    async def blob(self, reference: Reference, descriptor: Descriptor) -> bytes:
        """The bytes of one layer or config, verified. Raises ArtifactError."""
        what = f"{reference.registry}/{reference.repository}@{descriptor.digest}"
        if descriptor.size > self.settings.max_blob:
            raise TooLarge(what, f"has {descriptor.size} bytes; {self.settings.max_blob} are allowed")
        data = await self._blob(reference, descriptor.digest, descriptor.size, self.settings.max_blob, what)
        if len(data) != descriptor.size:
            raise BadAnswer(what, f"has {len(data)} bytes instead of the {descriptor.size} that its manifest says")
        return data

    async def blob_at(self, reference: Reference, digest: Digest, *, largest: int) -> bytes:
        """The bytes with `digest` in the reference's repository, verified; their size is not known before.

        Raises ArtifactError, also for more than `largest` bytes.
        """
        what = f"{reference.registry}/{reference.repository}@{digest}"
        data = await self._blob(reference, digest, None, largest, what)
        if len(data) > largest:
            raise TooLarge(what, f"has {len(data)} bytes; {largest} are allowed")
        return data

    async def _blob(self, reference: Reference, digest: Digest, size: int | None, largest: int, what: str) -> bytes:
        repository = self._repository(reference)
        url = repository.url("blobs", digest)

        async def fill(sink: Sink) -> None:
            await download(
                self._transfer,
                lambda start: repository.download(url, start, what=f"blob {digest}"),
                sink,
                place=what,
                size=size,
                largest=largest,
            )

        if self._cache is not None:
            return await self._cache.fetch(digest, fill)
        sink = MemorySink(digest)
        await fill(sink)
        return sink.value(what)

    async def artifact(self, reference: Reference, *, platform: Platform | None = None) -> Artifact:
        """All layers of what `reference` names. Raises ArtifactError."""
        manifest = await self.image(reference, platform=platform)
        total = sum(layer.size for layer in manifest.layers)
        if total > self.settings.max_artifact:
            raise TooLarge(str(reference), f"has {total} bytes of layers; {self.settings.max_artifact} are allowed")
        return Artifact(
            manifest=manifest, layers=tuple([await self.blob(reference, layer) for layer in manifest.layers])
        )

    async def chart(self, reference: Reference) -> ChartArtifact:
        """The Helm chart that `reference` names. Raises ArtifactError, also for what is no chart."""
        manifest = await self.image(reference)
        content, provenance = chart_layers(manifest, str(reference))
        return ChartArtifact(
            digest=manifest.digest,
            content=await self.blob(reference, content),
            provenance=await self.blob(reference, provenance) if provenance is not None else None,
        )

    async def tags(self, reference: Reference) -> list[str]:
        """All tags of a repository in the registry's order. Raises ArtifactError."""
        repository = self._repository(reference)
        url: URL | None = repository.url("tags", "list", f"n={self.settings.page}")
        found: dict[str, None] = {}
        seen: set[URL] = set()
        while url is not None:
            if url in seen or len(seen) >= self.settings.max_pages:
                raise BadAnswer(repository.place, f"the list of tags does not end (page {len(seen) + 1})")
            seen.add(url)
            answer = await repository.call("GET", url, what="list of tags")
            found.update(dict.fromkeys(_tags(answer.body, repository.place)))
            if len(found) > self.settings.max_tags:
                raise TooLarge(repository.place, f"has more than the allowed {self.settings.max_tags} tags")
            url = next_page(answer.headers.getall("Link", []), url, self._transfer.destinations)
        return list(found)

    async def referrers(self, reference: Reference, *, artifact_type: str = "") -> tuple[Descriptor, ...]:
        """The manifests that refer to that of the reference, such as its signatures. Raises ArtifactError."""
        digest = await self.resolve(reference)
        repository = self._repository(reference)
        answer = await repository.call(
            "GET",
            repository.url("referrers", digest),
            headers={"Accept": OCI_INDEX},
            expect=(200, 404),
            what="referrers",
        )
        if answer.status == 200:
            media_type = answer.headers.get("Content-Type", "")
            found = self._parsed(answer.body, media_type, digest_of(answer.body), repository.place)
        else:
            # A registry without the API: the list stands under a tag (distribution-spec, "Referrers Tag Schema").
            tag = msgspec.structs.replace(reference, tag=digest.replace(":", "-"), digest=None)
            try:
                found = await self.manifest(tag)
            except NotFound:
                return ()
        if not isinstance(found, Index):
            raise BadAnswer(repository.place, "the list of referrers is no index")
        return tuple(one for one in found.manifests if artifact_type in ("", one.artifact_type))

    async def push_blob(self, reference: Reference, data: bytes, *, source: str = "") -> Descriptor:
        """Upload `data` unless it is there; from repository `source` of the same registry without sending, if it can.

        The media type of the descriptor is `application/octet-stream`. Raises ArtifactError.
        """
        repository = self._repository(reference, push=True, source=source)
        digest = digest_of(data)
        await pushing.push_blob(repository, digest, data, source=source, chunk=self.settings.chunk)
        return Descriptor("application/octet-stream", digest, len(data))

    async def push_manifest(self, reference: Reference, raw: bytes, *, media_type: str = OCI_MANIFEST) -> Digest:
        """Put a manifest under the reference's tag, or its own digest when there is none. Raises ArtifactError."""
        repository = self._repository(reference, push=True)
        digest = reference.digest or digest_of(raw)
        if not matches(digest, raw):
            raise mismatch(str(reference), digest)
        answer = await repository.call(
            "PUT",
            repository.url("manifests", reference.tag or digest),
            headers={"Content-Type": media_type},
            body=raw,
            expect=(201,),
            what=f"place for manifest {reference.tag or digest}",
        )
        stated = answer.headers.get(_DIGEST_HEADER)
        if stated is not None and not _agrees(stated, raw):
            raise mismatch(str(reference), digest)
        return digest

    async def push(
        self,
        reference: Reference,
        layers: tuple[tuple[str, bytes], ...],
        *,
        artifact_type: str,
        config: tuple[str, bytes] = (EMPTY_CONFIG, b"{}"),
        annotations: Mapping[str, str] | None = None,
        subject: Descriptor | None = None,
    ) -> Digest:
        """Push an artifact of `layers` (media type and bytes each). Returns its digest; raises ArtifactError."""
        described = []
        for media_type, data in (config, *layers):
            descriptor = await self.push_blob(reference, data)
            described.append(msgspec.structs.replace(descriptor, media_type=media_type))
        raw = manifest_bytes(
            described[0],
            tuple(described[1:]),
            artifact_type=artifact_type if config[0] == EMPTY_CONFIG else "",
            annotations=annotations,
            subject=subject,
        )
        return await self.push_manifest(reference, raw)

    async def push_chart(self, reference: Reference, content: bytes, *, metadata: Mapping[str, object]) -> Digest:
        """Push a chart's tgz with its Chart.yaml as `metadata`, as `helm push` does. Raises ArtifactError."""
        config = (CHART_CONFIG, orjson.dumps(metadata))
        return await self.push(reference, ((CHART_CONTENT, content),), artifact_type="", config=config)

    def _repository(self, reference: Reference, *, push: bool = False, source: str = "") -> Repository:
        host = reference.api_host
        scheme = "http" if listed(URL(f"http://{host}"), self.settings.transfer.plain_http) else "https"
        base = URL(f"{scheme}://{host}")
        key = (reference.registry, reference.repository)
        if key not in self._authorizers:
            credentials = self._credentials.find(*key)
            realms = self.settings.realms.get(host, frozenset())
            self._authorizers[key] = Authorizer(self._transfer, base, credentials, realms=realms)
        scope = f"repository:{reference.repository}:{'pull,push' if push else 'pull'}"
        if source:
            scope += f" repository:{source}:pull"
        return Repository(self._transfer, self._authorizers[key], base.origin(), reference.repository, scope=scope)

    def _parsed(self, raw: bytes, media_type: str, digest: Digest, place: str) -> ImageManifest | Index:
        limits = self.settings
        return parse_manifest(
            raw, media_type, digest, place=place, max_manifests=limits.max_manifests, max_layers=limits.max_layers
        )

    def _cached_manifest(self, reference: Reference) -> ImageManifest | Index | None:
        """A manifest says its own media type, as a rule; one that does not is fetched again."""
        raw = self._cache.read(reference.digest) if self._cache is not None and reference.digest is not None else None
        if raw is None or reference.digest is None or len(raw) > self.settings.transfer.max_document:
            return None
        try:
            document = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return None
        media_type = document.get("mediaType") if isinstance(document, dict) else None
        if not isinstance(media_type, str):
            return None
        return self._parsed(raw, media_type, reference.digest, str(reference))


def _stated_digest(headers: Mapping[str, str], place: str) -> Digest:
    try:
        return parse_digest(headers[_DIGEST_HEADER])
    except BadDigest as error:
        raise BadAnswer(place, f"{_DIGEST_HEADER}: {error}") from None


def _agrees(stated: str, data: bytes) -> bool:
    try:
        return matches(parse_digest(stated), data)
    except BadDigest:
        return False


def _choose(index: Index, platform: Platform | None, place: str) -> Descriptor:
    if platform is None:
        if len(index.manifests) == 1:
            return index.manifests[0]
        raise PolicyRefused(place, f"is an index of {len(index.manifests)} manifests", "say which platform is meant")
    for descriptor in index.manifests:
        found = descriptor.platform
        same = found is not None and (found.os, found.architecture) == (platform.os, platform.architecture)
        if found is not None and same and platform.variant in ("", found.variant):
            return descriptor
    known = ", ".join(sorted({str(one.platform) for one in index.manifests if one.platform})[:20])
    raise NotFound(place, f"has nothing for {platform}", f"it has {known[:300]!a}" if known else "")


def _tags(body: bytes, place: str) -> list[str]:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        found = None
    tags = found.get("tags") if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(tags or [], list):
        raise BadAnswer(place, "the list of tags cannot be read")
    # A repository whose last tag was deleted answers null.
    return [tag for tag in tags or [] if isinstance(tag, str)]
