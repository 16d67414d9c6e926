"""The APIServices that lead to other servers, by logical cluster, followed commit by commit.

A request looks here before it is answered, so the index holds remote ones only, decoded once. A cluster without any
costs a request one look into a dictionary.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import msgspec

from hortus.apiserver.registrations import SUFFIX, VersionPriority
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.store.backend import Commit, StoreKey

AVAILABLE: Final = "Available"
_REMOTE = b'"service":{'
_NONE: Mapping[tuple[str, str], RemoteApi] = {}

_log = logging.getLogger("hortus.apiserver.aggregation")


class ServiceReference(NamedTuple):
    namespace: str
    name: str
    port: int

    @property
    def host(self) -> str:
        """The name that its servers' certificates have."""
        return f"{self.name}.{self.namespace}.svc"


class RemoteApi(NamedTuple):
    """One group and version that another server serves."""

    group: str
    version: str
    service: ServiceReference
    ca: bytes
    insecure: bool
    priority: VersionPriority
    available: bool

    @property
    def name(self) -> str:
        return f"{self.version}.{self.group}"

    @property
    def path(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


class _Reference(msgspec.Struct):
    namespace: str = ""
    name: str = ""
    port: int = 443


class _Spec(msgspec.Struct, rename="camel"):
    group: str = ""
    version: str = ""
    service: _Reference | None = None
    ca_bundle: str = ""
    insecure_skip_tls_verify: bool = msgspec.field(default=False, name="insecureSkipTLSVerify")
    group_priority_minimum: int = 0
    version_priority: int = 0


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct):
    conditions: tuple[_Condition, ...] | None = ()


class _ApiService(msgspec.Struct):
    spec: _Spec
    status: _Status = msgspec.field(default_factory=_Status)


_DECODER: msgspec.json.Decoder[_ApiService] = msgspec.json.Decoder(_ApiService)


def remote_api(value: bytes) -> RemoteApi | None:
    """An encoded APIService that has a service; None for a local one. Raises ValueError."""
    if _REMOTE not in value:
        return None
    found = _DECODER.decode(value)
    spec = found.spec
    if spec.service is None:
        return None
    try:
        ca = base64.b64decode(spec.ca_bundle)
    except binascii.Error as error:
        raise ValueError(f"spec.caBundle: {error}") from None
    service = ServiceReference(spec.service.namespace, spec.service.name, spec.service.port)
    priority = VersionPriority(spec.group_priority_minimum, spec.version_priority)
    available = any(each.type == AVAILABLE and each.status == "True" for each in found.status.conditions or ())
    return RemoteApi(spec.group, spec.version, service, ca, spec.insecure_skip_tls_verify, priority, available)


class RemoteApis:
    """The index. One that does not follow the store stays empty."""

    def __init__(self, storage: Storage, *, follows: bool = True) -> None:
        self._storage = storage
        self._clusters: dict[str, dict[tuple[str, str], RemoteApi]] = {}
        self._listeners: list[Callable[[str, str], None]] = []
        if follows:
            storage.listen(self._changed, SUFFIX)

    def on_change(self, listener: Callable[[str, str], None]) -> None:
        """Calls `listener` with the cluster and the name of each APIService that changes."""
        self._listeners.append(listener)

    async def start(self) -> None:
        """Reads the stored APIServices."""
        await self._storage.survey(lambda record: self._follow(record.key, record.value), SUFFIX)

    def of(self, cluster: str) -> Mapping[tuple[str, str], RemoteApi]:
        """The remote APIs of a cluster by group and version."""
        return self._clusters.get(cluster, _NONE)

    def find(self, cluster: str, group: str, version: str) -> RemoteApi | None:
        return self.of(cluster).get((group, version))

    def forget(self, cluster: str) -> None:
        """Drops the APIs of a removed cluster."""
        for api in tuple(self._clusters.pop(cluster, _NONE).values()):
            self._tell(cluster, api.name)

    def _changed(self, change: Commit) -> None:
        self._follow(change.key, change.value)

    def _follow(self, key: StoreKey, value: bytes | None) -> None:
        cluster, name = key.cluster, key.name.lstrip("/")
        version, _, group = name.partition(".")
        known = self._clusters.get(cluster, _NONE).get((group, version))
        try:
            api = None if value is None else remote_api(value)
        except ValueError as error:
            _log.error("an APIService is not understood and leads nowhere", extra={"object": name, "error": str(error)})
            api = None
        if api == known:
            return
        if api is not None:
            self._clusters.setdefault(cluster, {})[group, version] = api
        else:
            del self._clusters[cluster][group, version]
            if not self._clusters[cluster]:
                del self._clusters[cluster]
        self._tell(cluster, name)

    def _tell(self, cluster: str, name: str) -> None:
        for listener in self._listeners:
            listener(cluster, name)
