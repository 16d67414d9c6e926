"""Strategic merge as kustomize does it, which is not as API servers do.

Patched items stand before the others, in the patch's order; items with several keys are told apart by those that the
patch or the object gives; a scalar cannot become a map. `hortus.schema.merge.strategic_merge` has API servers' rules
and would put containers into another order than `kustomize build`. Oddities are kept where they show in results: two
items with equal keys become one, the last, and of an item with some of its keys the keys left out count as any.
"""

from __future__ import annotations

from typing import Any, Final

from hortus.kube.objects import Object
from hortus.render.kustomize.errors import KustomizeError
from hortus.render.kustomize.resources import BLANK, filled, text
from hortus.render.kustomize.scalars import resolved
from hortus.render.kustomize.shapes import Schemas, Shape, shape_of_kind

Value = Any
_DIRECTIVE = "$patch"
_DIRECTIVES = ("delete", "replace", "merge")


class _Absent:
    """No value at all, where null is one."""

    def __repr__(self) -> str:
        return "absent"


ABSENT: Final = _Absent()


def merge_patch(obj: Object, patch: Object, schemas: Schemas | None, place: str) -> Object:
    """`obj` with `patch` merged in; empty when the patch deletes it. Both are used up. Raises KustomizeError."""
    try:
        merged = _Merge(schemas, place).merged(obj, patch, None)
    except RecursionError:
        raise KustomizeError(place, "the patch or the object is nested too deeply") from None
    return filled(merged) if isinstance(merged, dict) else {}


class _Merge:
    def __init__(self, schemas: Schemas | None, place: str) -> None:
        self._schemas = schemas
        self._place = place

    def merged(self, old: Value, new: Value, shape: Shape | None) -> Value:
        """One place: what it holds, what the patch says, either of them perhaps ABSENT."""
        shape = shape or self._own_shape(old) or self._own_shape(new)
        form = _form(old) or _form(new)
        if form is None:
            return old if new is ABSENT else ABSENT
        for value in (old, new):
            if _form(value) not in (None, form):
                raise KustomizeError(self._place, f"the patch has {_named(new)} where the object has {_named(old)}")
        if form is dict:
            return self._map(old, new, shape)
        if form is list and shape is not None and shape.keys is not None:
            return self._list(old, new, shape)
        return old if new is ABSENT else new

    def _map(self, old: Value, new: Value, shape: Shape | None) -> Value:
        if isinstance(old, dict) and new is None:
            return ABSENT
        directive = self._taken(new) if isinstance(new, dict) else "merge"
        if directive == "delete":
            return ABSENT
        if not isinstance(old, dict) or directive == "replace":
            old = new
        patch = new if isinstance(new, dict) else {}
        for name in {**old, **patch}:
            inner = shape.fields(name) if shape is not None else None
            value = self.merged(old.get(name, ABSENT), patch.get(name, ABSENT), inner)
            if value in (ABSENT, BLANK) or (value is None and name in patch):
                old.pop(name, None)
            else:
                old[name] = value
        return old

    def _list(self, old: Value, new: Value, shape: Shape) -> Value:
        if isinstance(old, list) and new is None:
            return ABSENT
        directive = "merge"
        if isinstance(new, list):
            directive, new = self._list_directive(new)
        if isinstance(old, list) and directive == "delete":
            return ABSENT
        if not isinstance(old, list) or directive == "replace":
            old = new
        patch = new if isinstance(new, list) else []
        if shape.keys:
            return self._items(list(old), patch, shape.keys, shape.items() if shape.items is not None else None)
        return _distinct([*patch, *old])

    def _items(self, old: list[Value], new: list[Value], keys: tuple[str, ...], shape: Shape | None) -> list[Value]:
        wanted = _distinct_keys([_key_values(item, keys) for item in (*new, *old)])
        if any(not any(values) for values in wanted):
            raise KustomizeError(self._place, f"an item of a merged list has no {keys[0]}, by which it could be found")
        if len(keys) > 1:
            _complete(wanted)
        used = tuple(place for place in range(len(keys)) if any(values[place] for values in wanted))
        used = used or tuple(range(len(keys)))
        names = [keys[place] for place in used]
        added: list[Value] = []
        for whole in wanted:
            values = [whole[place] for place in used]
            item = self.merged(_found(old, names, values), _found(new, names, values), shape)
            if item in (ABSENT, None, {}):
                old = _without(old, names, values)
                continue
            for name, value in zip(names, values, strict=True):
                if name not in item and value:
                    item[name] = resolved(value)
            added = _with(added, item, names, values)
        return _followed(added, old, names) if wanted else old

    def _taken(self, patch: Object) -> str:
        """The directive of a map, which is taken out of it."""
        directive = text(patch.pop(_DIRECTIVE, "merge"))
        if directive not in _DIRECTIVES:
            raise KustomizeError(self._place, f"{_DIRECTIVE}: {directive[:80]!r} is not one of {_DIRECTIVES}")
        return directive

    def _list_directive(self, patch: list[Value]) -> tuple[str, list[Value]]:
        """The directive that stands in a list as an item of its own, and the list without it."""
        for item in patch:
            if isinstance(item, dict) and _DIRECTIVE in item:
                if len(item) > 1:
                    break
                directive = self._taken(dict(item))
                return directive, [one for one in patch if one != item]
        return "merge", patch

    def _own_shape(self, value: Value) -> Shape | None:
        if not isinstance(value, dict):
            return None
        kind, version = value.get("kind"), value.get("apiVersion")
        if not (isinstance(kind, str) and isinstance(version, str) and kind and version):
            return None
        return shape_of_kind(version, kind, self._schemas)


def _form(value: Value) -> type[Value] | None:
    if value is None or value is ABSENT or value is BLANK:
        return None
    return dict if isinstance(value, dict) else list if isinstance(value, list) else str


def _named(value: Value) -> str:
    form = _form(value)
    return "a map" if form is dict else "a list" if form is list else "a scalar" if form else "nothing"


def _distinct(values: list[Value]) -> list[Value]:
    found: dict[str, Value] = {}
    for value in values:
        found.setdefault(text(value), value)
    return list(found.values())


def _key_values(item: Value, keys: tuple[str, ...]) -> list[str]:
    return [text(item.get(key)) if isinstance(item, dict) else "" for key in keys]


def _distinct_keys(values: list[list[str]]) -> list[list[str]]:
    return [list(one) for one in dict.fromkeys(map(tuple, values))]


def _complete(wanted: list[list[str]]) -> None:
    """Fill the keys that one item leaves out from another that agrees with it in the rest."""
    for one in range(len(wanted)):
        for other, others in enumerate(wanted):
            pairs = list(zip(wanted[one], others, strict=True))
            if any(a == b for a, b in pairs) and all(a == b or not a or not b for a, b in pairs):
                wanted[one] = wanted[other] = [a or b for a, b in pairs]


def _matches(item: Value, names: list[str], values: list[str]) -> bool:
    return isinstance(item, dict) and all(
        name in item and (not value or text(item[name]) == value) for name, value in zip(names, values, strict=False)
    )


def _found(items: list[Value], names: list[str], values: list[str]) -> Value:
    """The first item with these keys, of which those without a value do not count."""
    given = {name: value for name, value in zip(names, values, strict=True) if value}
    return next((item for item in items if _matches(item, list(given), list(given.values()))), ABSENT)


def _without(items: list[Value], names: list[str], values: list[str]) -> list[Value]:
    return [item for item in items if item not in (None, {}) and not _matches(item, names, values)]


def _with(items: list[Value], item: Value, names: list[str], values: list[str]) -> list[Value]:
    """`items` with `item` in place of each that has these keys, or else at the end."""
    places = [_matches(one, names, values) for one in items]
    if not any(places):
        return [*items, item]
    return [item if same else one for one, same in zip(items, places, strict=True)]


def _followed(added: list[Value], old: list[Value], names: list[str]) -> list[Value]:
    """The merged items, then those of the object that are not among them."""
    for item in old:
        given = [text(item[name]) for name in names if isinstance(item, dict) and item.get(name) is not None]
        if len(given) < len(names):
            added = [*added, item]
        if len(names) > 1:
            added = _without(added, names, given)
        added = _with(added, item, names, given)
    return added
