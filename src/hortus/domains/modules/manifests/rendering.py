"""The objects of a layer: YAML in, plain objects out.

A layer is read once and kept as JSON for a day, for all clusters that have the module: each caller gets objects of its
own. Reading runs in a thread, because a big manifest takes seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Protocol

import orjson

from hortus.domains.modules.types import InstallSource
from hortus.engine import Actor, StepError
from hortus.kube import Clock
from hortus.kube.objects import Object
from hortus.kube.yaml import TextLimits, YamlError, load_all
from hortus.render.bounded import Bounded

KEPT: Final = 86400.0
"""Seconds for which the objects of a layer are kept."""
MEMORY: Final = 64 << 20
"""Bytes of all layers that are kept."""
MOST_OBJECTS: Final = 3000
"""Objects of one manifest: status.synced lists all of them, and etcd takes 1.5 MiB."""
_LIMITS: Final = TextLimits(bytes=16 << 20, depth=100, nodes=1_000_000)


class BadManifest(ValueError):
    """A text that holds no objects; the message names the document and the field."""


class LayerSource(Protocol):
    """The part of `ModuleRegistry` that rendering uses."""

    async def manifest(self, source: InstallSource) -> bytes:
        """The YAML of a layer, verified and unpacked. Raises StepError."""


class ObjectId(NamedTuple):
    """The identity of an object in a manifest."""

    namespace: str
    name: str
    group: str
    version: str
    kind: str


class Rendering:
    """The objects of layers, read once each."""

    def __init__(self, layers: LayerSource, *, clock: Clock, memory: int = MEMORY) -> None:
        self._layers = layers
        self._clock = clock
        self._kept: Bounded[tuple[str, ...], tuple[float, bytes]] = Bounded(memory, lambda key, value: len(value[1]))
        self._reading: dict[tuple[str, ...], asyncio.Lock] = {}

    async def objects(self, source: InstallSource, install: str) -> list[Object]:
        """The objects of a layer, for the caller to change. Raises StepError."""
        key = _key(source, install)
        if (found := self._fresh(key)) is None:
            async with self._reading.setdefault(key, asyncio.Lock()):
                try:
                    if (found := self._fresh(key)) is None:
                        found = await self._read(source)
                        self._kept.put(key, (self._clock.monotonic(), found))
                finally:
                    self._reading.pop(key, None)
        objects: list[Object] = orjson.loads(found)
        return objects

    def evict(self, source: InstallSource, install: str) -> None:
        """Read the layer again when it is needed next."""
        self._kept.forget(_key(source, install))

    def _fresh(self, key: tuple[str, ...]) -> bytes | None:
        known = self._kept.get(key)
        return known[1] if known is not None and self._clock.monotonic() - known[0] < KEPT else None

    async def _read(self, source: InstallSource) -> bytes:
        document = await self._layers.manifest(source)
        try:
            return await asyncio.to_thread(lambda: orjson.dumps(parse(document)))
        except BadManifest as error:
            raise StepError(
                f"layer {source.ref} of component {source.name}: {error}; publish a version with a manifest that can "
                "be read",
                reason="ManifestUnreadable",
                actor=Actor.PROVIDER,
            ) from error


def _key(source: InstallSource, install: str) -> tuple[str, ...]:
    return source.repo, source.name, source.ref, source.type, install


def parse(document: bytes) -> list[Object]:
    """The objects of a text with one or more documents: Lists flattened, the first of each id. Raises BadManifest."""
    found: dict[ObjectId, Object] = {}
    number = 0
    try:
        for number, value in enumerate(load_all(document, limits=_LIMITS), 1):
            for obj in _flattened(value, f"document {number}"):
                found.setdefault(id_of(obj), obj)
                if len(found) > MOST_OBJECTS:
                    raise BadManifest(f"it has more than {MOST_OBJECTS} objects: split the module")
    except YamlError as error:
        raise BadManifest(f"document {number + 1}: {error}") from None
    except RecursionError:
        raise BadManifest(f"document {number + 1}: it is nested too deeply") from None
    return list(found.values())


def _flattened(value: Any, place: str) -> Iterator[Object]:
    if value is None:
        return
    if not isinstance(value, dict):
        raise BadManifest(f"{place} is a {type(value).__name__}: an object with apiVersion and kind is needed")
    items = value.get("items")
    if isinstance(items, list) and str(value.get("kind", "")).endswith("List"):
        for position, item in enumerate(items):
            yield from _flattened(item, f"{place}, items[{position}]")
        return
    metadata = value.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise BadManifest(f"{place}: metadata is a {type(metadata).__name__}: a mapping is needed")
    for field in ("labels", "annotations"):
        entries = (metadata or {}).get(field)
        if entries is not None and not isinstance(entries, dict):
            raise BadManifest(f"{place}: metadata.{field} is a {type(entries).__name__}: a mapping is needed")
    yield value


def id_of(obj: Object) -> ObjectId:
    """The identity of an object; parts that it lacks are empty."""
    metadata = obj.get("metadata") or {}
    group, _, version = str(obj.get("apiVersion") or "").rpartition("/")
    namespace, name = (str(metadata.get(field) or "") for field in ("namespace", "name"))
    return ObjectId(namespace, name, group, version, str(obj.get("kind") or ""))
