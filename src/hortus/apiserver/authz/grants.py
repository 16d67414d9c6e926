"""The permissions of one user in one logical cluster: the bindings that name the user, with a cache of verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from hortus.apiserver.authz.attributes import Attributes, AuthorizationDecision
from hortus.apiserver.authz.rules import PolicyRule, ResourceRequest, matches_name, matches_resource, rule_allows

VERDICT_LIMIT = 1024
"""Verdicts kept per user and cluster; forgotten all at once when a scanner fills them."""


class RoleGrant(NamedTuple):
    """Rules that a binding gives. `reason` is the sentence with which the API server explains an allowed request."""

    rules: tuple[PolicyRule, ...]
    reason: str


class RoleGrants:
    """Cluster-wide grants and those per namespace, for one (user, groups)."""

    __slots__ = ("_problems", "_verdicts", "everywhere", "in_namespace")

    def __init__(
        self,
        everywhere: Sequence[RoleGrant],
        in_namespace: Mapping[str, Sequence[RoleGrant]],
        problems: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """`problems` lists the missing roles by namespace (empty: everywhere)."""
        self.everywhere = everywhere
        self.in_namespace = in_namespace
        self._problems = problems or {}
        self._verdicts: dict[tuple[str, ...], tuple[tuple[PolicyRule, AuthorizationDecision], ...]] = {}

    def decide(self, asked: Attributes) -> AuthorizationDecision:
        if asked.path:
            return self._decide_path(asked)
        key = (asked.verb, asked.group, asked.resource, asked.subresource, asked.namespace)
        found = self._verdicts.get(key)
        if found is None:
            found = self._candidates(ResourceRequest(*key[:4]), asked.namespace)
            if len(self._verdicts) >= VERDICT_LIMIT:
                self._verdicts.clear()
            self._verdicts[key] = found
        for rule, decision in found:
            if matches_name(rule, asked.name):
                return decision
        return self._denied(asked.namespace) if self._problems else DENIED

    def problems(self, namespace: str) -> list[str]:
        """The roles for requests in `namespace` that are bound to the user but do not exist."""
        nearby = self._problems.get(namespace, ()) if namespace else ()
        return [*self._problems.get("", ()), *nearby]

    def rules(self, namespace: str) -> Iterator[PolicyRule]:
        """Every rule that holds in `namespace` (empty: those that hold everywhere)."""
        for rules in {id(grant.rules): grant.rules for grant in self._grants(namespace)}.values():
            yield from rules

    def _grants(self, namespace: str) -> Iterator[RoleGrant]:
        yield from self.everywhere
        if namespace:
            yield from self.in_namespace.get(namespace, ())

    def _candidates(
        self, request: ResourceRequest, namespace: str
    ) -> tuple[tuple[PolicyRule, AuthorizationDecision], ...]:
        """The rules that cover the request for some name, up to the first that does for every name."""
        found = []
        for grant in self._grants(namespace):
            for rule in grant.rules:
                if matches_resource(rule, request):
                    found.append((rule, AuthorizationDecision(True, grant.reason)))
                    if not rule.resource_names:
                        return tuple(found)
        return tuple(found)

    def _decide_path(self, asked: Attributes) -> AuthorizationDecision:
        for grant in self.everywhere:
            for rule in grant.rules:
                if rule_allows(rule, asked):
                    return AuthorizationDecision(True, grant.reason)
        return self._denied("")

    def _denied(self, namespace: str) -> AuthorizationDecision:
        found = self.problems(namespace)
        if not found:
            return DENIED
        return AuthorizationDecision(False, "RBAC: " + (found[0] if len(found) == 1 else f"[{', '.join(found)}]"))


DENIED = AuthorizationDecision(False, "")
