"""The ways in which a module brings its operator: by a component of the registry, a plain manifest, or not at all.

A plain manifest is the file behind the resource `rawManifest` of a ModuleTemplate. It is read by https, from hosts that
the operator allows alone, since the authors of ModuleTemplates would otherwise choose where the control plane connects
to. Its digest takes the place of a layer's: a file that changes is an upgrade, and never a silent one.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final, NamedTuple

from yarl import URL

from hortus.domains.modules.kinds.manifest import EXTERNAL, LINKED
from hortus.domains.modules.kinds.moduletemplate import RAW_MANIFEST
from hortus.domains.modules.publishing.sources import DOWNLOADS, BadSource, read_source
from hortus.domains.modules.registry import Component, ComponentDescriptor, ModuleRegistry, ModuleSourceError
from hortus.domains.modules.types import InstallSource
from hortus.engine import Actor
from hortus.kube import Clock
from hortus.render.artifacts import TransferSettings, parse_digest
from hortus.render.bounded import Bounded

_MEMORY: Final = 64 << 20
_NO_DIGEST: Final = parse_digest(f"sha256:{hashlib.sha256(b'').hexdigest()}")


class _Read(NamedTuple):
    digest: str
    text: bytes
    at: float


def external_component(module: str, version: str) -> Component:
    """The component of a module without objects."""
    source = InstallSource(repo=EXTERNAL, name=module, ref=EXTERNAL, type=EXTERNAL)
    return _component(_NO_DIGEST, module, version, source)


class ModuleSources:
    """Components and manifests, from the registry or from allowed hosts."""

    def __init__(
        self,
        registry: ModuleRegistry,
        *,
        hosts: frozenset[str],
        clock: Clock,
        revalidation: float,
        downloads: TransferSettings = DOWNLOADS,
    ) -> None:
        """`revalidation` is the time in seconds after which a file is read again, to see that it changed."""
        self._registry = registry
        self._hosts = hosts
        self._clock = clock
        self._revalidation = revalidation
        self._downloads = downloads
        self._known: Bounded[str, _Read] = Bounded(_MEMORY, lambda key, value: len(value.text))

    async def component(self, name: str, version: str) -> Component:
        """A version of a component, or of the plain manifest behind an address. Raises StepError."""
        if not name.startswith("https://"):
            return await self._registry.component(name, version)
        found = await self._file(name)
        source = InstallSource(repo=name, name=name.rpartition("/")[2] or name, ref=found.digest, type=LINKED)
        return _component(parse_digest(found.digest), name, version, source)

    async def manifest(self, source: InstallSource) -> bytes:
        """The YAML of a module. Raises StepError."""
        if source.type == EXTERNAL:
            return b""
        if source.type != LINKED:
            return await self._registry.manifest(source)
        found = await self._file(source.repo)
        if found.digest != source.ref:
            raise ModuleSourceError(
                source.repo, f"its digest is {found.digest} now and {source.ref} is wanted; the next reconcile upgrades"
            )
        return found.text

    async def _file(self, address: str) -> _Read:
        known = self._known.get(address)
        if known is not None and self._clock.monotonic() - known.at < self._revalidation:
            return known
        host = URL(address).authority
        if host not in self._hosts:
            raise ModuleSourceError(
                address, f"host {host} is not allowed; add it to --module-manifest-hosts", actor=Actor.OPERATOR
            )
        try:
            text = await read_source(RAW_MANIFEST, address, Path(), downloads=self._downloads)
        except BadSource as error:
            if known is not None:
                return known
            raise ModuleSourceError(address, str(error)) from None
        found = _Read(f"sha256:{hashlib.sha256(text).hexdigest()}", text, self._clock.monotonic())
        self._known.put(address, found)
        return found


def _component(digest: str, name: str, version: str, source: InstallSource) -> Component:
    return Component(
        digest=parse_digest(digest),
        descriptor=ComponentDescriptor(name=name, version=version),
        install=source,
        default_cr=None,
        config=None,
        localized_images=(),
    )
