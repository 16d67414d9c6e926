"""AdmissionReviews over HTTP (Kubernetes' admission.k8s.io/v1; v1beta1 and v1alpha1 are answered as they come)."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

import msgspec
import structlog
from aiohttp import web

from hortus.engine.typed import NotReadable
from hortus.kube.objects import Object

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_BAD_REQUEST: Final = 400


class ReviewRequest(msgspec.Struct, rename="camel"):
    """The question of one review."""

    uid: str
    operation: str
    object: Object | None = None
    old_object: Object | None = None


class _Review(msgspec.Struct, rename="camel"):
    request: ReviewRequest
    api_version: str
    kind: str = "AdmissionReview"


class AdmissionVerdict(NamedTuple):
    """The answer to one review: allowed, perhaps with warnings, or denied with a status."""

    warnings: tuple[str, ...] = ()
    code: int = 0
    reason: str = ""
    message: str = ""
    causes: tuple[dict[str, str], ...] = ()
    patch: tuple[Object, ...] = ()
    """Operations of a JSON Patch (RFC 6902), of a mutating webhook."""

    @property
    def is_allowed(self) -> bool:
        return not self.code

    def response(self, uid: str) -> dict[str, Any]:
        """The `response` of the AdmissionReview with this uid."""
        found: dict[str, Any] = {"uid": uid, "allowed": self.is_allowed}
        if self.warnings:
            found["warnings"] = list(self.warnings)
        if self.patch:
            found |= {"patchType": "JSONPatch", "patch": base64.b64encode(msgspec.json.encode(self.patch)).decode()}
        if self.code:
            status: dict[str, Any] = {"status": "Failure", "code": self.code, "reason": self.reason}
            found["status"] = {**status, "message": self.message}
            if self.causes:
                found["status"]["details"] = {"causes": list(self.causes)}
        return found


ADMITTED: Final = AdmissionVerdict()
AdmissionJudge = Callable[[ReviewRequest], Awaitable[AdmissionVerdict]]
_decoder: Final = msgspec.json.Decoder(_Review)


def review_handler(judge: AdmissionJudge) -> Callable[[web.Request], Awaitable[web.Response]]:
    """A handler of requests that has `judge` answer each review. An object that cannot be read is denied."""

    async def answer(request: web.Request) -> web.Response:
        try:
            review = _decoder.decode(await request.read())
        except msgspec.MsgspecError as error:
            return web.Response(status=400, text=f"no AdmissionReview: {error}\n")
        try:
            verdict = await judge(review.request)
        except NotReadable as error:
            verdict = AdmissionVerdict(code=_BAD_REQUEST, reason="BadRequest", message=str(error))
        if not verdict.is_allowed:
            _log.info("denied", path=request.path, message=verdict.message)
        body: dict[str, Any] = {
            "apiVersion": review.api_version,
            "kind": review.kind,
            "response": verdict.response(review.request.uid),
        }
        return web.Response(body=msgspec.json.encode(body), content_type="application/json")

    return answer
