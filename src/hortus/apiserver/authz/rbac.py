"""RBAC over the objects in the store: who may do what in which logical cluster.

A cluster's index is compiled at its first request and dropped when one of its RBAC objects is written (`changed`);
clusters share what they were born with, and cost what they have of their own. Verdicts are remembered per user, so
a decision on a warm path costs about a microsecond and no I/O.
"""

from __future__ import annotations

from collections.abc import Sequence

from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.authz.attributes import Attributes, AuthorizationDecision
from hortus.apiserver.authz.grants import RoleGrants
from hortus.apiserver.authz.index import BindingIndex, RbacObjects, decode
from hortus.apiserver.authz.policy import API_GROUP
from hortus.apiserver.store.backend import Backend, Commit, StoredRecord
from hortus.apiserver.store.overlay import BORN_REVISION

MASTERS = "system:masters"
"""The group that no rule can stop."""

_PLURALS = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
_ALLOWED = AuthorizationDecision(True, "")


class RbacAuthorizer:
    """The Authorizer of the API server, and a listener of its store."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._indexes: dict[str, BindingIndex] = {}
        self._building: dict[str, object] = {}
        self._pristine: dict[tuple[tuple[str, ...], ...], BindingIndex] = {}
        """By the names of born objects of each kind: what they say is the same in all clusters, but for their uids."""

    async def authorize(self, attributes: Attributes) -> AuthorizationDecision:
        if MASTERS in attributes.user.groups:
            return _ALLOWED
        index = self._indexes.get(attributes.cluster) or await self.index(attributes.cluster)
        decision = index.grants(attributes.user).decide(attributes)
        if not decision.allowed:
            await self._backend.sync()  # a grant may have been made a moment ago, through another server
            if self._indexes.get(attributes.cluster) is not index:
                return (await self.index(attributes.cluster)).grants(attributes.user).decide(attributes)
        return decision

    async def grants(self, cluster: str, user: UserInfo) -> RoleGrants:
        return (await self.index(cluster)).grants(user)

    async def index(self, cluster: str) -> BindingIndex:
        """The compiled RBAC objects of a cluster as they are now."""
        found = self._indexes.get(cluster)
        while found is None:
            token = self._building[cluster] = object()
            pages = [
                (await self._backend.list(f"{cluster}/{API_GROUP}/{plural}", fresh=False)).records
                for plural in _PLURALS
            ]
            if self._building.get(cluster) is not token:
                # A role was written while we read, or another request of the cluster reads too: the last one counts.
                found = self._indexes.get(cluster)
                continue
            del self._building[cluster]
            found = self._indexes[cluster] = self._compiled(pages)
        return found

    def changed(self, change: Commit) -> None:
        """Follow a write of any object; those of RBAC kinds make the next request compile its cluster again."""
        cluster, _, rest = change.key.bucket.partition("/")
        if rest.startswith(f"{API_GROUP}/"):
            self.forget(cluster)

    def forget(self, cluster: str) -> None:
        """Drop what is compiled of a cluster, as when it is retired."""
        self._indexes.pop(cluster, None)
        self._building.pop(cluster, None)

    def _compiled(self, pages: Sequence[Sequence[StoredRecord]]) -> BindingIndex:
        born = [[record for record in records if record.revision == BORN_REVISION] for records in pages]
        own = [[record for record in records if record.revision != BORN_REVISION] for records in pages]
        # The default policy alone: the same rules, so the same index (some defaults may be deleted).
        key = tuple(tuple(record.name for record in records) for records in born)
        base = self._pristine.get(key)
        if base is None:
            base = self._pristine[key] = _compile(born)
        if not any(own):
            return base
        objects = _decoded(own)
        return BindingIndex(objects, base=base) if base.extends(objects) else _compile(pages)


def _compile(pages: Sequence[Sequence[StoredRecord]]) -> BindingIndex:
    return BindingIndex(_decoded(pages))


def _decoded(pages: Sequence[Sequence[StoredRecord]]) -> RbacObjects:
    return RbacObjects(*(decode(record.value for record in records) for records in pages))
