"""RBAC rules as clusters send them, and the comparison of a token's rules with those of its request, in both
directions. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import msgspec
from msgspec import field

from hortus.kube.objects import Object, shaped
from hortus.kube.permissions import Atom, lacking
from hortus.schema import Fields

MOST_COMPARED = 1000
"""Permissions in a result: rules of an untrusted cluster may hold any number."""


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


def read_rules(value: object) -> list[RbacRule] | None:
    """The rules in a cluster's answer, where null stands for an empty list; None when the answer holds no rules."""
    found = shaped([] if value is None else value, list[dict[str, Any]])
    if found is None:
        return None
    return shaped([{name: part for name, part in rule.items() if part is not None} for rule in found], list[RbacRule])


def surplus(held: Iterable[RbacRule], allowed: Iterable[RbacRule]) -> list[Atom]:
    """The permissions of `held` that no rule of `allowed` admits, each once, in order; the first thousand of them.

    Raises TooManyPermissions.
    """
    return list(dict.fromkeys(islice(lacking(held, allowed), MOST_COMPARED)))
