"""Names in other objects that follow the resources they mean.

`referencefields` and `configurations` say which fields hold names of which kinds. A name is looked up among what
resources of that kind were called before; of several, those with the same prefixes and suffixes as the object that
refers to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hortus.kube.objects import Object
from hortus.render.kustomize.documents import FieldSpec, NameReference
from hortus.render.kustomize.errors import KustomizeError
from hortus.render.kustomize.fieldspecs import split_path
from hortus.render.kustomize.ordering import kind_rank
from hortus.render.kustomize.resources import NOT_NAMESPACED, Resource, Resources, text


def fix_references(resources: Resources, targets: Iterable[NameReference], place: str) -> None:
    """Write the present names of resources wherever others refer to them. Raises KustomizeError."""
    by_old_name: dict[str, list[Resource]] = {}
    for resource in resources:
        for name in dict.fromkeys(one.name for one in resource.previous):
            by_old_name.setdefault(name, []).append(resource)
    if not by_old_name:
        return
    ordered = sorted(targets, key=lambda target: kind_rank(target.group, target.version, target.kind))
    for resource in resources:
        _Referrer(resource, by_old_name, place).fix(ordered)


class _Referrer:
    """One object whose references are brought up to date."""

    def __init__(self, resource: Resource, by_old_name: dict[str, list[Resource]], place: str) -> None:
        self._resource = resource
        self._by_old_name = by_old_name
        self._place = place
        self._spaces = _subject_spaces(resource)

    def fix(self, targets: Iterable[NameReference]) -> None:
        original = self._resource.original
        for target in targets:
            for reference in target.field_specs:
                if original.is_kind(reference.group, reference.version, reference.kind):
                    for holder, key in _places(self._resource.obj, split_path(reference.path)):
                        self._follow(holder, key, target, reference)

    def _follow(self, holder: Any, key: Any, target: NameReference, reference: FieldSpec) -> None:
        value = holder[key]
        if isinstance(value, dict):
            self._follow_map(value, target, reference)
        elif isinstance(value, list):
            for place in range(len(value)):
                self._follow(value, place, target, reference)
        elif value is not None:
            found = self._one(text(value), self._candidates(text(value), target, reference), key=lambda one: one.name)
            if found is not None:
                holder[key] = found.name

    def _follow_map(self, value: Object, target: NameReference, reference: FieldSpec) -> None:
        """A map with name and namespace: an account in a binding, the service of a webhook."""
        if "name" not in value:
            raise KustomizeError(f"{self._place}: {self._resource.current}", f"{reference.path}: an item has no name")
        name = text(value["name"])
        candidates = self._candidates(name, target, reference)
        if "namespace" in value:
            candidates = self._in_space(text(value["namespace"]), candidates)
        found = self._one(name, candidates, key=lambda one: (one.name, one.namespace))
        if found is not None:
            value["name"] = found.name
            if found.namespace:
                value["namespace"] = found.namespace

    def _in_space(self, space: str, candidates: list[Resource]) -> list[Resource]:
        """The resources that were in the namespace `space`; if none was, those that are now."""
        everything = [one for some in self._by_old_name.values() for one in some if self._may_refer(one)]
        if any(one.original.space == space for one in everything):
            return [one for one in candidates if one.original.space == space]
        return [one for one in candidates if one.current.space == space]

    def _candidates(self, name: str, target: NameReference, reference: FieldSpec) -> list[Resource]:
        group, version, kind = target.group, target.version, target.kind
        wanted = _role_of(self._resource.obj) if reference.path == "roleRef/name" else None
        return [
            one
            for one in self._by_old_name.get(name, [])
            if self._may_refer(one)
            and any(old.is_kind(group, version, kind) for old in one.previous_identities())
            and (wanted is None or any(old.is_kind(wanted[0], "", wanted[1]) for old in one.previous_identities()))
            and self._is_near(one)
        ]

    def _may_refer(self, other: Resource) -> bool:
        """Cluster-scoped objects refer to anything, others to what is cluster-scoped or in their namespace."""
        here, there = self._resource.current.space, other.current.space
        return here == NOT_NAMESPACED or there in (NOT_NAMESPACED, here) or other.namespace in self._spaces

    def _is_near(self, other: Resource) -> bool:
        here, there = self._resource.current.space, other.current.space
        return here == NOT_NAMESPACED or there in (NOT_NAMESPACED, here) or other.kind == "ServiceAccount"

    def _one(self, name: str, candidates: list[Resource], *, key: Any) -> Resource | None:
        if len(candidates) > 1:
            candidates = [one for one in candidates if self._shares_affixes(one, allow_empty=True)]
        if len(candidates) > 1:
            candidates = [one for one in candidates if self._shares_affixes(one, allow_empty=False)]
        if len({key(one) for one in candidates}) > 1:
            listed = ", ".join(str(one.current) for one in candidates[:5])
            raise KustomizeError(f"{self._place}: {self._resource.current}", f"{name!r} may mean any of {listed}")
        return candidates[0] if candidates else None

    def _shares_affixes(self, other: Resource, *, allow_empty: bool) -> bool:
        pairs = ((other.prefixes, self._resource.prefixes), (other.suffixes, self._resource.suffixes))
        return all((allow_empty and not (one and two)) or _same_end(one, two) for one, two in pairs)


def _same_end(one: list[str], two: list[str]) -> bool:
    short, long = sorted((one, two), key=len)
    return not long if not short else long[-len(short) :] == short


def _subject_spaces(resource: Resource) -> set[str]:
    """The namespaces that a RoleBinding's accounts are said to be in."""
    subjects = resource.obj.get("subjects") if resource.kind == "RoleBinding" else None
    return {
        text(one["namespace"])
        for one in (subjects if isinstance(subjects, list) else [])
        if isinstance(one, dict) and one.get("kind") == "ServiceAccount" and one.get("namespace")
    }


def _role_of(obj: Object) -> tuple[str, str] | None:
    """Group and kind of the role that a binding refers to, where it says both."""
    role = obj.get("roleRef")
    if not isinstance(role, dict) or role.get("apiGroup") is None or role.get("kind") is None:
        return None
    return text(role["apiGroup"]), text(role["kind"])


def _places(value: Any, path: list[str]) -> Iterator[tuple[Any, Any]]:
    """The containers and keys that a path leads to, through all lists on the way."""
    if isinstance(value, list):
        for item in value:
            yield from _places(item, path)
    elif isinstance(value, dict) and path[0] in value:
        if len(path) == 1:
            yield value, path[0]
        else:
            yield from _places(value[path[0]], path[1:])
