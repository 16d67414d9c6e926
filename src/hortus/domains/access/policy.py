"""The operator's limits: the most that a request may ask for.

Each way to further permissions is a *power* (`powers.py`), closed unless the operator opens it, for everybody or for
requests of one namespace. Anything that the table of powers does not list is refused. A refusal names the rule by its
index, and the verb and resource in it. Pure; no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from hortus.domains.access.coverage import RbacRule
from hortus.domains.access.powers import PATH_VERBS, PATHS, POWERS, SYSTEM, TABLE, UNLISTED, Row

SYSTEM_NAMESPACES: Final = frozenset({"kube-system", "kube-public", "kube-node-lease"})
_TRANSITIVE: Final = ("escalate", "bind", "impersonate")
"""Verbs that are refused wherever they stand."""


_ROWS: Final[Mapping[str, Sequence[Row]]] = {
    group: tuple(row for row in TABLE if row.group == group) for group in {row.group for row in TABLE}
}


class Refusal(msgspec.Struct, frozen=True):
    """One thing that is not allowed."""

    place: str
    """Its path, as `spec.rules[0]`."""
    text: str
    """The verbs and the resource, or the wildcard."""
    power: str
    """The power that the operator would have to allow."""

    def __str__(self) -> str:
        return f"{self.place}: {self.text} (power {self.power})"


class AccessPolicy(msgspec.Struct, frozen=True):
    """The operator's limits."""

    everywhere: frozenset[str] = frozenset()
    """Powers that every request may use."""
    by_namespace: Mapping[str, frozenset[str]] = {}
    """Powers that requests of one namespace may use."""
    longest: float = 24 * 3600.0
    """Seconds that a token may live."""

    def powers(self, namespace: str) -> frozenset[str]:
        return self.everywhere | self.by_namespace.get(namespace, frozenset())

    @classmethod
    def parse(cls, text: str, *, longest: float = 24 * 3600.0) -> AccessPolicy:
        """Reads `workloads,module-system/secrets`. Raises ValueError for an unknown power."""
        everywhere: set[str] = set()
        by_namespace: dict[str, frozenset[str]] = {}
        for entry in filter(None, (part.strip() for part in text.split(","))):
            namespace, slash, power = entry.rpartition("/")
            if power not in POWERS or (slash and not namespace):
                raise ValueError(f"{entry!r} is no power: known are {', '.join(POWERS)}, each also as namespace/power")
            if namespace:
                by_namespace[namespace] = by_namespace.get(namespace, frozenset()) | {power}
            else:
                everywhere.add(power)
        return cls(frozenset(everywhere), by_namespace, longest)

    def refusals(
        self, namespace: str, rules: Sequence[RbacRule], namespaces: Sequence[str], place: str
    ) -> list[Refusal]:
        """The parts of `rules` that a request of `namespace` may not ask for, in `namespaces` or (empty) cluster-wide.

        `place` is where the rules come from, as `spec.rules`.
        """
        allowed = self.powers(namespace)
        found = [
            refusal
            for index, rule in enumerate(rules)
            for refusal in _used(rule, f"{place}[{index}]", whole_cluster=not namespaces)
            if refusal.power not in allowed
        ]
        found += [
            Refusal(f"spec.namespaces[{index}]", f"namespace {name} is the system's", SYSTEM)
            for index, name in enumerate(namespaces)
            if name in SYSTEM_NAMESPACES and SYSTEM not in allowed
        ]
        return list(dict.fromkeys(found))


def _used(rule: RbacRule, place: str, *, whole_cluster: bool) -> Iterator[Refusal]:
    """The powers that a rule uses, each named once."""
    yield from _wildcards(rule, place)
    for verb in _TRANSITIVE:
        if verb in rule.verbs:
            yield Refusal(f"{place}.verbs", f"verb {verb}", "escalation")
    for group in rule.api_groups:
        for resource in rule.resources:
            yield from _through_resource(group, resource, rule.verbs, place, whole_cluster=whole_cluster)
    for path in rule.non_resource_urls:
        unknown = [verb for verb in rule.verbs if path not in PATHS or verb not in PATH_VERBS]
        if unknown:
            yield Refusal(place, f"{' and '.join(unknown)} {path}", UNLISTED)


def _wildcards(rule: RbacRule, place: str) -> Iterator[Refusal]:
    # nonResourceURLs know `/logs/*`, resources `*/scale`.
    paths = [path for path in rule.non_resource_urls if path not in PATHS]
    fields = {"verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources, "nonResourceURLs": paths}
    for field, values in fields.items():
        for value in values:
            if "*" in value:
                yield Refusal(f"{place}.{field}", f"wildcard {value}", "wildcards")


def _through_resource(
    group: str, resource: str, verbs: Sequence[str], place: str, *, whole_cluster: bool
) -> Iterator[Refusal]:
    rows = [row for row in (TABLE if group == "*" else _ROWS.get(group, ())) if _includes(resource, row)]
    title = f"{resource}.{group}" if group else resource
    spread = whole_cluster and (not rows or any(row.namespaced for row in rows))
    for power, used in _powers(rows, verbs, everything=not rows or "*" in group or "*" in resource).items():
        yield Refusal(place, f"{' and '.join(used)} {title}{' of the whole cluster' if spread else ''}", power)
    if spread:
        yield Refusal(place, f"{title} of all namespaces, the system's among them", SYSTEM)


def _powers(rows: Sequence[Row], verbs: Sequence[str], *, everything: bool) -> dict[str, list[str]]:
    """Each power with the verbs that use it; `everything` when there is more to it than the rows."""
    plain = [verb for verb in verbs if verb not in _TRANSITIVE]
    found: dict[str, dict[str, None]] = {UNLISTED: dict.fromkeys(plain)} if everything and plain else {}
    for row in rows:
        for verb in plain:
            for power in row.verbs.values() if verb == "*" else (row.verbs.get(verb, UNLISTED),):
                found.setdefault(power, {})[verb] = None
    return {power: list(used) for power, used in found.items() if power}


def _includes(resource: str, row: Row) -> bool:
    """True when a rule's resource includes one of the row: `*` is all, `*/scale` that subresource of all."""
    if resource == "*" or resource in row.resources:
        return True
    name, slash, sub = resource.partition("/")
    return bool(slash) and name == "*" and any(known.partition("/")[2] == sub for known in row.resources)
