"""The webhooks and policies of one write, in the order of kube-apiserver."""

from __future__ import annotations

from hortus.apiserver.admission.calling import WebhookClient
from hortus.apiserver.admission.configurations import Configurations, Judges
from hortus.apiserver.admission.expressions import Asking, RequestVariables, TimeBudget
from hortus.apiserver.admission.matching import Matcher, may_be_judged
from hortus.apiserver.admission.policies import Policies
from hortus.apiserver.admission.requests import AdmissionRequest, namespace_of, request_object, shown
from hortus.apiserver.admission.webhooks import Webhooks
from hortus.apiserver.authz import Authorizer
from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.resources.registry import Registry
from hortus.apiserver.resources.scope import DeleteOptions, RequestScope, WriteOptions
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.turns import Turns
from hortus.kube.errors import InternalError
from hortus.kube.objects import Object


class DynamicAdmission:
    """The entry point of writes: `begin` returns the review of a write, None when no webhook or policy applies."""

    def __init__(
        self, storage: Storage, registry: Registry, authorizer: Authorizer, client: WebhookClient, turns: Turns
    ) -> None:
        """Expressions take `turns` of the loop."""
        self._authorizer = authorizer
        self._configurations = Configurations(storage)
        matcher = Matcher(storage, registry)
        self.webhooks = Webhooks(client, matcher, self._environment)
        self.policies = Policies(storage, registry, matcher, self._environment, turns)

    def forget(self, cluster: str) -> None:
        """Drops the configurations of a removed cluster."""
        self._configurations.forget(cluster)

    def awake(self, cluster: str) -> bool:
        """Reports whether writes in the cluster may need a review; True until the configurations are read."""
        judges = self._configurations.known(cluster)
        return judges is None or any(judges)

    async def begin(self, scope: RequestScope, operation: str, options: WriteOptions | DeleteOptions) -> Review | None:
        judges = self._configurations.known(scope.cluster) or await self._configurations.of(scope.cluster)
        if not any(judges):
            return None
        request = AdmissionRequest(scope, operation, options, None, None)
        if judges.unreadable and may_be_judged(request):
            raise InternalError(
                f"{judges.unreadable[0]} cannot be read, so nobody knows what it refuses: replace or delete it"
            )
        return Review(self, judges, request) if may_be_judged(request) else None

    def _environment(self, request: AdmissionRequest, kind: Kind) -> RequestVariables:
        scope = request.scope
        asked = {
            "@authorizer": "user",
            "group": scope.kind.resource.group,
            "resource": scope.kind.resource.plural,
            "subresource": scope.subresource,
            "namespace": namespace_of(scope),
            "name": scope.name,
        }
        values = {
            "object": shown(scope, request.obj),
            "oldObject": shown(scope, request.old),
            "request": request_object(request, kind),
            "authorizer": {"@authorizer": "user", "requestResource": asked},
        }
        return RequestVariables(values, Asking(self._authorizer, scope.cluster, scope.user), TimeBudget())


class Review:
    """The review of one write."""

    def __init__(self, admission: DynamicAdmission, judges: Judges, request: AdmissionRequest) -> None:
        self._admission = admission
        self._judges = judges
        self._request = request

    async def mutate(self, obj: Object | None, old: Object | None) -> bool:
        """Reports whether a webhook changed `obj`, in place. Raises an ApiError to refuse."""
        hooks = self._judges.mutating
        return bool(hooks) and await self._admission.webhooks.mutate(hooks, self._request._replace(obj=obj, old=old))

    async def validate(self, obj: Object | None, old: Object | None) -> None:
        """Raises an ApiError to refuse."""
        request = self._request._replace(obj=obj, old=old)
        if self._judges.policies:
            await self._admission.policies.validate(self._judges.policies, request)
        if self._judges.validating:
            await self._admission.webhooks.validate(self._judges.validating, request)
