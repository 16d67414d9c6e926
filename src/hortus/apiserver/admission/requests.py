"""One request as webhooks and policies see it, and its AdmissionReview (admission.k8s.io/v1)."""

from __future__ import annotations

from typing import NamedTuple
from uuid import uuid4

import msgspec

from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.resources.scaling import scale_of
from hortus.apiserver.resources.scope import DeleteOptions, RequestScope, WriteOptions
from hortus.apiserver.resources.subresources import BODIES, SCALE
from hortus.kube.objects import GroupVersionKind, Object

REVIEW_VERSION = "admission.k8s.io/v1"


class AdmissionRequest(NamedTuple):
    """A write that is to be judged; `obj` and `old` are None where the operation has none."""

    scope: RequestScope
    operation: str
    options: WriteOptions | DeleteOptions
    obj: Object | None
    old: Object | None

    @property
    def dry_run(self) -> bool:
        return self.options.dry_run

    @property
    def qualified(self) -> str:
        """The resource with its subresource, as rules name it."""
        plural, sub = self.scope.kind.resource.plural, self.scope.subresource
        return f"{plural}/{sub}" if sub else plural


def shown(scope: RequestScope, obj: Object | None) -> Object | None:
    """The object in the form of the endpoint: a Scale on `scale`, otherwise itself."""
    if obj is None or scope.subresource != "scale" or scope.kind.definition.scale is None:
        return obj
    return scale_of(scope.kind, obj)


def kind_of(scope: RequestScope, kind: Kind) -> GroupVersionKind:
    """The kind of the object that is written to the endpoint."""
    if scope.subresource == "scale" and kind.definition.scale is not None:
        return SCALE
    return BODIES.get((kind.resource.plural, scope.subresource), kind.resource.gvk)


def options_object(operation: str, options: WriteOptions | DeleteOptions) -> Object:
    """The options of the request as the API has them (meta.k8s.io/v1)."""
    found: Object = {"apiVersion": "meta.k8s.io/v1"}
    if options.dry_run:
        found["dryRun"] = ["All"]
    if isinstance(options, WriteOptions):
        found["kind"] = options.kind or ("CreateOptions" if operation == "CREATE" else "UpdateOptions")
        found |= {"fieldManager": options.manager, "fieldValidation": options.validation}
        if options.force:
            found["force"] = True
        return found
    found["kind"] = "DeleteOptions"
    if options.grace_period is not None:
        found["gracePeriodSeconds"] = options.grace_period
    if options.propagation:
        found["propagationPolicy"] = options.propagation
    given = {"uid": options.preconditions.uid, "resourceVersion": options.preconditions.resource_version}
    if any(given.values()):
        found["preconditions"] = {key: value for key, value in given.items() if value}
    return found


def request_object(request: AdmissionRequest, matched: Kind) -> Object:
    """The `request` of an AdmissionReview without its objects; also what expressions see as `request`.

    `matched` is the version of the kind that the webhook or policy asked for, which may differ from the client's.
    """
    scope = request.scope
    found: Object = {
        "uid": str(uuid4()),
        "kind": _gvk(kind_of(scope, matched)),
        "resource": _gvr(matched),
        "requestKind": _gvk(kind_of(scope, scope.kind)),
        "requestResource": _gvr(scope.kind),
        "name": scope.name,
        "operation": request.operation,
        "userInfo": scope.user.to_json(),
        "dryRun": request.dry_run,
        "options": options_object(request.operation, request.options),
    }
    if scope.subresource:
        found["subResource"] = found["requestSubResource"] = scope.subresource
    namespace = namespace_of(scope)
    if namespace:
        found["namespace"] = namespace
    return found


def namespace_of(scope: RequestScope) -> str:
    """The namespace of a request; one about a Namespace is in that namespace."""
    if is_namespace(scope.kind):
        return scope.name
    return scope.namespace


def is_namespace(kind: Kind) -> bool:
    return kind.suffix == "core/namespaces"


def _gvk(kind: GroupVersionKind) -> Object:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _gvr(kind: Kind) -> Object:
    resource = kind.resource
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


class ReviewResponse(msgspec.Struct, rename="camel"):
    """The fields of an AdmissionReview's `response` that are read."""

    uid: str = ""
    allowed: bool = False
    status: msgspec.Raw = msgspec.Raw(b"null")
    patch: str | None = None
    patch_type: str | None = None
    audit_annotations: dict[str, str] | None = None
    warnings: list[str] | None = None


class ReviewAnswer(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    response: ReviewResponse | None = None
