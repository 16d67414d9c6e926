"""Calls of webhooks: mutating ones in turn, each with the result of the ones before it, validating ones concurrently.

A webhook is untrusted code: it may be slow, unreachable or wrong. Its answer counts only for the request of the call,
it cannot change the identity of the object, and its failurePolicy decides about a failed call. Messages and codes are
kube-apiserver's (k8s.io/apiserver, plugin/webhook), because clients and their tests match on them.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import orjson

from hortus.apiserver.admission.calling import CallFailed, WebhookClient, shortened
from hortus.apiserver.admission.configurations import Webhook
from hortus.apiserver.admission.expressions import ConditionsFailed, RequestVariables, all_hold
from hortus.apiserver.admission.matching import Matcher
from hortus.apiserver.admission.requests import (
    REVIEW_VERSION,
    AdmissionRequest,
    ReviewAnswer,
    ReviewResponse,
    request_object,
    shown,
)
from hortus.apiserver.remarks import remarks
from hortus.apiserver.resources.failures import forbidden
from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.resources.versions import shown_as
from hortus.kube.errors import ApiError, BadRequest, InternalError, from_status
from hortus.kube.patches import PatchError, apply_json_patch
from hortus.kube.shapes import decode_json

_LARGEST_DETAILS = 16 * 1024
"""Bytes of JSON of a refusal's details; larger ones are left out."""
_IDENTITY = ("name", "namespace", "uid")
_QUIET_EFFECTS = ("None", "NoneOnDryRun")

Environments = Callable[[AdmissionRequest, Kind], RequestVariables]


class Webhooks:
    def __init__(self, client: WebhookClient, matcher: Matcher, environments: Environments) -> None:
        self._client = client
        self._matcher = matcher
        self._environments = environments

    async def mutate(self, hooks: Iterable[Webhook], request: AdmissionRequest) -> bool:
        """Lets each webhook change `request.obj` in place and returns True if one did. Raises the refusal of a webhook.

        Webhooks with reinvocationPolicy IfNeeded that ran before a later one changed the object run once more.
        """
        ran: list[Webhook] = []
        again: list[Webhook] = []
        touched = False
        for hook in hooks:
            asked, changed = await self._mutated_by(hook, request)
            if changed:
                touched = True
                again += [each for each in ran if each not in again]
                ran.clear()
            if asked and hook.reinvoke:
                ran.append(hook)
        for hook in again:
            await self._mutated_by(hook, request)
        return touched

    async def validate(self, hooks: Iterable[Webhook], request: AdmissionRequest) -> None:
        """Calls all concurrently; raises the first refusal in order."""
        found = [(hook, kind) for hook in hooks if (kind := await self._asked(hook, request)) is not None]
        if not found:
            return
        remarks()  # made here, so that the tasks of the calls share it
        results = await asyncio.gather(
            *(self._ask(*each, request, mutating=False) for each in found), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _mutated_by(self, hook: Webhook, request: AdmissionRequest) -> tuple[bool, bool]:
        kind = await self._asked(hook, request)
        if kind is None:
            return False, False
        response = await self._ask(hook, kind, request, mutating=True)
        if response is None or not response.patch:
            return True, False
        return True, await self._patched(hook, kind, request, response.patch)

    async def _asked(self, hook: Webhook, request: AdmissionRequest) -> Kind | None:
        """The version in which the webhook wants the object; None when it does not match."""
        kind = await self._matcher.matched(hook.criteria, request)
        if kind is None or not hook.conditions:
            return kind
        try:
            return kind if all_hold(hook.conditions, self._environments(request, kind)) else None
        except ConditionsFailed as error:
            if not hook.fail:
                return None
            raise forbidden(request.scope.kind, request.scope.name, str(error)) from None

    async def _ask(
        self, hook: Webhook, kind: Kind, request: AdmissionRequest, *, mutating: bool
    ) -> ReviewResponse | None:
        """The webhook's response, None when its failure is to be ignored. Raises its refusal."""
        if request.dry_run and hook.side_effects not in _QUIET_EFFECTS:
            raise BadRequest(f'admission webhook "{hook.name}" does not support dry run')
        try:
            response = await self._response(hook, kind, request, mutating=mutating)
        except CallFailed as error:
            if not hook.fail:
                return None
            raise _internal(f'failed calling webhook "{hook.name}": {error}') from None
        said = remarks()
        for key, value in (response.audit_annotations or {}).items():
            said.annotate(f"{hook.name}/{key}", value)
        for text in response.warnings or ():
            said.warn(text)
        if not response.allowed:
            raise _denied(hook.name, response.status)
        return response

    async def _response(
        self, hook: Webhook, kind: Kind, request: AdmissionRequest, *, mutating: bool
    ) -> ReviewResponse:
        if "v1" not in hook.versions:
            raise CallFailed("webhook does not accept known AdmissionReview versions (v1)")
        question, scope = request_object(request, kind), request.scope
        for name, side in (("object", request.obj), ("oldObject", request.old)):
            question[name] = await shown_as(kind, scope.kind, scope.cluster, shown(scope, side))
        review = {"kind": "AdmissionReview", "apiVersion": REVIEW_VERSION, "request": question}
        try:
            body = await self._client.ask(scope.cluster, hook.client, review, seconds=hook.seconds)
        except CallFailed as error:
            raise CallFailed(f"failed to call webhook: {error}") from None
        try:
            return _verified(body, question["uid"], mutating=mutating)
        except ValueError as error:
            raise CallFailed(f"received invalid webhook response: {error}") from None

    async def _patched(self, hook: Webhook, kind: Kind, request: AdmissionRequest, patch: str) -> bool:
        obj = request.obj
        try:
            operations = orjson.loads(base64.b64decode(patch, validate=True))
        except (binascii.Error, ValueError) as error:
            failed = f'failed calling webhook "{hook.name}": received undecodable patch in webhook response'
            raise _internal(f"{failed}: {error}") from None
        if not operations:
            return False
        if obj is None:
            raise _internal(
                f'admission webhook "{hook.name}" attempted to modify the object, which is not supported for this '
                "operation"
            )
        own, cluster = request.scope.kind, request.scope.cluster
        before = await shown_as(kind, own, cluster, obj)
        try:
            after = apply_json_patch(before, operations)
        except PatchError as error:
            raise _internal(str(error)) from None
        if after == before:
            return False
        _check_identity(hook, before, after)
        changed = await shown_as(own, kind, cluster, after)
        assert changed is not None
        obj.clear()
        obj.update(changed)
        return True


def _check_identity(hook: Webhook, before: Any, after: Any) -> None:
    """A patch may not make the object another one."""
    if not isinstance(after, dict) or not isinstance(after.get("metadata"), dict):
        raise _internal(f'admission webhook "{hook.name}" leaves no object')
    pairs = [(field, before.get(field), after.get(field)) for field in ("apiVersion", "kind")]
    pairs += [(f"metadata.{key}", before["metadata"].get(key), after["metadata"].get(key)) for key in _IDENTITY]
    for path, then, now in pairs:
        if then != now:
            raise _internal(f'admission webhook "{hook.name}" attempted to change {path}, which identifies the object')


def _verified(body: bytes, uid: str, *, mutating: bool) -> ReviewResponse:
    """Raises ValueError with the problem of an answer."""
    try:
        answer = decode_json(body, ReviewAnswer)
    except msgspec.DecodeError as error:
        raise ValueError(f"it is no AdmissionReview: {error}") from None
    response = answer.response
    if response is None:
        raise ValueError("webhook response was absent")
    if (answer.api_version, answer.kind) != (REVIEW_VERSION, "AdmissionReview"):
        group, _, version = answer.api_version.rpartition("/")
        kind = f"{group}/{version}, Kind={answer.kind}" if group else f"{version}, Kind={answer.kind}"
        raise ValueError(f"expected webhook response of {REVIEW_VERSION}, Kind=AdmissionReview, got {kind}")
    if response.uid != uid:
        raise ValueError(f'expected response.uid="{uid}", got "{response.uid}"')
    if not mutating:
        for name, value in (("patch", response.patch), ("patchType", response.patch_type)):
            if value:
                raise ValueError(f"validating webhook may not return response.{name}")
    elif response.patch and not response.patch_type:
        raise ValueError("webhook returned response.patch but not response.patchType")
    elif response.patch_type and not response.patch:
        raise ValueError("webhook returned response.patchType but not response.patch")
    elif response.patch_type not in (None, "", "JSONPatch"):
        raise ValueError(f'webhook returned invalid response.patchType of "{response.patch_type}"')
    return response


def _denied(name: str, status: msgspec.Raw) -> ApiError:
    """The refusal with the code and reason that the webhook gave, never a success."""
    given = msgspec.json.decode(status)
    given = given if isinstance(given, dict) else {}
    said, code = shortened(str(given.get("message") or given.get("reason") or "")), given.get("code")
    details = given.get("details")
    if details is not None and len(orjson.dumps(details)) > _LARGEST_DETAILS:
        details = None
    denied = f'admission webhook "{name}" denied the request'
    message = f"{denied}: {said}" if said else f"{denied} without explanation"
    code = code if isinstance(code, int) and 400 <= code <= 599 else 400
    body = {"kind": "Status", "message": message, "details": details}
    error = from_status(code, body)
    error.status_reason = shortened(str(given.get("reason") or ""))
    return error


def _internal(message: str) -> InternalError:
    return InternalError(f"Internal error occurred: {message}", details={"causes": [{"message": message}]})
