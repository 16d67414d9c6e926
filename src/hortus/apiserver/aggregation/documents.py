"""Discovery and OpenAPI of aggregated API servers, fetched by this server and remembered.

Discovery is fetched when an APIService changes or becomes available and every so often after that; a server that does
not answer leaves its versions in the list, without resources and marked stale, so that clients know what is missing
(KEP-3352). The index of /openapi/v3 is fetched with it. /openapi/v2 is large and old, so it is fetched when it is asked
for, and again only where its ETag has changed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from typing import Final, NamedTuple

import orjson
from multidict import CIMultiDict

from hortus.apiserver.aggregation.apiservices import RemoteApi, RemoteApis
from hortus.apiserver.aggregation.headers import identity
from hortus.apiserver.aggregation.resolving import RemoteAddress, Resolver
from hortus.apiserver.aggregation.servers import RemoteServer, RemoteServers, ServerTrust, Unreachable, trust_of
from hortus.apiserver.aggregation.swagger import RemoteSwagger
from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.registrations import VersionPriority
from hortus.kube.objects import Object

AGGREGATOR: Final = UserInfo("system:kube-aggregator", groups=("system:masters",))
OPENAPI_READER: Final = UserInfo("system:aggregator")
LARGEST = 32 * 1024 * 1024
"""Bytes of a document; Gardener's /openapi/v2 has about 2 MiB."""
_ANSWER_SECONDS = 8.0
"""Seconds for a whole answer; a key of a controller, which has 30 (`KeyQueue`), asks up to three times."""
_SWAGGER_SECONDS = 10.0
"""Seconds that clients of /openapi/v2 wait for one server."""
_OWN_TAG = "own:"
_LIST = "g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
_ACCEPTED = ",".join(f"application/json;{_LIST.format(version)}" for version in ("v2", "v2beta1"))
Gv = tuple[str, str]
_NOTHING: Mapping[str, str] = {}


class RemoteAnswer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class RemoteRequests:
    """Requests of this server's own."""

    def __init__(self, servers: RemoteServers, resolver: Resolver) -> None:
        self._servers = servers
        self._resolver = resolver

    async def ask(
        self,
        cluster: str,
        api: RemoteApi,
        target: str,
        *,
        user: UserInfo,
        method: str = "GET",
        accept: str = "application/json",
        etag: str = "",
        content: bytes = b"",
        content_type: str = "application/json",
        within: float = _ANSWER_SECONDS,
    ) -> RemoteAnswer:
        """The whole answer of a server, which has `within` seconds. Raises Unreachable."""
        headers = _headers(user, accept)
        if etag:
            headers["If-None-Match"] = etag
        if content:
            headers["Content-Type"] = content_type
        try:
            async with asyncio.timeout(within):
                server, address = await self._place(cluster, api)
                async with server.ask(method, address, target, headers, content or None) as answer:
                    body = bytearray()
                    async for piece in answer.content.iter_any():
                        body += piece
                        if len(body) > LARGEST:
                            raise Unreachable(f"the answer has more than {LARGEST} bytes")
                    return RemoteAnswer(answer.status, answer.headers, bytes(body))
        except TimeoutError:
            raise Unreachable("context deadline exceeded") from None

    async def lines(
        self, cluster: str, api: RemoteApi, target: str, *, user: UserInfo, accept: str
    ) -> AsyncIterator[bytes]:
        """The lines of a stream. Raises Unreachable."""
        server, address = await self._place(cluster, api)
        async with server.ask("GET", address, target, _headers(user, accept)) as answer:
            if answer.status != 200:
                raise Unreachable(f"{target}: status {answer.status}")
            rest = b""
            async for piece in answer.content.iter_any():
                *whole, rest = (rest + piece).split(b"\n")
                if len(rest) > LARGEST:
                    raise Unreachable(f"a line has more than {LARGEST} bytes")
                for line in whole:
                    yield line

    async def _place(self, cluster: str, api: RemoteApi) -> tuple[RemoteServer, RemoteAddress]:
        try:
            return self._servers.of(cluster, api), (await self._resolver.target(cluster, api.service)).any()
        except (ValueError, LookupError) as error:
            raise Unreachable(str(error)) from None


def _headers(user: UserInfo, accept: str) -> CIMultiDict[str]:
    headers = identity(user)
    headers["Accept"] = accept
    headers["User-Agent"] = "hortus-apiserver"
    return headers


class _Known(NamedTuple):
    """The last answers of one version's server. `entry` is its part of aggregated discovery, `paths` are addresses of
    /openapi/v3 documents."""

    entry: Object
    paths: Mapping[str, str]


class RemoteDocuments:
    def __init__(self, apis: RemoteApis, asking: RemoteRequests) -> None:
        self._apis = apis
        self._asking = asking
        self._known: dict[str, dict[Gv, _Known]] = {}
        self._changes: dict[str, int] = {}
        self._count = 0
        self._listeners: list[Callable[[str], None]] = []
        self._swagger: dict[tuple[str, ServerTrust], tuple[str, Object | None]] = {}
        apis.on_change(self._changed)

    def forget(self, cluster: str) -> None:
        self._known.pop(cluster, None)
        self._changes.pop(cluster, None)
        self._swagger = {key: kept for key, kept in self._swagger.items() if key[0] != cluster}

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Calls `listener` with each cluster of which this class knows something new."""
        self._listeners.append(listener)

    def versions(self, cluster: str) -> Mapping[Gv, VersionPriority]:
        """The remote versions of a cluster and their places in discovery."""
        return {gv: api.priority for gv, api in self._apis.of(cluster).items()}

    def fingerprint(self, cluster: str) -> Hashable:
        """Changes with everything that this class says of a cluster; the same for all without remote versions."""
        return self._changes.get(cluster, 0) if self._apis.of(cluster) else 0

    def entry(self, cluster: str, group: str, version: str) -> Object:
        """The part of aggregated discovery that a version is."""
        known = self._known.get(cluster, {}).get((group, version))
        return known.entry if known is not None else _stale(version)

    def openapi(self, cluster: str) -> Mapping[str, str]:
        """The addresses of the /openapi/v3 documents of remote versions and their groups, by path."""
        found: dict[str, str] = {}
        for gv in self._apis.of(cluster):
            found |= self.described(cluster, gv)
        return found

    def described(self, cluster: str, gv: Gv) -> Mapping[str, str]:
        """The same for one version."""
        known = self._known.get(cluster, {}).get(gv)
        return _NOTHING if known is None else known.paths

    async def refresh(self, cluster: str, api: RemoteApi) -> None:
        """Fetches discovery and the index of OpenAPI of one version. Never raises."""
        if not api.available:
            self._learn(cluster, api, _Known(_stale(api.version), {}))
            return
        try:
            entry = await self._discovered(cluster, api)
        except (Unreachable, ValueError):
            entry = _stale(api.version)
        try:
            paths = await self._openapi_paths(cluster, api)
        except (Unreachable, ValueError):
            known = self._known.get(cluster, {}).get((api.group, api.version))
            paths = {} if known is None else known.paths
        self._learn(cluster, api, _Known(entry, paths))

    async def _discovered(self, cluster: str, api: RemoteApi) -> Object:
        answer = await self._asking.ask(cluster, api, "/apis", user=AGGREGATOR, accept=_ACCEPTED)
        if answer.status == 200 and "as=APIGroupDiscoveryList" in answer.headers.get("Content-Type", ""):
            return _entry_of(orjson.loads(answer.body), api)
        if answer.status == 503:
            raise Unreachable("service unavailable")
        answer = await self._asking.ask(cluster, api, api.path, user=AGGREGATOR)
        if answer.status != 200:
            raise Unreachable(f"{api.path}: status {answer.status}")
        return {"version": api.version, "freshness": "Current", "resources": _converted(orjson.loads(answer.body))}

    async def _openapi_paths(self, cluster: str, api: RemoteApi) -> Mapping[str, str]:
        answer = await self._asking.ask(cluster, api, "/openapi/v3", user=OPENAPI_READER)
        if answer.status != 200:
            return {}
        paths = orjson.loads(answer.body)["paths"]
        own = (f"apis/{api.group}", f"apis/{api.group}/{api.version}") if api.group else ("api", f"api/{api.version}")
        return {path: str(paths[path]["serverRelativeURL"]) for path in own if path in paths}

    async def swaggers(self, cluster: str) -> Sequence[RemoteSwagger]:
        """The /openapi/v2 documents of the servers that answer, one for each version."""
        served = [api for api in self._apis.of(cluster).values() if api.available]
        servers = {trust_of(api): api for api in served}
        answers = await asyncio.gather(*(self._swagger_of(cluster, api) for api in servers.values()))
        documents = dict(zip(servers, answers, strict=True))
        found = []
        for api in served:
            tag, document = documents[trust_of(api)]
            if document is not None:
                found.append(RemoteSwagger(api.group, api.version, tag, document))
        return found

    async def _swagger_of(self, cluster: str, api: RemoteApi) -> tuple[str, Object | None]:
        key = cluster, trust_of(api)
        tag, document = known = self._swagger.get(key, ("", None))
        sent = "" if tag.startswith(_OWN_TAG) else tag
        try:
            answer = await self._asking.ask(
                cluster, api, "/openapi/v2", user=OPENAPI_READER, etag=sent, within=_SWAGGER_SECONDS
            )
            if answer.status != 200:
                return known
            tag = answer.headers.get("ETag") or _OWN_TAG + hashlib.sha256(answer.body).hexdigest()
            if tag != known[0]:
                document = orjson.loads(answer.body)
                self._swagger[key] = tag, document
        except (Unreachable, ValueError):
            return known
        return tag, document

    def _learn(self, cluster: str, api: RemoteApi, known: _Known) -> None:
        if self._apis.find(cluster, api.group, api.version) is None:
            return
        of_cluster = self._known.setdefault(cluster, {})
        if of_cluster.get((api.group, api.version)) != known:
            of_cluster[api.group, api.version] = known
            self._touch(cluster)

    def _changed(self, cluster: str, name: str) -> None:
        served = self._apis.of(cluster)
        self._known[cluster] = {gv: known for gv, known in self._known.get(cluster, {}).items() if gv in served}
        servers = {trust_of(api) for api in served.values()}
        self._swagger = {key: kept for key, kept in self._swagger.items() if key[0] != cluster or key[1] in servers}
        self._touch(cluster)

    def _touch(self, cluster: str) -> None:
        self._count += 1
        self._changes[cluster] = self._count
        for listener in self._listeners:
            listener(cluster)


def _stale(version: str) -> Object:
    return {"version": version, "freshness": "Stale"}


def _entry_of(document: Object, api: RemoteApi) -> Object:
    """A version's part of the discovery of its server, which may serve others; empty where it lacks it."""
    for group in document.get("items") or ():
        if group.get("metadata", {}).get("name", "") == api.group:
            for version in group.get("versions") or ():
                if version["version"] == api.version:
                    return {"version": api.version, "freshness": "Current", "resources": version.get("resources") or []}
    return {"version": api.version, "freshness": "Current"}


def _converted(document: Object) -> list[Object]:
    """The resources of an APIResourceList in the form of aggregated discovery."""
    found: dict[str, Object] = {}
    for each in document.get("resources") or ():
        plural, _, subresource = each["name"].partition("/")
        kind = {"group": each.get("group", ""), "version": each.get("version", ""), "kind": each["kind"]}
        scope = "Namespaced" if each.get("namespaced") else "Cluster"
        if not subresource:
            entry = found.setdefault(plural, {"resource": plural})
            entry |= {"responseKind": kind, "scope": scope, "singularResource": each.get("singularName", "")}
            entry["verbs"] = each.get("verbs") or []
            for name in ("shortNames", "categories"):
                if each.get(name):
                    entry[name] = each[name]
        else:
            entry = found.setdefault(plural, {"resource": plural, "scope": scope, "verbs": []})
            own = {"subresource": subresource, "responseKind": kind, "verbs": each.get("verbs") or []}
            entry.setdefault("subresources", []).append(own)
    return list(found.values())
