"""`vars`: values of objects that stand wherever `$(NAME)` does.

A variable means the object that had its name when the kustomization was done with it; its value is read, and put in,
once all names are known. `$$(NAME)` gives `$(NAME)`. A text that is nothing but a variable takes on the type of its
value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from hortus.render.kustomize.documents import ConfiguredField, Variable
from hortus.render.kustomize.errors import KustomizeError
from hortus.render.kustomize.fieldspecs import set_field
from hortus.render.kustomize.replacing import MISSING, lookup, split_field_path
from hortus.render.kustomize.resources import Identity, Resources, text

_REFERENCE = re.compile(r"\$(?:(\$)|\(([^)]*)\))")

_INDEX = re.compile(r"\[([0-9]{1,6})\]")


class Variables:
    """The variables of a kustomization and of those it uses. The objects they read carry their names."""

    def __init__(self) -> None:
        self._known: dict[str, Variable] = {}

    def add(self, variables: Iterable[Variable], resources: Resources, place: str) -> None:
        """Find the objects that `variables` mean by now. Raises KustomizeError."""
        for variable in variables:
            found = resources.matching(_wanted(variable))
            if len(found) > 1:
                raise KustomizeError(place, f"vars: {variable.name[:100]!r} may mean any of {len(found)} objects")
            self._learn(variable, place)
            if found:
                found[0].variables.append(variable.name)

    def absorb(self, other: Variables, place: str) -> None:
        """Take over those of a base. Raises KustomizeError for a name that is taken."""
        for variable in other._known.values():
            self._learn(variable, place)

    def resolve(self, resources: Resources, fields: Iterable[ConfiguredField], place: str) -> None:
        """Put the values in. Raises KustomizeError for a variable without an object or a field."""
        if not self._known:
            return
        values = {name: self._value(variable, resources, place) for name, variable in self._known.items()}

        def put(old: Any) -> Any:
            if isinstance(old, dict):
                return {key: expanded(part, values) if isinstance(part, str) else part for key, part in old.items()}
            return expanded(old, values) if isinstance(old, str) else old

        specs = list(fields)
        for resource in resources:
            for spec in specs:
                set_field(resource, spec, put, empty=str, place=place)

    def _learn(self, variable: Variable, place: str) -> None:
        if variable.name in self._known:
            raise KustomizeError(place, f"vars: {variable.name[:100]!r} is there already; give it another name")
        self._known[variable.name] = variable

    def _value(self, variable: Variable, resources: Resources, place: str) -> Any:
        source = next((one for one in resources if variable.name in one.variables), None)
        if source is None:
            wanted = variable.source
            raise KustomizeError(
                place, f"vars: {variable.name[:100]!r}: there is no {wanted.kind[:100]} {wanted.name[:100]!r} (objref)"
            )
        path = _field_path(variable)
        found = lookup(source.obj, split_field_path(path), place)
        if found is MISSING or found is None:
            raise KustomizeError(place, f"vars: {variable.name[:100]!r}: {source.current} has no field {path[:200]!r}")
        return found


def expanded(value: str, values: Mapping[str, Any]) -> Any:
    """`value` with what its references stand for; one that is not known, or a map or list, stays as it is."""
    whole = _REFERENCE.fullmatch(value)
    if whole is not None and whole[2] is not None:
        found = values.get(whole[2], value)
        return value if isinstance(found, dict | list) else found

    def known(match: re.Match[str]) -> str:
        if match[1]:
            return "$"
        found = values.get(match[2])
        return match[0] if found is None or isinstance(found, dict | list) else text(found)

    return _REFERENCE.sub(known, value)


def _field_path(variable: Variable) -> str:
    """kustomize reads the key without regard to case, and both spellings are in use."""
    given = {key.lower(): path for key, path in variable.field.items()}
    return _INDEX.sub(r".\1", given.get("fieldpath") or "metadata.name")


def _wanted(variable: Variable) -> Any:
    source = variable.source
    group, version, kind, name, space = source.group, source.version, source.kind, source.name, source.namespace
    if source.api_version:
        group, _, version = source.api_version.rpartition("/")

    def matches(one: Identity) -> bool:
        same = (one.group, one.version, one.kind, one.name) == (group, version, kind, name)
        return same and (not space or one.space == space)

    return matches
