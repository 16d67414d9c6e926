"""Comparison of RBAC rules: the rules of a token with the rules of its request, in both directions.

A rule is a product of verbs, groups, resources and names. It is taken apart into single permissions (`Atom`), of which
each is covered when one rule admits it. Pure. Semantics: k8s.io/component-helpers, auth/rbac/validation, `ruleCovers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import msgspec
from msgspec import field

from hortus.kube.objects import Object, shaped
from hortus.schema import Fields


class RbacRule(Fields, frozen=True):
    """A rule of RBAC, as roles and reviews hold it: rbac.authorization.k8s.io/v1, PolicyRule."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = field(name="nonResourceURLs", default=())

    def manifest(self) -> Object:
        """The rule as it stands in a role, without empty lists."""
        return {name: list(values) for name, values in msgspec.to_builtins(self).items()}


class Atom(NamedTuple):
    """One permission: a verb on a resource, perhaps of one name, or on a path."""

    verb: str
    group: str = ""
    resource: str = ""
    name: str = ""
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return f"{self.verb} {self.path}"
        title = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {title} {self.name}".rstrip()


def read_rules(value: object) -> list[RbacRule] | None:
    """The rules in a cluster's answer, where null stands for an empty list; None when the answer holds no rules."""
    found = shaped([] if value is None else value, list[dict[str, Any]])
    if found is None:
        return None
    return shaped([{name: part for name, part in rule.items() if part is not None} for rule in found], list[RbacRule])


def atoms(rule: RbacRule) -> Iterator[Atom]:
    """The single permissions of a rule."""
    for verb, path in product(rule.verbs, rule.non_resource_urls):
        yield Atom(verb, path=path)
    names = rule.resource_names or ("",)
    for verb, group, resource, name in product(rule.verbs, rule.api_groups, rule.resources, names):
        yield Atom(verb, group, resource, name)


def surplus(held: Iterable[RbacRule], allowed: Sequence[RbacRule]) -> list[Atom]:
    """The permissions of `held` that no rule of `allowed` admits, each once, in order."""
    return list(dict.fromkeys(atom for rule in held for atom in atoms(rule) if not covered(atom, allowed)))


def covered(atom: Atom, rules: Iterable[RbacRule]) -> bool:
    return any(_admits(rule, atom) for rule in rules)


def _admits(rule: RbacRule, atom: Atom) -> bool:
    if not _among(atom.verb, rule.verbs):
        return False
    if atom.path:
        return any(_path_admits(known, atom.path) for known in rule.non_resource_urls)
    return (
        _among(atom.group, rule.api_groups)
        and _resource_admitted(atom.resource, rule.resources)
        and (not rule.resource_names or atom.name in rule.resource_names)
    )


def _among(value: str, known: Sequence[str]) -> bool:
    return "*" in known or value in known


def _resource_admitted(resource: str, known: Sequence[str]) -> bool:
    sub = resource.partition("/")[2]
    return "*" in known or resource in known or bool(sub and f"*/{sub}" in known)


def _path_admits(known: str, path: str) -> bool:
    if known in ("*", path):
        return True
    return known.endswith("*") and path.startswith(known[:-1])
