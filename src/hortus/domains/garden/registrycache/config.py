"""The configuration of registry caches, as gardener-extension-registry-cache has it. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from hortus.domains.garden.extension.fields import FieldReader, is_name
from hortus.domains.garden.registrycache.names import API_VERSION, KIND
from hortus.kube import durations
from hortus.kube.quantities import Quantity, QuantityError
from hortus.schema import FieldError
from hortus.schema.problems import duplicate, forbidden, invalid, required, too_long

_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_LONGEST_LABEL: Final = 43
"""Characters of an upstream in a name: pods of a StatefulSet with a longer name cannot be created."""
_LONGEST_SUFFIX: Final = 54
_DIGITS: Final = 5
WEEK: Final = 7 * 86_400.0


class RegistryCache(msgspec.Struct, frozen=True, kw_only=True):
    """One cache."""

    upstream: str = ""
    remote: str = ""
    """Address of the registry; empty for the one that follows from the upstream."""
    size: str = "10Gi"
    storage_class: str = ""
    ttl: float = WEEK
    """Seconds for which an image is kept that nobody asks for; 0 for ever."""
    secret: str = ""
    """Name in spec.resources of the Secret with credentials."""
    http_proxy: str = ""
    https_proxy: str = ""
    tls: bool = True
    available: bool = False
    """True for two pods."""
    suffix: str = ""
    """End of the Service's name; empty for the one that follows from the upstream."""

    @property
    def url(self) -> str:
        """The address of the registry."""
        if self.remote:
            return self.remote
        return f"https://{'registry-1.docker.io' if self.upstream == 'docker.io' else self.upstream}"

    @property
    def label(self) -> str:
        """The upstream as the value of a label, with a digest in the place of what is too long."""
        text = self.upstream.replace(":", "-")
        if len(self.upstream) <= _LONGEST_LABEL:
            return text
        digest = hashlib.sha256(self.upstream.encode()).hexdigest()[:_DIGITS]
        return f"{text[: _LONGEST_LABEL - _DIGITS - 1]}-{digest}"

    @property
    def name(self) -> str:
        """The name of its Service, StatefulSet and further objects."""
        return f"registry-{self.suffix or self.label.replace('.', '-')}"


class ReadCaches(msgspec.Struct, frozen=True):
    """A configuration as far as it can be read, and the problems with it."""

    caches: tuple[RegistryCache, ...] = ()
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


class _Fields(msgspec.Struct, rename="camel"):
    pass


class _WrittenConfig(_Fields):
    api_version: Any = None
    kind: Any = None
    caches: Any = None


class _WrittenCache(_Fields):
    upstream: Any = None
    remote_url: Any = msgspec.field(default=None, name="remoteURL")
    volume: Any = None
    garbage_collection: Any = None
    secret_reference_name: Any = None
    proxy: Any = None
    http: Any = None
    high_availability: Any = None
    service_name_suffix: Any = None


class _WrittenVolume(_Fields):
    size: Any = None
    storage_class_name: Any = None


class _WrittenCollection(_Fields):
    ttl: Any = None


class _WrittenProxy(_Fields):
    http_proxy: Any = None
    https_proxy: Any = None


class _WrittenHttp(_Fields):
    tls: Any = None


class _Enabled(_Fields):
    enabled: Any = None


def read_caches(config: Any, path: str) -> ReadCaches:
    """Read and check a configuration at `path`."""
    reader = _Reader()
    written = reader.registry_config(config, _WrittenConfig, path, api_version=API_VERSION, name=KIND)
    items = reader.items(written.caches, f"{path}.caches")
    if not items and not reader.errors:
        reader.errors.append(required(f"{path}.caches", "give at least one cache"))
    found = [reader.cache(one, f"{path}.caches[{index}]") for index, one in enumerate(items)]
    reader.distinct(found, f"{path}.caches")
    return ReadCaches(tuple(found), tuple(reader.errors), tuple(reader.warnings))


def changes(former: Sequence[RegistryCache], caches: Sequence[RegistryCache], path: str) -> list[FieldError]:
    """The errors of fields that may not change while a cache is there."""
    known = {one.upstream: one for one in former}
    errors = []
    for index, one in enumerate(caches):
        before, place = known.get(one.upstream), f"{path}.caches[{index}]"
        if before is None:
            continue
        if Quantity.parse(before.size) != Quantity.parse(one.size):
            errors.append(invalid(f"{place}.volume.size", one.size, "field is immutable"))
        if before.storage_class != one.storage_class:
            errors.append(invalid(f"{place}.volume.storageClassName", one.storage_class, "field is immutable"))
        if not before.ttl and one.ttl:
            problem = "cannot be above 0 again once it was 0: the cache has no record of what it keeps"
            errors.append(invalid(f"{place}.garbageCollection.ttl", durations.from_seconds(one.ttl), problem))
    return errors


class _Reader(FieldReader):
    def cache(self, value: Any, path: str) -> RegistryCache:
        written = self.struct(value, _WrittenCache, path)
        if not isinstance(value, Mapping):
            return RegistryCache()
        volume = self._part(written.volume, _WrittenVolume, f"{path}.volume")
        proxy = self._part(written.proxy, _WrittenProxy, f"{path}.proxy")
        collection = self._part(written.garbage_collection, _WrittenCollection, f"{path}.garbageCollection")
        available = self._part(written.high_availability, _Enabled, f"{path}.highAvailability")
        http = self._part(written.http, _WrittenHttp, f"{path}.http")
        return RegistryCache(
            upstream=self.upstream(written.upstream, f"{path}.upstream"),
            remote=self._origin(written.remote_url, f"{path}.remoteURL"),
            size=self._size(volume.size, f"{path}.volume.size"),
            storage_class=self._class(volume.storage_class_name, f"{path}.volume.storageClassName"),
            ttl=self._ttl(collection.ttl, f"{path}.garbageCollection.ttl"),
            secret=self.text(written.secret_reference_name, f"{path}.secretReferenceName"),
            http_proxy=self._origin(proxy.http_proxy, f"{path}.proxy.httpProxy"),
            https_proxy=self._origin(proxy.https_proxy, f"{path}.proxy.httpsProxy"),
            tls=self.flag(http.tls, f"{path}.http.tls", default=True),
            available=self.flag(available.enabled, f"{path}.highAvailability.enabled", default=False),
            suffix=self._suffix(written.service_name_suffix, f"{path}.serviceNameSuffix"),
        )

    def distinct(self, caches: Sequence[RegistryCache], path: str) -> None:
        """Report upstreams that are there twice, and those whose Services would have one name."""
        upstreams: set[str] = set()
        names: dict[str, str] = {}
        for index, one in enumerate(caches):
            if not one.upstream:
                continue
            if one.upstream in upstreams:
                self.errors.append(duplicate(f"{path}[{index}].upstream", one.upstream))
                continue
            upstreams.add(one.upstream)
            if one.name in names:
                problem = f"its Service would have the name {one.name}, which is that of upstream {names[one.name]}"
                self.errors.append(invalid(f"{path}[{index}].serviceNameSuffix", one.suffix, problem))
            names.setdefault(one.name, one.upstream)

    def _part(self, value: Any, kind: type[Any], path: str) -> Any:
        return self.struct({} if value is None else value, kind, path)

    def _origin(self, value: Any, path: str) -> str:
        """An address without a path."""
        found = self.registry_address(value, path)
        if found and urlsplit(found).path:
            self.errors.append(forbidden(path, "must have no path"))
            return ""
        return found

    def _size(self, value: Any, path: str) -> str:
        if value is None:
            return RegistryCache().size
        try:
            known = Quantity.parse(str(value)).value() > 0
        except QuantityError:
            known = False
        if not known:
            self.errors.append(invalid(path, value, "must be a quantity above 0, such as 10Gi"))
            return RegistryCache().size
        return str(value)

    def _class(self, value: Any, path: str) -> str:
        if value is None:
            return ""
        if not is_name(value):
            self.errors.append(invalid(path, value, "must be the name of a StorageClass"))
            return ""
        return str(value)

    def _ttl(self, value: Any, path: str) -> float:
        if value is None:
            return WEEK
        try:
            found = durations.seconds(value) if isinstance(value, str) else -1.0
        except ValueError:
            found = -1.0
        if found < 0:
            self.errors.append(invalid(path, value, "must be a duration such as 168h, or 0s for ever"))
            return WEEK
        return found

    def _suffix(self, value: Any, path: str) -> str:
        if value is None:
            return ""
        if not isinstance(value, str) or not _LABEL.fullmatch(value):
            self.errors.append(invalid(path, value, "must be a label of DNS in lower case"))
            return ""
        if len(value) > _LONGEST_SUFFIX:
            self.errors.append(too_long(path, _LONGEST_SUFFIX))
            return ""
        return value
