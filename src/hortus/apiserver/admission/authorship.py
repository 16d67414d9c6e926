"""Authors of admission policies read no objects through them that they may not read themselves.

A policy is evaluated with parameters that the server reads, and its messages may repeat them. So the author of a
policy needs `get` on all objects of its paramKind, that of a binding `get` on the object it names, or `list` where it
selects. Rules and texts are kube-apiserver's (k8s.io/kubernetes, pkg/registry/admissionregistration, authz.go).
"""

from __future__ import annotations

from typing import NamedTuple

import orjson

from hortus.apiserver.admission.configurations import GROUP
from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.authz import MASTERS, Attributes, Authorizer
from hortus.apiserver.resources.failures import forbidden_field, invalid
from hortus.apiserver.resources.registry import Registry
from hortus.apiserver.resources.scope import RequestScope
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.store.backend import StoreKey
from hortus.kube.objects import Object

_POLICIES, _BINDINGS = "validatingadmissionpolicies", "validatingadmissionpolicybindings"


class _Place(NamedTuple):
    """A paramKind as far as it is known; `*` means all, which requires permission for all."""

    group: str = "*"
    version: str = "*"
    resource: str = "*"


class AuthorGuard:
    """An Admission of ValidatingAdmissionPolicies and their bindings."""

    def __init__(self, storage: Storage, registry: Registry, authorizer: Authorizer) -> None:
        self._storage = storage
        self._registry = registry
        self._authorizer = authorizer

    async def admit(
        self, scope: RequestScope, operation: str, obj: Object | None, old: Object | None, *, dry_run: bool
    ) -> bool:
        """Raises Invalid; never changes the object."""
        resource = scope.kind.resource
        if obj is None or resource.group != GROUP or scope.subresource or MASTERS in scope.user.groups:
            return False
        if resource.plural == _POLICIES:
            field, why = "spec.paramKind", await self._policy_problem(scope, obj["spec"], (old or {}).get("spec") or {})
        elif resource.plural == _BINDINGS:
            field, why = "spec.paramRef", await self._binding_problem(scope, obj["spec"])
        else:
            return False
        if why:
            raise invalid(scope.kind, scope.name, [forbidden_field(field, why)])
        return False

    async def _policy_problem(self, scope: RequestScope, spec: Object, old: Object) -> str:
        kind = spec.get("paramKind")
        if not kind or old.get("paramKind") == kind:
            return ""
        place = await self._place(scope.cluster, kind)
        if await self._allowed(scope, "get", place, namespace="*", name="*"):
            return ""
        return (
            f'user {_shown(scope.user)} must have "get" permission on all objects of the referenced paramKind '
            f"(kind={kind.get('kind', '')}, apiVersion={kind.get('apiVersion', '')})"
        )

    async def _binding_problem(self, scope: RequestScope, spec: Object) -> str:
        """Checked with each write, because the policy's paramKind may have changed."""
        reference, name = spec.get("paramRef"), spec["policyName"]
        if not reference:
            return ""
        record = await self._storage.get(StoreKey(f"{scope.cluster}/{GROUP}/{_POLICIES}", f"/{name}"))
        kind = None if record is None else orjson.loads(record.value)["spec"].get("paramKind")
        place = await self._place(scope.cluster, kind) if kind else _Place()
        verb = "get" if reference.get("name") else "list"
        namespace, wanted = reference.get("namespace") or "", reference.get("name") or ""
        if await self._allowed(scope, verb, place, namespace=namespace, name=wanted):
            return ""
        lacks = f'user {_shown(scope.user)} does not have "{verb}" permission'
        everything = f"to determine minimum required permissions and {lacks} for all groups, versions and resources"
        if record is None:
            return f"unable to get policy {name} {everything}"
        if kind and place.resource == "*":
            shown = f"&{{{kind.get('apiVersion', '')} {kind.get('kind', '')}}}"
            return f"unable to resolve paramKind {shown} {everything}"
        return f"{lacks} on the object referenced by paramRef"

    async def _place(self, cluster: str, kind: Object) -> _Place:
        group, _, version = str(kind.get("apiVersion") or "").rpartition("/")
        await self._registry.load(cluster)
        found = self._registry.by_kind(cluster, group, version, str(kind.get("kind") or ""))
        return _Place(group, version, found.resource.plural if found is not None else "*")

    async def _allowed(self, scope: RequestScope, verb: str, place: _Place, *, namespace: str, name: str) -> bool:
        asked = Attributes(scope.cluster, scope.user, verb, *place, "", namespace, name)
        return (await self._authorizer.authorize(asked)).allowed


def _shown(user: UserInfo) -> str:
    """The user as Go prints one."""
    extra = " ".join(f"{key}:[{' '.join(values)}]" for key, values in sorted(user.extra.items()))
    return f"&{{{user.username} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"
