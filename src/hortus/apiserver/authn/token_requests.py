"""TokenRequest and TokenReview: making ServiceAccount tokens, and identifying the user of one
(authentication.k8s.io)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hortus.apiserver.authn.chain import Authentication
from hortus.apiserver.authn.cluster_keys import ClusterKeyLookup
from hortus.apiserver.authn.identity import RequestCredentials, UserInfo
from hortus.apiserver.authn.service_accounts import (
    Bindings,
    ObjectReader,
    ObjectReference,
    ServiceAccountTokens,
    issuer_of,
    mint,
)
from hortus.apiserver.resources.definition import WriteContext
from hortus.apiserver.store.backend import StoreKey
from hortus.kube.errors import BadRequest, Conflict, Invalid, NotFound, Unauthorized
from hortus.kube.objects import Object, format_time

DEFAULT_SECONDS = 3600
LEAST_SECONDS = 600
MOST_SECONDS = 1 << 32

_KINDS = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


class _Bound(msgspec.Struct):
    kind: str = ""
    name: str = ""
    uid: str = ""
    apiVersion: str = "v1"


class _Spec(msgspec.Struct, rename="camel"):
    audiences: tuple[str, ...] = ()
    expiration_seconds: int | None = None
    bound_object_ref: _Bound | None = None


class TokenRequests:
    """Answers POST `serviceaccounts/<name>/token`: `handler` is a subresource handler of the resource layer."""

    def __init__(self, clusters: ClusterKeyLookup, objects: ObjectReader) -> None:
        self._clusters = clusters
        self._objects = objects

    async def handler(self, account: Object, body: Object, context: WriteContext) -> Object:
        """The request with `status.token` and `status.expirationTimestamp`. Raises BadRequest, Invalid, Conflict."""
        keys = self._clusters.keys(context.cluster)
        if keys is None:
            raise NotFound(f'logical cluster "{context.cluster}" not found')
        spec = _read(body)
        seconds = DEFAULT_SECONDS if spec.expiration_seconds is None else spec.expiration_seconds
        _check_seconds(seconds)
        bindings = await self._bindings(account, spec.bound_object_ref, context.cluster)
        audiences = spec.audiences or (issuer_of(context.cluster),)
        token = mint(keys, bindings, audiences=audiences, now=context.now, seconds=seconds)
        shown = {**(body.get("spec") or {}), "audiences": list(audiences), "expirationSeconds": seconds}
        shown.setdefault("boundObjectRef", None)
        status = {"token": token, "expirationTimestamp": format_time(int(context.now) + seconds)}
        metadata = {"name": account["metadata"]["name"], "namespace": account["metadata"]["namespace"]}
        head = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        return {**head, "metadata": {**metadata, **_created(context.now)}, "spec": shown, "status": status}

    async def _bindings(self, account: Object, bound: _Bound | None, cluster: str) -> Bindings:
        metadata = account["metadata"]
        namespace = metadata["namespace"]
        owner = ObjectReference(metadata["name"], metadata["uid"])
        if bound is None:
            return Bindings(namespace, owner)
        found = await self._bound_object(bound, namespace, cluster)
        reference = ObjectReference(bound.name, found["metadata"]["uid"])
        match bound.kind:
            case "Pod":
                if (found.get("spec") or {}).get("serviceAccountName", "default") != owner.name:
                    raise BadRequest(
                        f'cannot bind token for serviceaccount "{owner.name}" to pod running with different '
                        "serviceaccount name."
                    )
                return Bindings(namespace, owner, pod=reference, node=await self._node_of(found, cluster))
            case "Secret":
                return Bindings(namespace, owner, secret=reference)
        return Bindings(namespace, owner, node=reference)

    async def _bound_object(self, bound: _Bound, namespace: str, cluster: str) -> Object:
        plural = _KINDS.get(bound.kind)
        if plural is None or bound.apiVersion not in ("", "v1"):
            raise BadRequest(f"cannot bind token to object of type {bound.apiVersion}, Kind={bound.kind}")
        place = "" if plural == "nodes" else namespace
        found = await self._objects.object(StoreKey(f"{cluster}/core/{plural}", f"{place}/{bound.name}"))
        details = {"name": bound.name, "kind": plural}
        if found is None:
            raise NotFound(f'{plural} "{bound.name}" not found', details=details)
        uid = found["metadata"]["uid"]
        if bound.uid and bound.uid != uid:
            raise Conflict(
                f'Operation cannot be fulfilled on {plural} "{bound.name}": the UID in the bound object reference '
                f"({bound.uid}) does not match the UID in record. The object might have been deleted and then "
                "recreated",
                details=details,
            )
        return found

    async def _node_of(self, pod: Object, cluster: str) -> ObjectReference | None:
        name = (pod.get("spec") or {}).get("nodeName")
        if not name:
            return None
        node = await self._objects.object(StoreKey(f"{cluster}/core/nodes", f"/{name}"))
        return ObjectReference(name, node["metadata"]["uid"] if node else "")


async def token_review(
    authentication: Authentication, service_accounts: ServiceAccountTokens, body: Object, context: WriteContext
) -> Object:
    """The review with its `status`: the user of `spec.token` and the `spec.audiences` that it is valid for."""
    spec = body.get("spec") or {}
    token, audiences = spec.get("token"), spec.get("audiences") or ()
    if not isinstance(token, str) or not token:
        raise BadRequest("token is required for TokenReview in authentication")
    try:
        user, accepted = await _reviewed(authentication, service_accounts, token, tuple(audiences), context.cluster)
    except Unauthorized:
        return {**body, "status": {"user": {}, "error": "the token is not valid here, or not for these audiences"}}
    return {**body, "status": {"authenticated": True, "user": user.to_json(), "audiences": list(accepted)}}


async def _reviewed(
    authentication: Authentication,
    service_accounts: ServiceAccountTokens,
    token: str,
    audiences: Sequence[str],
    cluster: str,
) -> tuple[UserInfo, Sequence[str]]:
    own = issuer_of(cluster)
    if not audiences or own in audiences:
        user = await authentication.authenticate(RequestCredentials(cluster, token))
        return user, [own]
    checked = await service_accounts.check(cluster, token, audiences)
    return checked.user, [audience for audience in audiences if audience in checked.audiences]


def _read(body: Object) -> _Spec:
    spec = {key: value for key, value in (body.get("spec") or {}).items() if value is not None}
    try:
        return msgspec.convert(spec, _Spec)
    except msgspec.ValidationError as problem:
        raise BadRequest(f"TokenRequest is invalid: spec: {problem}") from problem


def _check_seconds(seconds: int) -> None:
    if seconds < LEAST_SECONDS:
        problem = "may not specify a duration less than 10 minutes"
    elif seconds > MOST_SECONDS:
        problem = "may not specify a duration larger than 2^32 seconds"
    else:
        return
    message = f"Invalid value: {seconds}: {problem}"
    cause = {"reason": "FieldValueInvalid", "message": message, "field": "spec.expirationSeconds"}
    raise Invalid(
        f'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: {message}',
        details={"group": "authentication.k8s.io", "kind": "TokenRequest", "causes": [cause]},
    )


def _created(now: float) -> Object:
    return {"creationTimestamp": format_time(now)}
