"""Flux's install manifests by version: from a folder, an address or an OCI artifact, checked against their digest.

A version is read once for all Shoots and kept in memory. The digest is that of the file, or of the layer of an
artifact with one layer. Errors name the place and the fix; what a server sent is never part of them.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from pathlib import Path
from typing import Final

from yarl import URL

from hortus.domains.garden.flux.manifests import ManifestFile, checked
from hortus.domains.garden.flux.settings import DIGESTS_FLAG, MANIFESTS_FLAG, FluxManifestSettings
from hortus.engine import Actor, StepError
from hortus.kube import Clock, yaml
from hortus.render.archive import ArchiveError, Folder, read_archive
from hortus.render.artifacts import ArtifactError, Transfer, TransferSettings, digest_of
from hortus.render.oci import BadReference, OciClient, OciSettings, parse_reference

_LARGEST: Final = 16 << 20
"""Bytes of one release; those of v2.9 have less than one."""
_KEPT: Final = 8
"""Versions in memory."""
_GZIP: Final = b"\x1f\x8b"

Manifests = tuple[ManifestFile, ...]


class ManifestLibrary:
    """Reads manifests; several callers of one version share one download."""

    def __init__(self, settings: FluxManifestSettings, *, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._known: OrderedDict[str, Manifests] = OrderedDict()
        self._turns: dict[str, asyncio.Lock] = {}

    def known(self, version: str) -> Manifests | None:
        """The manifests of a version if they are in memory."""
        return self._known.get(version)

    def pin(self, version: str) -> str:
        """The digest that a version must have; empty for any."""
        return self._settings.digests.get(version, "")

    async def load(self, version: str) -> Manifests:
        """The manifests of a version. Raises StepError."""
        async with self._turns.setdefault(version, asyncio.Lock()):
            found = self._known.get(version)
            if found is None:
                found = self._known[version] = await self._read(version)
                while len(self._known) > _KEPT:
                    old, _ = self._known.popitem(last=False)
                    self._turns.pop(old, None)
            return found

    async def _read(self, version: str) -> Manifests:
        place = self._settings.place(version)
        if not self._settings.is_folder and self._settings.digests and not self.pin(version):
            raise _failure(f"flag --{DIGESTS_FLAG} has no digest of Flux {version}", "VersionNotPinned")
        try:
            if self._settings.is_folder:
                return await asyncio.to_thread(_of_folder, Path(place), place)
            data = await (self._pulled(place) if place.startswith("oci://") else self._downloaded(place))
            self._check(version, data, place)
            return await asyncio.to_thread(_of_bytes, data, place)
        except (ArtifactError, ArchiveError, BadReference, OSError, ValueError) as error:
            raise _failure(f"manifests of Flux {version} at {place}: {error}", "ManifestsUnreadable") from error

    async def _downloaded(self, place: str) -> bytes:
        async with Transfer(_transfer(place), clock=self._clock) as transfer:
            answer = await transfer.document("GET", URL(place), limit=_LARGEST)
            if answer.status != 200:
                raise ValueError(f"the server answers with HTTP status {answer.status}")
            return answer.body

    async def _pulled(self, place: str) -> bytes:
        settings = OciSettings(transfer=_transfer(place), max_blob=_LARGEST, max_artifact=_LARGEST)
        async with OciClient(settings=settings, clock=self._clock) as client:
            artifact = await client.artifact(parse_reference(place))
            if len(artifact.layers) != 1:
                raise ValueError(
                    f"the artifact has {len(artifact.layers)} layers; it must have one, with the manifests"
                )
            return artifact.layers[0]

    def _check(self, version: str, data: bytes, place: str) -> None:
        wanted, found = self.pin(version), digest_of(data)
        if wanted and found != wanted:
            raise ValueError(f"have the digest {found} in place of {wanted}, which flag --{DIGESTS_FLAG} names")


def _of_folder(folder: Path, place: str) -> Manifests:
    if folder.is_file():
        return _of_bytes(folder.read_bytes(), place)
    if not folder.is_dir():
        raise ValueError(f"no such folder; flag --{MANIFESTS_FLAG} names it")
    tree = Folder(folder).tree()
    return _of_files({path: file.data for path, file in tree.items()}, place)


def _of_bytes(data: bytes, place: str) -> Manifests:
    if not data.startswith(_GZIP):
        return _of_files({"install.yaml": data}, place)
    return _of_files({path: file.data for path, file in read_archive(data).items()}, place)


def _of_files(files: dict[str, bytes], place: str) -> Manifests:
    found = tuple(
        ManifestFile(Path(path).stem, tuple(checked(yaml.load_all(data), path)))
        for path, data in sorted(files.items())
        if path.endswith((".yaml", ".yml")) and Path(path).stem != "kustomization"
    )
    if not any(one.objects for one in found):
        raise ValueError("has no manifests: files that end with .yaml are read")
    return found


def _transfer(place: str) -> TransferSettings:
    """The operator names the host: it may have a local address, and be called without TLS where the address says so."""
    host = place.partition("://")[2].partition("/")[0]
    plain = frozenset((host,)) if place.startswith("http://") or _is_local(host) else frozenset[str]()
    return TransferSettings(attempts=2, whole_timeout=90.0, plain_http=plain, local_hosts=frozenset((host,)))


def _is_local(host: str) -> bool:
    return host.rpartition(":")[0] in ("127.0.0.1", "localhost", "[::1]")


def _failure(message: str, reason: str) -> StepError:
    return StepError(message, reason=reason, actor=Actor.OPERATOR)
