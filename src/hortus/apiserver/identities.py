"""The connection of authentication and authorization with the API: reviews, tokens, guarded writes, signed requests.

authn and authz decide and know no kinds; the resource layer serves kinds and knows no roles. This module registers the
kinds that are answered by a decision, the writes that need one, and the consequences of an approval.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Sequence

import msgspec

from hortus.apiserver.authn import Authentication, ServiceAccountTokens
from hortus.apiserver.authn.certificates import parsed_request
from hortus.apiserver.authn.subjects import subject_of
from hortus.apiserver.authn.token_requests import TokenRequests, token_review
from hortus.apiserver.authz import Attributes, Authorizer, RbacAuthorizer, denied
from hortus.apiserver.authz.escalation import GUARDED, check_rbac_write
from hortus.apiserver.authz.reviews import REVIEWS
from hortus.apiserver.authz.signers import GROUP, refused_decision, refused_subject
from hortus.apiserver.clusters import LogicalClusters
from hortus.apiserver.clusters.issuing import certificate_for
from hortus.apiserver.keyqueue import KeyQueue
from hortus.apiserver.namespaces import SERVER
from hortus.apiserver.resources.context import OperationContext
from hortus.apiserver.resources.definition import Answerer, ResourceDefinition
from hortus.apiserver.resources.failures import forbidden
from hortus.apiserver.resources.patching import modify
from hortus.apiserver.resources.scope import RequestScope, WriteOptions
from hortus.apiserver.store.backend import Commit, StoreKey
from hortus.kube.errors import BadRequest, NotFound
from hortus.kube.objects import Object, format_time

_RBAC = "rbac.authorization.k8s.io"
_REQUESTS = "certificatesigningrequests"


def with_identities(
    definitions: Sequence[ResourceDefinition],
    authorizer: RbacAuthorizer,
    authentication: Authentication,
    tokens: ServiceAccountTokens,
    requests: TokenRequests,
) -> list[ResourceDefinition]:
    """The definitions, with reviews answered and `serviceaccounts/token` served."""
    answers: dict[tuple[str, str], Answerer] = {
        key: functools.partial(review, authorizer) for key, review in REVIEWS.items()
    }
    answers["authentication.k8s.io", "tokenreviews"] = functools.partial(token_review, authentication, tokens)
    served = []
    for definition in definitions:
        key = (definition.resource.group, definition.resource.plural)
        if key in answers:
            definition = msgspec.structs.replace(definition, answer=answers[key])
        elif key == ("", "serviceaccounts"):
            definition = msgspec.structs.replace(
                definition, subresources={**definition.subresources, "token": requests.handler}
            )
        served.append(definition)
    return served


class CreationGuard:
    """A create by PUT or apply takes permission to create in addition to that to update or patch."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def check_create(self, scope: RequestScope) -> None:
        resource = scope.kind.resource
        asked = Attributes(
            scope.cluster,
            scope.user,
            "create",
            resource.group,
            resource.version,
            resource.plural,
            "",
            scope.namespace,
            scope.name,
        )
        decision = await self._authorizer.authorize(asked)
        if not decision.allowed:
            raise denied(asked, decision.reason)


class EscalationGuard:
    """Admission of roles and bindings: users grant only permissions that they hold."""

    def __init__(self, authorizer: RbacAuthorizer) -> None:
        self._authorizer = authorizer

    async def admit(
        self, scope: RequestScope, operation: str, obj: Object | None, old: Object | None, *, dry_run: bool
    ) -> bool:
        resource = scope.kind.resource
        if resource.group == _RBAC and obj is not None and resource.plural in GUARDED:
            await check_rbac_write(
                self._authorizer,
                resource.plural,
                obj,
                old,
                cluster=scope.cluster,
                user=scope.user,
                named=not scope.unnamed,
            )
        return False


class SigningGuard:
    """Admission of CertificateSigningRequests: permission to approve and to sign, and forbidden subjects."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def admit(
        self, scope: RequestScope, operation: str, obj: Object | None, old: Object | None, *, dry_run: bool
    ) -> bool:
        if obj is None or scope.kind.suffix != f"{GROUP}/{_REQUESTS}":
            return False
        if old is not None:
            why = await refused_decision(
                self._authorizer, scope.subresource, obj, old, cluster=scope.cluster, user=scope.user
            )
        else:
            spec = obj["spec"]
            request = parsed_request(base64.b64decode(spec["request"]))
            why = refused_subject(spec["signerName"], subject_of(request).organizations)
        if why:
            raise forbidden(scope.kind, scope.name, why)
        return False


class RequestSigner:
    """Signs CertificateSigningRequests once they are approved."""

    def __init__(self, ctx: OperationContext, clusters: LogicalClusters) -> None:
        self._ctx = ctx
        self._clusters = clusters
        self.queue: KeyQueue[StoreKey] = KeyQueue("certificate-signer", ctx.clock, self._sign, lambda key: key.cluster)
        ctx.storage.listen(self._changed, f"{GROUP}/{_REQUESTS}")

    async def start(self) -> None:
        await self.queue.start()

    async def stop(self) -> None:
        await self.queue.stop()

    def _changed(self, change: Commit) -> None:
        if change.value is not None and b'"Approved"' in change.value:
            self.queue.add(change.key)

    async def _sign(self, key: StoreKey) -> None:
        cluster = key.cluster
        keys = self._clusters.keys(cluster)
        kind = await self._ctx.registry.find(cluster, GROUP, "v1", _REQUESTS)
        record = await self._ctx.storage.get(key)
        if keys is None or kind is None or record is None:
            return
        now = self._ctx.clock.now()
        try:
            certificate = certificate_for(kind.decode(record.value), keys, now=now)
        except BadRequest as problem:
            await self._write(
                RequestScope(cluster, kind, SERVER, "", key.name[1:], "status"), _failed(problem.message, now)
            )
            return
        if certificate:
            status = {"certificate": certificate}
            await self._write(RequestScope(cluster, kind, SERVER, "", key.name[1:], "status"), status)

    async def _write(self, scope: RequestScope, status: Object) -> None:
        def change(obj: Object) -> Object:
            present = obj.get("status") or {}
            if present.get("certificate") or any(each["type"] == "Failed" for each in present.get("conditions") or ()):
                return obj  # another server on the same store was first
            conditions = [*(present.get("conditions") or ()), *status.get("conditions", ())]
            obj["status"] = {**present, **status, **({"conditions": conditions} if conditions else {})}
            return obj

        try:
            await modify(self._ctx, scope, change, WriteOptions(manager="certificate-signer"))
        except NotFound:
            return


def _failed(message: str, now: float) -> Object:
    time = format_time(now)
    return {
        "conditions": [
            {
                "type": "Failed",
                "status": "True",
                "reason": "SignerValidationFailure",
                "message": message,
                "lastUpdateTime": time,
                "lastTransitionTime": time,
            }
        ]
    }
