"""The parameter objects that a binding names, read from the store."""

from __future__ import annotations

from collections.abc import Sequence

from hortus.apiserver.admission.configurations import Binding, CompiledPolicy
from hortus.apiserver.admission.requests import AdmissionRequest
from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.resources.registry import Registry
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.resources.versions import presented
from hortus.apiserver.store.backend import StoredRecord, StoreKey
from hortus.kube.objects import Object
from hortus.kube.selectors import LabelSelector


class ParamsFailed(Exception):
    """The binding cannot be evaluated; the text is the reason."""


class Params:
    def __init__(self, storage: Storage, registry: Registry) -> None:
        self._storage = storage
        self._registry = registry

    async def of(self, policy: CompiledPolicy, binding: Binding, request: AdmissionRequest) -> list[Object | None]:
        """Yields the objects for which the policy is to be evaluated. Raises ParamsFailed."""
        wanted, reference = policy.param_kind, binding.params
        if wanted is None or reference is None:
            return [None]
        cluster = request.scope.cluster
        await self._registry.load(cluster)
        group, _, version = wanted[0].rpartition("/")
        kind = self._registry.by_kind(cluster, group, version, wanted[1])
        if kind is None:
            where = f"{wanted[0]}, Kind={wanted[1]}"
            raise ParamsFailed(
                f"failed to configure policy: failed to find resource referenced by paramKind: '{where}'"
            )
        namespace = _namespace(kind, reference, request)
        found = await self._found(kind, cluster, namespace, reference)
        if not found and reference.get("parameterNotFoundAction") == "Deny":
            raise _binding_failed("no params found for policy binding with `Deny` parameterNotFoundAction")
        return list(found)

    async def _found(self, kind: Kind, cluster: str, namespace: str, reference: Object) -> list[Object]:
        name, selector = reference.get("name"), LabelSelector.from_object(reference.get("selector"))
        if name:
            record = await self._storage.get(StoreKey(kind.bucket(cluster), f"{namespace}/{name}"))
            return [] if record is None else await _objects(kind, cluster, [record])
        if selector is None:
            raise _binding_failed("one of name or selector must be provided")
        page = await self._storage.list(kind.bucket(cluster), prefix=f"{namespace}/" if namespace else "")
        objects = await _objects(kind, cluster, page.records)
        return [obj for obj in objects if selector.matches(obj["metadata"].get("labels"))]


async def _objects(kind: Kind, cluster: str, records: Sequence[StoredRecord]) -> list[Object]:
    return [kind.decode(record.value) for record in await presented(kind, cluster, records)]


def _namespace(kind: Kind, reference: Object, request: AdmissionRequest) -> str:
    given = str(reference.get("namespace") or "")
    if not kind.resource.namespaced:
        if given:
            raise _binding_failed("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return ""
    namespace = given or request.scope.namespace
    if not namespace:
        raise _binding_failed("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
    return namespace


def _binding_failed(problem: str) -> ParamsFailed:
    return ParamsFailed(f"failed to configure binding: {problem}")
