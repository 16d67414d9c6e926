"""Stands in the way of every write of an RBAC object that would grant more than its writer holds."""

from __future__ import annotations

from typing import Protocol

from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.authz.escalation import GUARDED, check_rbac_write
from hortus.apiserver.authz.policy import API_GROUP
from hortus.apiserver.authz.rbac import RbacAuthorizer
from hortus.kube.objects import Object, Resource


class KindView(Protocol):
    @property
    def resource(self) -> Resource: ...


class ScopeView(Protocol):
    """What admission here reads of a request."""

    @property
    def cluster(self) -> str: ...

    @property
    def kind(self) -> KindView: ...

    @property
    def user(self) -> UserInfo: ...

    @property
    def subresource(self) -> str: ...


class RbacGuard:
    """An Admission. The server's own writes come as system:masters and pass."""

    def __init__(self, authorizer: RbacAuthorizer) -> None:
        self._authorizer = authorizer

    async def admit(
        self, scope: ScopeView, operation: str, obj: Object | None, old: Object | None, *, dry_run: bool
    ) -> bool:
        """Raises Forbidden or NotFound; never changes the object."""
        resource = scope.kind.resource
        if obj is not None and resource.group == API_GROUP and resource.plural in GUARDED:
            await check_rbac_write(self._authorizer, resource.plural, obj, old, cluster=scope.cluster, user=scope.user)
        return False
