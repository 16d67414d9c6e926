"""The RBAC objects of one logical cluster, compiled: subjects to grants."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.authn.service_accounts import username_of
from hortus.apiserver.authz.aggregation import aggregated_rules, picked_by
from hortus.apiserver.authz.grants import RoleGrant, RoleGrants
from hortus.apiserver.authz.policy import API_GROUP
from hortus.apiserver.authz.rules import PolicyRule, rules_of
from hortus.kube.objects import Object

_log = logging.getLogger("hortus.apiserver.authz")

USER_LIMIT = 2048
"""Users whose grants are kept per cluster."""


class RbacObjects(NamedTuple):
    """Decoded objects of the four kinds."""

    cluster_roles: list[Object]
    cluster_role_bindings: list[Object]
    roles: list[Object]
    role_bindings: list[Object]


class _Subject(NamedTuple):
    kind: str
    name: str


class _Bound(NamedTuple):
    namespace: str
    """The namespace of the grant; empty: everywhere."""
    grant: RoleGrant


class BindingIndex:
    """Immutable but for its memory of users; thrown away when an RBAC object changes.

    With a `base`, its roles and bindings hold too. So a cluster that adds objects to the default policy costs its own,
    and not another copy of the policy (about 250 kB). `extends` reports whether objects can stand next to a base.
    """

    def __init__(self, objects: RbacObjects, *, base: BindingIndex | None = None) -> None:
        self._base = base
        self.cluster_roles = _cluster_rules(objects.cluster_roles)
        self.roles = {_place(role): rules_of(role) for role in objects.roles}
        if base is not None:
            own = self.cluster_roles
            self.cluster_roles = {**base.cluster_roles, **own} if own else base.cluster_roles
            self.roles = {**base.roles, **self.roles} if self.roles else base.roles
        self._aggregates = [role for role in objects.cluster_roles if role.get("aggregationRule")]
        self._bound: dict[_Subject, list[_Bound]] = {}
        self._missing: dict[_Subject, list[tuple[str, str]]] = {}
        self._users: dict[tuple[str, tuple[str, ...]], RoleGrants] = {}
        for binding in objects.cluster_role_bindings:
            self._bind(binding, "")
        for binding in objects.role_bindings:
            self._bind(binding, binding["metadata"].get("namespace", ""))

    def extends(self, objects: RbacObjects) -> bool:
        """Reports whether these objects change nothing of this index: then they may be compiled on top of it.

        A role may replace one, be one that a binding lacks, or be part of an aggregate.
        """
        if self._missing and (objects.cluster_roles or objects.roles):
            return False
        if any(_place(role) in self.roles for role in objects.roles):
            return False
        return not any(
            role["metadata"]["name"] in self.cluster_roles
            or role.get("aggregationRule")
            or any(aggregated_rules(aggregate, (role,)) for aggregate in self._aggregates)
            for role in objects.cluster_roles
        )

    def grants(self, user: UserInfo) -> RoleGrants:
        """The grants of the user by name and by groups."""
        key = (user.username, user.groups)
        found = self._users.get(key)
        if found is None:
            if len(self._users) >= USER_LIMIT:
                self._users.clear()
            found = self._users[key] = self._collect(user)
        return found

    def rules(self, kind: str, namespace: str, name: str) -> tuple[PolicyRule, ...] | None:
        """The rules of a role that a roleRef names; None when there is none."""
        return self.cluster_roles.get(name) if kind == "ClusterRole" else self.roles.get((namespace, name))

    def _collect(self, user: UserInfo) -> RoleGrants:
        subjects = [_Subject("User", user.username), *(_Subject("Group", group) for group in user.groups)]
        everywhere: list[RoleGrant] = []
        in_namespace: dict[str, list[RoleGrant]] = {}
        for subject in subjects:
            for namespace, grant in self._grants_of(subject):
                (in_namespace.setdefault(namespace, []) if namespace else everywhere).append(grant)
        problems: dict[str, list[str]] = {}
        for subject in subjects:
            for namespace, problem in self._problems_of(subject):
                problems.setdefault(namespace, []).append(problem)
        return RoleGrants(everywhere, in_namespace, problems)

    def _grants_of(self, subject: _Subject) -> Iterable[_Bound]:
        own = self._bound.get(subject, ())
        return [*self._base._grants_of(subject), *own] if self._base else own

    def _problems_of(self, subject: _Subject) -> Iterable[tuple[str, str]]:
        own = self._missing.get(subject, ())
        return [*self._base._problems_of(subject), *own] if self._base else own

    def _bind(self, binding: Object, namespace: str) -> None:
        reference = binding.get("roleRef") or {}
        kind, name = reference.get("kind", ""), reference.get("name", "")
        rules = self.rules(kind, namespace, name) if namespace or kind == "ClusterRole" else None
        for subject in binding.get("subjects") or ():
            held_by = _holder(subject, namespace)
            if held_by is None:
                continue
            if rules is None:
                problem = f'{kind.lower()}.{API_GROUP} "{name}" not found'
                self._missing.setdefault(held_by, []).append((namespace, problem))
            else:
                grant = RoleGrant(rules, _reason(binding, namespace, kind, name, subject))
                self._bound.setdefault(held_by, []).append(_Bound(namespace, grant))


def _cluster_rules(roles: Iterable[Object]) -> dict[str, tuple[PolicyRule, ...]]:
    found = {role["metadata"]["name"]: role for role in roles}
    rules = {name: rules_of(role) for name, role in found.items()}
    parts = {
        name: [part["metadata"]["name"] for part in picked_by(role, found.values())]
        for name, role in found.items()
        if role.get("aggregationRule")
    }
    # One round suffices for aggregates of aggregates in this order; those in a circle take a few, never more than there
    # are.
    order = _parts_first(parts)
    for _ in order:
        changed = False
        for name in order:
            gathered = tuple(dict.fromkeys(rule for part in parts[name] for rule in rules[part]))
            changed |= gathered != rules[name]
            rules[name] = gathered
        if not changed:
            break
    return rules


def _parts_first(parts: Mapping[str, Sequence[str]]) -> list[str]:
    """The names, each behind those of its parts, as far as there is no circle."""
    order: dict[str, None] = {}
    seen: set[str] = set()
    for name in parts:
        waiting = [(name, iter(parts[name]))] if name not in seen else []
        seen.add(name)
        while waiting:
            last, rest = waiting[-1]
            following = next((part for part in rest if part in parts and part not in seen), None)
            if following is None:
                order[last] = None
                waiting.pop()
            else:
                seen.add(following)
                waiting.append((following, iter(parts[following])))
    return list(order)


def _place(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _holder(subject: Object, namespace: str) -> _Subject | None:
    kind, name = subject.get("kind"), subject.get("name", "")
    if kind == "ServiceAccount":
        home = subject.get("namespace") or namespace
        return _Subject("User", username_of(home, name)) if home else None
    return _Subject(kind, name) if kind in ("User", "Group") else None


def _reason(binding: Object, namespace: str, kind: str, name: str, subject: Object) -> str:
    bound = binding["metadata"]["name"]
    by = f'RoleBinding "{bound}/{namespace}"' if namespace else f'ClusterRoleBinding "{bound}"'
    to = f'{subject["kind"]} "{subject["name"]}'
    if subject["kind"] == "ServiceAccount":
        to += f"/{subject.get('namespace') or namespace}"
    return f'RBAC: allowed by {by} of {kind} "{name}" to {to}"'


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = ""
    labels: dict[str, str] | None = None


class _Requirement(msgspec.Struct):
    values: list[str] | None = None


class _Selector(msgspec.Struct):
    matchLabels: dict[str, str] | None = None
    matchExpressions: list[_Requirement] | None = None


class _Aggregation(msgspec.Struct):
    clusterRoleSelectors: list[_Selector] | None = None


class _Reference(msgspec.Struct):
    name: str
    kind: str = ""
    namespace: str | None = None


class _Expected(msgspec.Struct):
    """The parts of an RBAC object that the index reads, besides its rules, which `rules_of` checks."""

    metadata: _Metadata
    aggregationRule: _Aggregation | None = None
    roleRef: _Reference | None = None
    subjects: list[_Reference] | None = None


_EXPECTED = msgspec.json.Decoder(_Expected)


def decode(values: Iterable[bytes]) -> list[Object]:
    """The objects that can be understood; the others are logged and grant nothing."""
    found = []
    for value in values:
        try:
            _EXPECTED.decode(value)
        except msgspec.MsgspecError as error:
            _log.error("an RBAC object is not understood and grants nothing", extra={"error": str(error)})
            continue
        found.append(msgspec.json.decode(value, type=dict))
    return found
