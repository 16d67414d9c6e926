"""Whether rules of RBAC hold others: what a token may do is compared with what was asked for, in both directions.

A rule is a product of verbs, groups, resources and names; it is taken apart into its single rights (`Atom`), and an
atom is held when one rule admits it. Pure. Semantics: k8s.io/component-helpers, auth/rbac/validation, `ruleCovers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import msgspec

from hortus.kube.objects import Object, shaped


class Atom(NamedTuple):
    """One right: a verb on a resource, perhaps of one name, or on a path."""

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


class _Rule(msgspec.Struct):
    verbs: list[str] | None = None
    apiGroups: list[str] | None = None
    resources: list[str] | None = None
    resourceNames: list[str] | None = None
    nonResourceURLs: list[str] | None = None


def are_rules(value: object) -> bool:
    """True when what a cluster says is a list of rules, or nothing."""
    return value is None or shaped(value, list[_Rule]) is not None


def atoms(rule: Object) -> Iterator[Atom]:
    """The single rights of a rule."""
    verbs = rule.get("verbs") or ()
    for verb, path in product(verbs, rule.get("nonResourceURLs") or ()):
        yield Atom(verb, path=path)
    names = rule.get("resourceNames") or ("",)
    for verb, group, resource, name in product(verbs, rule.get("apiGroups") or (), rule.get("resources") or (), names):
        yield Atom(verb, group, resource, name)


def surplus(held: Iterable[Object], allowed: Sequence[Object]) -> list[Atom]:
    """The rights of `held` that no rule of `allowed` admits, each once, in order."""
    return list(dict.fromkeys(atom for rule in held for atom in atoms(rule) if not covered(atom, allowed)))


def covered(atom: Atom, rules: Iterable[Object]) -> bool:
    return any(_admits(rule, atom) for rule in rules)


def _admits(rule: Object, atom: Atom) -> bool:
    if not _among(atom.verb, rule.get("verbs")):
        return False
    if atom.path:
        return any(_path_admits(known, atom.path) for known in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames")
    return (
        _among(atom.group, rule.get("apiGroups"))
        and _resource_admitted(atom.resource, rule.get("resources") or ())
        and (not names or atom.name in names)
    )


def _among(value: str, known: Sequence[str] | None) -> bool:
    return known is not None and ("*" in known or value in known)


def _resource_admitted(resource: str, known: Sequence[str]) -> bool:
    sub = resource.partition("/")[2]
    return "*" in known or resource in known or bool(sub and f"*/{sub}" in known)


def _path_admits(known: str, path: str) -> bool:
    if known in ("*", path):
        return True
    return known.endswith("*") and path.startswith(known[:-1])
