"""Namespaces: who may create in them, the ones every cluster has, and their end.

A namespace is deleted in two steps (API Concepts; KEP-5080 keeps the order): marked, it takes no new objects; then all
its content is deleted through the ordinary path, so finalizers are honoured; when nothing is left, its own finalizer
`kubernetes` goes and with it the namespace.
"""

from __future__ import annotations

from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.resources.context import Context
from hortus.apiserver.resources.failures import forbidden
from hortus.apiserver.resources.scope import Scope, WriteOptions
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.resources.writing import create
from hortus.apiserver.store.backend import Change, Key
from hortus.kube.errors import NotFound

NAMESPACES = "core/namespaces"
FINALIZER = "kubernetes"
SERVER = UserInfo(username="system:apiserver", groups=("system:masters",))
"""Who the server itself writes as."""
INITIAL = ("default", "kube-node-lease", "kube-public", "kube-system")


class NamespaceStates:
    """Which namespaces take new objects; living ones are remembered until they change."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._living: set[tuple[str, str]] = set()
        storage.listen(self._changed, NAMESPACES)

    async def check(self, scope: Scope) -> None:
        cluster, namespace = scope.cluster, scope.namespace
        if (cluster, namespace) in self._living:
            return
        record = await self._storage.get(Key(f"{cluster}/{NAMESPACES}", f"/{namespace}"))
        if record is None:
            raise NotFound(f'namespaces "{namespace}" not found', details={"name": namespace, "kind": "namespaces"})
        if b'"deletionTimestamp"' in record.value:
            raise _terminating(scope)
        self._living.add((cluster, namespace))

    def forget(self, cluster: str) -> None:
        self._living = {key for key in self._living if key[0] != cluster}

    def _changed(self, change: Change) -> None:
        key = change.key
        self._living.discard((key.bucket.partition("/")[0], key.name[1:]))


async def make_initial_namespaces(ctx: Context, cluster: str) -> None:
    """Create default, kube-system, kube-public and kube-node-lease where they are missing."""
    kind = await ctx.registry.find(cluster, "", "v1", "namespaces")
    if kind is None:
        return
    for name in INITIAL:
        scope = Scope(cluster, kind, SERVER, "", name)
        if await ctx.storage.get(scope.key) is None:
            obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await create(ctx, scope, obj, WriteOptions(manager="hortus-apiserver"))


def _terminating(scope: Scope) -> Exception:
    message = f"unable to create new content in namespace {scope.namespace} because it is being terminated"
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {scope.namespace} is being terminated",
        "field": "metadata.namespace",
    }
    return forbidden(scope.kind, scope.name, message, causes=[cause])
