"""Matching of requests with webhooks and policies: rules, scopes, selectors.

Rules are compared first because they cost nothing; the labels of a namespace are read from the store only when a rule
matched and there is a selector. Under matchPolicy `Equivalent` a rule for another version of the same resource matches
too, and the webhook or policy gets the object in that version.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from hortus.apiserver.admission.requests import AdmissionRequest, is_namespace, shown
from hortus.apiserver.resources.failures import not_found
from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.resources.registry import Registry
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.store.backend import StoreKey
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object
from hortus.kube.selectors import LabelSelector

_EXEMPT = "admissionregistration.k8s.io"
"""The group whose objects no webhook or policy may block: otherwise a bad configuration could not be removed."""


class MatchRule(NamedTuple):
    """A RuleWithOperations, or a NamedRuleWithOperations when it names resources."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: frozenset[str]
    scope: str
    names: frozenset[str]

    def matches(self, request: AdmissionRequest, kind: Kind) -> bool:
        resource = kind.resource
        if not (_holds(self.operations, request.operation) and _holds(self.groups, resource.group)):
            return False
        if not (_holds(self.versions, resource.version) and self._resource_matches(request)):
            return False
        if self.names and request.scope.name not in self.names:
            return False
        # A Namespace is cluster-scoped although its requests carry a namespace.
        return self.scope == "*" or (self.scope == "Namespaced") == resource.namespaced

    def _resource_matches(self, request: AdmissionRequest) -> bool:
        plural, sub = request.scope.kind.resource.plural, request.scope.subresource
        wanted = self.resources
        if "*/*" in wanted or request.qualified in wanted or f"{plural}/*" in wanted:
            return True
        return f"*/{sub}" in wanted if sub else "*" in wanted


def _holds(wanted: frozenset[str], value: str) -> bool:
    return "*" in wanted or value in wanted


def rules_of(given: Sequence[Object] | None) -> tuple[MatchRule, ...]:
    """Reads the API's form."""
    return tuple(
        MatchRule(
            frozenset(rule.get("operations") or ()),
            frozenset(rule.get("apiGroups") or ()),
            frozenset(rule.get("apiVersions") or ()),
            frozenset(rule.get("resources") or ()),
            rule.get("scope") or "*",
            frozenset(rule.get("resourceNames") or ()),
        )
        for rule in given or ()
    )


_ANY = frozenset({"*"})
_EVERYTHING = MatchRule(_ANY, _ANY, _ANY, frozenset({"*/*"}), "*", frozenset())
"""The rule of a MatchResources without rules."""


class Criteria(NamedTuple):
    """Rules and selectors of one webhook, policy or binding."""

    rules: tuple[MatchRule, ...]
    excluded: tuple[MatchRule, ...]
    equivalent: bool
    namespaces: LabelSelector
    objects: LabelSelector


def criteria_of(given: Object, rules: str = "rules") -> Criteria:
    """Reads a webhook (`rules`) or MatchResources (`resourceRules`, `excludeResourceRules`)."""
    return Criteria(
        rules_of(given.get(rules)) or (() if rules == "rules" else (_EVERYTHING,)),
        rules_of(given.get("excludeResourceRules")),
        given.get("matchPolicy", "Equivalent") == "Equivalent",
        LabelSelector.from_object(given.get("namespaceSelector")) or LabelSelector(),
        LabelSelector.from_object(given.get("objectSelector")) or LabelSelector(),
    )


def may_be_judged(request: AdmissionRequest) -> bool:
    return request.scope.kind.resource.group != _EXEMPT


class Matcher:
    def __init__(self, storage: Storage, registry: Registry) -> None:
        self._storage = storage
        self._registry = registry

    async def matched(self, criteria: Criteria, request: AdmissionRequest) -> Kind | None:
        """The kind in which the webhook or policy wants the object; None when it does not match.

        Raises NotFound when the namespace that a selector needs does not exist.
        """
        kind = self._kind(criteria, request)
        if kind is None or not _object_matches(criteria.objects, request):
            return None
        if criteria.namespaces and not await self._namespace_matches(criteria.namespaces, request):
            return None
        return kind

    def _kind(self, criteria: Criteria, request: AdmissionRequest) -> Kind | None:
        own = request.scope.kind
        candidates = [own]
        if criteria.equivalent:
            candidates += self._other_versions(request)
        if any(rule.matches(request, kind) for rule in criteria.excluded for kind in candidates):
            return None
        if not criteria.rules:
            return None
        return next((kind for kind in candidates if any(rule.matches(request, kind) for rule in criteria.rules)), None)

    def _other_versions(self, request: AdmissionRequest) -> list[Kind]:
        own = request.scope.kind
        return [
            kind
            for kind in self._registry.kinds(request.scope.cluster)
            if kind.suffix == own.suffix and kind is not own
        ]

    async def _namespace_matches(self, selector: LabelSelector, request: AdmissionRequest) -> bool:
        scope = request.scope
        if is_namespace(scope.kind):
            return selector.matches(_labels(request.obj if request.obj is not None else request.old))
        if not scope.namespace:
            return True
        found = await self.namespace(request)
        return selector.matches(_labels(found))

    async def namespace(self, request: AdmissionRequest) -> Object | None:
        """The Namespace object that a request is in. Raises NotFound."""
        scope = request.scope
        if is_namespace(scope.kind) or not scope.namespace:
            return None
        record = await self._storage.get(StoreKey(f"{scope.cluster}/core/namespaces", f"/{scope.namespace}"))
        if record is None:
            kind = self._registry.known(scope.cluster, ("", "v1", "namespaces"))
            raise not_found(kind, scope.namespace) if kind is not None else NotFound("namespaces are not served")
        found: Object = orjson.loads(record.value)
        return found


def _object_matches(selector: LabelSelector, request: AdmissionRequest) -> bool:
    if not selector:
        return True
    sides = [shown(request.scope, side) for side in (request.obj, request.old)]
    return any(selector.matches(_labels(side)) for side in sides if side is not None)


def _labels(obj: Any) -> dict[str, str]:
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels if isinstance(labels, dict) else {}
