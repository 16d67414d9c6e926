"""RBAC rules and the requests that they cover (Kubernetes docs, "Using RBAC Authorization").

Rules are compiled from decoded JSON into frozen structs whose matching is set look-ups; roles are shared by reference,
so five thousand clusters with the default roles hold them once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from hortus.apiserver.authz.attributes import Attributes
from hortus.kube.errors import Forbidden
from hortus.kube.objects import Object
from hortus.kube.permissions import Atom
from hortus.schema.quoting import quote

ALL = "*"


class PolicyRule(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """rbac.authorization.k8s.io/v1 PolicyRule."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = msgspec.field(default=(), name="apiGroups")
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")

    def __str__(self) -> str:
        """The rule as the API server writes it into its messages."""
        parts = [
            ("APIGroups", self.api_groups),
            ("Resources", self.resources),
            ("NonResourceURLs", self.non_resource_urls),
            ("ResourceNames", self.resource_names),
            ("Verbs", self.verbs),
        ]
        return "{" + ", ".join(f"{name}:{quoted(values)}" for name, values in parts if values) + "}"

    def to_json(self) -> Object:
        decoded: Object = msgspec.json.decode(msgspec.json.encode(self))
        return decoded


def quoted(values: Iterable[str]) -> str:
    """A list of strings as Go's %q prints it: `["a" "b"]`."""
    return "[" + " ".join(quote(value) for value in values) + "]"


def rules_of(role: Object) -> tuple[PolicyRule, ...]:
    """The rules of a Role or ClusterRole; malformed ones grant nothing."""
    try:
        return msgspec.convert(role.get("rules") or (), tuple[PolicyRule, ...])
    except msgspec.ValidationError:
        return ()


class ResourceRequest(NamedTuple):
    """The part of a resource request that rules look at; also the key under which verdicts are kept."""

    verb: str
    group: str
    resource: str
    subresource: str


def matches_verb(rule: PolicyRule, verb: str) -> bool:
    return ALL in rule.verbs or verb in rule.verbs


def matches_resource(rule: PolicyRule, request: ResourceRequest) -> bool:
    """Reports whether the rule covers the request for some name: `pods`, `pods/log`, `*/scale`, `*`."""
    if not matches_verb(rule, request.verb) or not (ALL in rule.api_groups or request.group in rule.api_groups):
        return False
    if ALL in rule.resources:
        return True
    if not request.subresource:
        return request.resource in rule.resources
    whole, any_of = f"{request.resource}/{request.subresource}", f"*/{request.subresource}"
    return whole in rule.resources or any_of in rule.resources


def matches_name(rule: PolicyRule, name: str) -> bool:
    return not rule.resource_names or name in rule.resource_names


def matches_path(rule: PolicyRule, path: str) -> bool:
    return any(
        pattern in (ALL, path) or (pattern.endswith(ALL) and path.startswith(pattern.rstrip(ALL)))
        for pattern in rule.non_resource_urls
    )


def rule_allows(rule: PolicyRule, asked: Attributes) -> bool:
    if asked.path:
        return matches_verb(rule, asked.verb) and matches_path(rule, asked.path)
    request = ResourceRequest(asked.verb, asked.group, asked.resource, asked.subresource)
    return matches_resource(rule, request) and matches_name(rule, asked.name)


def compact(permissions: Iterable[Atom]) -> list[PolicyRule]:
    """Rules of one group, one resource and at most one name with all their verbs, or of one verb and one path; in the
    order of their text."""
    merged: dict[Atom, list[str]] = {}
    for permission in permissions:
        key = permission if permission.path is not None else permission._replace(verb="")
        merged.setdefault(key, []).append(permission.verb)
    return sorted((_rule(key, verbs) for key, verbs in merged.items()), key=str)


def _rule(permission: Atom, verbs: list[str]) -> PolicyRule:
    if permission.path is not None:
        return PolicyRule(verbs=(permission.verb,), non_resource_urls=(permission.path,))
    names = () if permission.name is None else (permission.name,)
    return PolicyRule(tuple(verbs), (permission.group,), (permission.resource,), names)


def denied(asked: Attributes, reason: str = "") -> Forbidden:
    """The error for a request that authorization refused; `reason` is the authorizer's, where it gives one."""
    sentence = _sentence(asked) + (f": {reason}" if reason else "")
    if asked.path:
        return Forbidden(f"forbidden: {sentence}", details={})
    about = f"{_qualified(asked)} {quote(asked.name)} is" if asked.name else f"{_qualified(asked)} is"
    details: dict[str, str] = {"name": asked.name, "group": asked.group, "kind": asked.resource}
    return Forbidden(f"{about} forbidden: {sentence}", details={key: value for key, value in details.items() if value})


def _qualified(asked: Attributes) -> str:
    return f"{asked.resource}.{asked.group}" if asked.group else asked.resource


def _sentence(asked: Attributes) -> str:
    who = f"User {quote(asked.user.username)} cannot {asked.verb}"
    if asked.path:
        return f"{who} path {quote(asked.path)}"
    resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    where = f"in the namespace {quote(asked.namespace)}" if asked.namespace else "at the cluster scope"
    return f"{who} resource {quote(resource)} in API group {quote(asked.group)} {where}"
