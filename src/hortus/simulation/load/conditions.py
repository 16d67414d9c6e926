"""Conditions of readiness in kubectl's words: `condition=Ready`, `jsonpath={.status.state}=Ready`, `exists`.

As with `kubectl wait`, a condition without a value means `True`, a jsonpath without one that the field is there. What
status says of an older generation does not count.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from hortus.kube.objects import Object
from hortus.schema.jsonpath import JsonPath, JsonPathError, printed
from hortus.simulation.load.settings import ScenarioError


class Until(msgspec.Struct, frozen=True):
    """One parsed condition."""

    text: str
    met: Callable[[Object], bool]


def parse_until(text: str) -> Until:
    """Raises ScenarioError."""
    how, _, rest = text.partition("=")
    if how == "exists" and not rest:
        return Until(text, lambda obj: True)
    if how == "condition" and rest:
        kind, _, wanted = rest.partition("=")
        return Until(text, _condition(kind, wanted or "True"))
    if how == "jsonpath" and rest:
        return Until(text, _path(text, rest))
    raise ScenarioError(
        f"until: {text!r} must be condition=TYPE[=STATUS], jsonpath=PATH[=VALUE] or exists, "
        "as in 'condition=Ready' or 'jsonpath={.status.state}=Ready'"
    )


def _condition(kind: str, wanted: str) -> Callable[[Object], bool]:
    wanted = wanted.lower()

    def met(obj: Object) -> bool:
        generation = obj["metadata"].get("generation", 0)
        for condition in (obj.get("status") or {}).get("conditions") or ():
            if condition.get("type") == kind and str(condition.get("status")).lower() == wanted:
                return bool(condition.get("observedGeneration", generation) >= generation)
        return False

    return met


def _path(text: str, rest: str) -> Callable[[Object], bool]:
    bare, closing, wanted = rest.partition("}")
    if closing:
        bare, wanted = bare + closing, wanted.removeprefix("=")
    else:
        bare, _, wanted = rest.partition("=")
    try:
        path = JsonPath.parse(bare)
    except JsonPathError as error:
        raise ScenarioError(f"until: {text!r}: {error}") from None

    def met(obj: Object) -> bool:
        found = path.first(obj)
        return found is not None if not wanted else found is not None and printed(found) == wanted

    return met
