"""AdmissionReviews over HTTP (Kubernetes' admission.k8s.io/v1; v1beta1 and v1alpha1 are answered as they come)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
import structlog
from aiohttp import web

from hortus.domains.stacks.admission import rules
from hortus.domains.stacks.admission.lookups import Lookups
from hortus.domains.stacks.admission.verdicts import ALLOWED, AdmissionVerdict, refused
from hortus.domains.stacks.capi import read_cluster
from hortus.domains.stacks.types import ClusterAddon, ClusterStack, ClusterStackRelease
from hortus.engine import NotReadable, read
from hortus.kube.objects import Object

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

CLUSTER_PATH: Final = "/validate-cluster-x-k8s-io-v1beta1-cluster"
ADDON_PATH: Final = "/validate-clusterstack-x-k8s-io-v1alpha1-clusteraddon"
STACK_PATH: Final = "/validate-clusterstack-x-k8s-io-v1alpha1-clusterstack"
RELEASE_PATH: Final = "/validate-clusterstack-x-k8s-io-v1alpha1-clusterstackrelease"
_CREATE, _UPDATE, _DELETE = "CREATE", "UPDATE", "DELETE"


class _Request(msgspec.Struct, rename="camel"):
    uid: str
    operation: str
    object: Object | None = None
    old_object: Object | None = None


class _Review(msgspec.Struct, rename="camel"):
    request: _Request
    api_version: str
    kind: str = "AdmissionReview"


_Judge = Callable[[_Request], Awaitable[AdmissionVerdict]]
_decoder: Final = msgspec.json.Decoder(_Review)


class AdmissionReviews:
    """The handlers of reviews, by path."""

    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups

    @property
    def routes(self) -> Mapping[str, Callable[[web.Request], Awaitable[web.Response]]]:
        """The paths of the Go operator's webhooks."""
        return {
            CLUSTER_PATH: self._handler(self._cluster),
            ADDON_PATH: self._handler(self._addon),
            STACK_PATH: self._handler(self._stack),
            RELEASE_PATH: self._handler(self._release),
        }

    def _handler(self, judge: _Judge) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            try:
                review = _decoder.decode(await request.read())
            except msgspec.MsgspecError as error:
                return web.Response(status=400, text=f"no AdmissionReview: {error}\n")
            try:
                verdict = await judge(review.request)
            except NotReadable as error:
                verdict = refused(str(error))
            if not verdict.is_allowed:
                _log.info("denied", path=request.path, message=verdict.message)
            body: dict[str, Any] = {
                "apiVersion": review.api_version,
                "kind": review.kind,
                "response": verdict.response(review.request.uid),
            }
            return web.Response(body=msgspec.json.encode(body), content_type="application/json")

        return answer

    async def _cluster(self, request: _Request) -> AdmissionVerdict:
        if request.operation not in (_CREATE, _UPDATE) or request.object is None:
            return ALLOWED
        old = read_cluster(request.old_object) if request.old_object else None
        new = read_cluster(request.object)
        if old is not None and new.metadata.deletion_timestamp is not None:
            return ALLOWED  # a finalizer must be removable, whatever the class has become
        return await rules.check_cluster(new, old, self._lookups)

    async def _addon(self, request: _Request) -> AdmissionVerdict:
        if request.operation not in (_CREATE, _UPDATE) or request.object is None:
            return ALLOWED
        old = read(ClusterAddon, request.old_object) if request.old_object else None
        return rules.check_addon(read(ClusterAddon, request.object), old)

    async def _stack(self, request: _Request) -> AdmissionVerdict:
        if request.operation == _DELETE and request.old_object:
            return await rules.check_stack_deletion(read(ClusterStack, request.old_object), self._lookups)
        if request.operation not in (_CREATE, _UPDATE) or request.object is None:
            return ALLOWED
        old = read(ClusterStack, request.old_object) if request.old_object else None
        return rules.check_stack(read(ClusterStack, request.object), old)

    async def _release(self, request: _Request) -> AdmissionVerdict:
        if request.operation != _DELETE or not request.old_object:
            return ALLOWED
        return await rules.check_release_deletion(read(ClusterStackRelease, request.old_object), self._lookups)
