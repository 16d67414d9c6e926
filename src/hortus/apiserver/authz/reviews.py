"""The reviews by which clients ask for the permissions of a user (authorization.k8s.io, authentication.k8s.io).

Nothing here is stored: a review's body comes in, the same body with its `status` goes out, and the answer's HTTP code
is 201. `REVIEWS` names the handler of each kind.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import msgspec

from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.authz.attributes import Attributes, AuthorizationDecision
from hortus.apiserver.authz.rbac import RbacAuthorizer
from hortus.apiserver.authz.rules import PolicyRule
from hortus.apiserver.resources.definition import WriteContext
from hortus.kube.errors import BadRequest, Invalid
from hortus.kube.objects import Object
from hortus.schema.quoting import quote

_Shape = TypeVar("_Shape")

Handler = Callable[[RbacAuthorizer, Object, WriteContext], Awaitable[Object]]


async def subject_access_review(authorizer: RbacAuthorizer, body: Object, context: WriteContext) -> Object:
    """Answers whether the user and groups in `spec` may do the action in `spec`."""
    spec = _spec(body)
    user = _user_of(spec)
    if not user.username and not user.groups:
        raise _invalid(body, "spec.user", "", "at least one of user or group must be specified")
    return await _decided(authorizer, body, _attributes(body, spec, user, context.cluster))


async def local_subject_access_review(authorizer: RbacAuthorizer, body: Object, context: WriteContext) -> Object:
    """A SubjectAccessReview about one namespace: that of the request."""
    resource = _spec(body).get("resourceAttributes")
    if not isinstance(resource, dict):
        raise _invalid(body, "spec.resourceAttributes", None, "must be set for a review within a namespace")
    asked = resource.get("namespace", "")
    if asked != context.namespace:
        raise _invalid(body, "spec.resourceAttributes.namespace", asked, "must match metadata.namespace")
    return await subject_access_review(authorizer, body, context)


async def self_subject_access_review(authorizer: RbacAuthorizer, body: Object, context: WriteContext) -> Object:
    """Answers whether the requester may do the action in `spec`."""
    return await _decided(authorizer, body, _attributes(body, _spec(body), context.user, context.cluster))


async def self_subject_rules_review(authorizer: RbacAuthorizer, body: Object, context: WriteContext) -> Object:
    """All permissions of the requester in `spec.namespace`."""
    namespace = _spec(body).get("namespace", "")
    if not isinstance(namespace, str) or not namespace:
        raise BadRequest("no namespace on request")
    grants = await authorizer.grants(context.cluster, context.user)
    rules = list(dict.fromkeys(grants.rules(namespace)))
    status: Object = {
        "resourceRules": [_resource_rule(rule) for rule in rules if not rule.non_resource_urls],
        "nonResourceRules": [rule.to_json() for rule in rules if rule.non_resource_urls],
        "incomplete": False,
    }
    problems = grants.problems(namespace)
    if problems:
        status |= {"incomplete": True, "evaluationError": ", ".join(problems)}
    return {**body, "status": status}


async def self_subject_review(authorizer: RbacAuthorizer, body: Object, context: WriteContext) -> Object:
    """The identity of the requester, as `kubectl auth whoami` shows it."""
    return {**body, "status": {"userInfo": context.user.to_json()}}


REVIEWS: Mapping[tuple[str, str], Handler] = {
    ("authorization.k8s.io", "subjectaccessreviews"): subject_access_review,
    ("authorization.k8s.io", "localsubjectaccessreviews"): local_subject_access_review,
    ("authorization.k8s.io", "selfsubjectaccessreviews"): self_subject_access_review,
    ("authorization.k8s.io", "selfsubjectrulesreviews"): self_subject_rules_review,
    ("authentication.k8s.io", "selfsubjectreviews"): self_subject_review,
}
"""Handlers by API group and plural."""


class _Resource(msgspec.Struct, rename="lower"):
    namespace: str = ""
    verb: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""


class _Path(msgspec.Struct):
    path: str = ""
    verb: str = ""


class _Subject(msgspec.Struct):
    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


def _spec(body: Object) -> Object:
    spec = body.get("spec") or {}
    if not isinstance(spec, dict):
        raise BadRequest(f"{body.get('kind', 'review')} cannot be read: spec is not an object")
    return spec


def _user_of(spec: Object) -> UserInfo:
    subject = _read(spec, _Subject)
    return UserInfo(subject.user, subject.uid, subject.groups, subject.extra)


def _attributes(body: Object, spec: Object, user: UserInfo, cluster: str) -> Attributes:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) == (path is None):
        problem = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise _invalid(body, "spec.resourceAttributes", None, problem)
    if path is not None:
        asked = _read(path, _Path)
        return Attributes(cluster, user, asked.verb, path=asked.path or "/")
    found = _read(resource, _Resource)
    return Attributes(
        cluster,
        user,
        found.verb,
        found.group,
        found.version,
        found.resource,
        found.subresource,
        found.namespace,
        found.name,
    )


def _read(value: object, shape: type[_Shape]) -> _Shape:
    given = {key: part for key, part in value.items() if part is not None} if isinstance(value, dict) else value
    try:
        return msgspec.convert(given, shape)
    except msgspec.ValidationError as problem:
        raise BadRequest(f"the review cannot be read: {problem}") from problem


async def _decided(authorizer: RbacAuthorizer, body: Object, asked: Attributes) -> Object:
    return {**body, "status": _status(await authorizer.authorize(asked))}


def _status(decision: AuthorizationDecision) -> Object:
    return {"allowed": decision.allowed, **({"reason": decision.reason} if decision.reason else {})}


def _resource_rule(rule: PolicyRule) -> Object:
    return {"verbs": list(rule.verbs), **rule.to_json()}


def _invalid(body: Object, field: str, value: str | None, problem: str) -> Invalid:
    """A refusal that names no kind, like those of kube-apiserver for these kinds."""
    group = str(body.get("apiVersion", "")).partition("/")[0]
    message = f"Invalid value: {'null' if value is None else quote(value)}: {problem}"
    cause = {"reason": "FieldValueInvalid", "message": message, "field": field}
    return Invalid(f'.{group} "" is invalid: {field}: {message}', details={"group": group, "causes": [cause]})
