"""The decision on one AdmissionReview: allowed, always; and an event, where the object changed for the control plane.

CREATE and DELETE are always reported. UPDATE is reported where the part that the subresource writes differs: the spec,
or the status. A dry run changes nothing and is not reported, except the one by which the control plane checks that
events arrive.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import msgspec
import orjson

from hortus.domains.modules.watching.events import PROBE_NAME, WatchedEvent

_Name = Annotated[str, msgspec.Meta(max_length=253)]


class ReviewVerdict(NamedTuple):
    """The answer to a review."""

    review: bytes
    """The AdmissionReview to answer with."""
    event: WatchedEvent | None = None
    """The event to report, if any."""
    problem: str = ""
    """The reason for which nothing could be decided; empty when all is well."""


class NoReview(Exception):
    """The request is not an AdmissionReview of version v1."""


class _Kind(msgspec.Struct, frozen=True):
    group: _Name = ""
    version: _Name = ""
    kind: _Name = ""


class _Request(msgspec.Struct, rename="camel"):
    uid: str
    kind: _Kind = _Kind()
    name: str = ""
    operation: str = ""
    sub_resource: str = ""
    dry_run: bool | None = False
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")


class _Review(msgspec.Struct, rename="camel"):
    api_version: str
    request: _Request


class _Metadata(msgspec.Struct):
    name: Annotated[_Name, msgspec.Meta(min_length=1)]
    namespace: _Name = ""


class _Watched(msgspec.Struct):
    """The parts of an object that decide."""

    metadata: _Metadata
    spec: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    status: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


INVALID_SUBRESOURCE = "invalid subresource"


def judge(body: bytes) -> ReviewVerdict:
    """Returns the verdict on a review. Raises NoReview."""
    request = _request(body)
    event, problem = None, ""
    try:
        if _reported(request):
            event = _event(request)
    except ValueError as error:
        problem = str(error)
    return ReviewVerdict(_answer(request.uid, problem), event, problem)


def _request(body: bytes) -> _Request:
    try:
        review = msgspec.json.decode(body, type=_Review)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NoReview(f"the body is no AdmissionReview: {error}") from None
    if review.api_version != "admission.k8s.io/v1":
        raise NoReview(f"the review has version {review.api_version!r}: only admission.k8s.io/v1 is supported")
    return review.request


def _reported(request: _Request) -> bool:
    """Raises ValueError for an operation or a subresource that is not supported."""
    if request.dry_run and request.name != PROBE_NAME:
        return False
    if request.operation in ("CREATE", "DELETE"):
        return True
    if request.operation != "UPDATE":
        raise ValueError(f"operation {request.operation} is not supported")
    new, old = _watched(request.object, "object"), _watched(request.old_object, "oldObject")
    match request.sub_resource:
        case "":
            return _differ(new.spec, old.spec)
        case "status":
            return _differ(new.status, old.status)
    raise ValueError(f"{INVALID_SUBRESOURCE} for watched resource: {request.sub_resource!r}")


def _differ(one: msgspec.Raw | msgspec.UnsetType, other: msgspec.Raw | msgspec.UnsetType) -> bool:
    if isinstance(one, msgspec.UnsetType) or isinstance(other, msgspec.UnsetType):
        return True
    return _canonical(one) != _canonical(other)


def _canonical(raw: msgspec.Raw) -> bytes:
    # By text: to Python True equals 1.
    return orjson.dumps(orjson.loads(bytes(raw)), option=orjson.OPT_SORT_KEYS)


def _event(request: _Request) -> WatchedEvent:
    found = (
        _watched(request.old_object, "oldObject")
        if request.operation == "DELETE"
        else _watched(request.object, "object")
    )
    kind = request.kind
    return WatchedEvent(found.metadata.namespace, found.metadata.name, kind.group, kind.version, kind.kind)


def _watched(raw: msgspec.Raw, name: str) -> _Watched:
    try:
        return msgspec.json.decode(raw, type=_Watched)
    except msgspec.ValidationError as error:
        raise ValueError(f"{name} of the review: {error}") from None


def _answer(uid: str, problem: str) -> bytes:
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if problem:
        response["status"] = {"message": problem}
    return orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
