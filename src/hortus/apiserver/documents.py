"""Non-resource paths: health, version, metrics, discovery, OpenAPI, and the documents of token issuers."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from hortus.apiserver import swagger_protobuf
from hortus.apiserver.aggregation import Aggregation
from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.discovery import AGGREGATED, DiscoveryDocuments
from hortus.apiserver.health import HealthChecks
from hortus.apiserver.http import Reply, RequestInfo
from hortus.apiserver.http.negotiation import media_types
from hortus.apiserver.http.replies import json_reply
from hortus.apiserver.metrics import ServerMetrics
from hortus.apiserver.openapi import OpenApi
from hortus.apiserver.resources.context import OperationContext
from hortus.apiserver.resources.failures import no_such_resource, not_allowed
from hortus.apiserver.settings import version_info
from hortus.apiserver.tenants import ROOT_CLUSTER, tenant_of
from hortus.apiserver.turns import TurnPace
from hortus.kube.objects import Object

TOKEN_PATHS = ("/.well-known/openid-configuration", "/openid/v1/jwks")
"""The paths of OpenID Connect Discovery for the issuer of ServiceAccount tokens (KEP-1393)."""
TokenDocument = Callable[[str, str, str], Object]
"""(logical cluster, path, address of the server) -> the document. Raises NotFound."""


class Documents:
    """Answers GET of all non-resource paths."""

    def __init__(
        self,
        ctx: OperationContext,
        metrics: ServerMetrics,
        token_document: TokenDocument,
        aggregation: Aggregation,
    ) -> None:
        """`token_document` returns the documents by which clients verify a cluster's ServiceAccount tokens."""
        self._ctx = ctx
        self._metrics = metrics
        self._token_document = token_document
        self._aggregation = aggregation
        self._discovery = DiscoveryDocuments(ctx.registry, aggregation.documents)
        self._openapi = OpenApi(ctx.registry, aggregation.documents)
        self._health = HealthChecks({"store": ctx.storage.backend.check})

    def is_light(self, path: str) -> bool:
        """Reports whether a non-resource path costs next to nothing, so that it is answered whatever the load of its
        sender."""
        return path == "/version" or path == "/ping" or self._health.answers(path)

    async def answer(self, request: web.BaseRequest, info: RequestInfo, user: UserInfo) -> Reply | web.StreamResponse:
        """The document at a non-resource path. Raises NotFound, MethodNotAllowed."""
        path, cluster = info.path, info.cluster
        if info.method not in ("GET", "HEAD") and not self._health.answers(path):
            raise not_allowed()
        if self._health.answers(path):
            asked = request.query
            excluded = frozenset(asked.getall("exclude", ()))
            return await self._health.answer(path, verbose="verbose" in asked, exclude=excluded)
        if path == "/ping":
            return Reply(b"ok", content_type="text/plain")
        if path == "/version":
            return json_reply(version_info())
        if path == "/metrics" and cluster == ROOT_CLUSTER:  # they count the requests of all clusters
            return Reply(self._metrics.text(), content_type="text/plain; version=0.0.4")
        if path in TOKEN_PATHS:
            return json_reply(self._token_document(cluster, path, str(request.url.origin())))
        parts = path.split("/")[1:]
        if parts[0] in ("api", "apis"):
            await self._ctx.registry.load(cluster)
            return self._discover(request, cluster, parts)
        if path.startswith("/openapi/"):
            remote = self._aggregation.describing(info)
            if remote is not None:
                return await self._aggregation.pass_on(request, info, remote, user)
            await self._ctx.registry.load(cluster)
            pace = TurnPace(self._ctx.turns, tenant_of(cluster, user.username))
            reply = await self._openapi_of(cluster, path, pace)
            ranges = {name for name, _ in media_types(request.headers.get("Accept", ""))}
            if path == "/openapi/v2" and ranges & swagger_protobuf.ASKED_AS:
                body = await swagger_protobuf.packed(reply.body, pace)
                return Reply(body, content_type=swagger_protobuf.MEDIA_TYPE)
            return reply
        raise no_such_resource()

    async def _openapi_of(self, cluster: str, path: str, pace: TurnPace) -> Reply:
        if path == "/openapi/v3":
            return json_reply(self._openapi.index(cluster))
        if path.startswith("/openapi/v3/"):
            return Reply(await self._openapi.document(cluster, path.removeprefix("/openapi/v3/"), pace))
        if path == "/openapi/v2":
            return Reply(await self._openapi.swagger(cluster, pace))
        raise no_such_resource()

    def _discover(self, request: web.BaseRequest, cluster: str, parts: list[str]) -> Reply:
        discovery = self._discovery
        if len(parts) == 1 and _wants_aggregated(request):
            return _tagged(request, *discovery.aggregated_body(cluster, core=parts[0] == "api"))
        if parts == ["api"]:
            return json_reply(discovery.core_versions(request.host))
        if parts == ["apis"]:
            return json_reply(discovery.groups(cluster))
        if len(parts) == 2:
            if parts[0] == "api":
                return json_reply(discovery.resources(cluster, "", parts[1]))
            return json_reply(discovery.group(cluster, parts[1]))
        if len(parts) == 3 and parts[0] == "apis":
            return json_reply(discovery.resources(cluster, parts[1], parts[2]))
        raise no_such_resource()


def _tagged(request: web.BaseRequest, body: bytes, tag: str) -> Reply:
    """Aggregated discovery with its digest, or 304 for a client that has it (KEP-3352: clients cache discovery on
    disk)."""
    headers = {"ETag": tag, "Vary": "Accept", "Cache-Control": "public"}
    if request.headers.get("If-None-Match") == tag:
        return Reply(b"", code=304, content_type=AGGREGATED, headers=headers)
    return Reply(body, content_type=AGGREGATED, headers=headers)


def _wants_aggregated(request: web.BaseRequest) -> bool:
    for name, parameters in media_types(request.headers.get("Accept", "")):
        if name == "application/json":
            return parameters.get("g") == "apidiscovery.k8s.io" and parameters.get("v") == "v2"
    return False
