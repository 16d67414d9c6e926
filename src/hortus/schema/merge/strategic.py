"""Strategic merge patch: a merge patch that knows which lists are merged, and by which key.

Only kinds whose schema carries `x-kubernetes-patch-strategy` and `-patch-merge-key` have one; kube-apiserver refuses it
for custom resources. The operands are not changed. Where kube-apiserver's order is random (it walks Go maps), the order
here is fixed: deletions from a list before additions to it. Sources: kubernetes/community,
contributors/devel/sig-api-machinery/strategic-merge-patch.md; k8s.io/apimachinery, package strategicpatch, for texts
and corner cases.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from typing import Any

from hortus.schema.merge.comparison import identity, same
from hortus.schema.merge.elements import go_text
from hortus.schema.merge.errors import StrategicMergeError
from hortus.schema.merge.types import MergeSchema, MergeType

Value = Any
Object = dict[str, Any]

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList"
ELEMENT_ORDER = "$setElementOrder"
_PREFIXES = (DELETE_FROM, ELEMENT_ORDER)

_MOST_REPEATED = 100_000
"""Entries that one patch passes again by naming items of lists more than once, about 0.3 s of work."""
_NO_KEY = object()

_BAD_PRIMITIVE_LIST = "invalid patch format of primitive list"
_BAD_RETAIN_KEYS = "invalid patch format of retainKeys"
_BAD_ELEMENT_ORDER = "invalid patch format of setElementOrder list"


def strategic_merge(current: Object, patch: Object, schema: MergeSchema) -> Object:
    """`current` with the strategic merge patch `patch` applied; raises StrategicMergeError.

    An untouched part is shared with `current`; nothing of `patch` is shared with the result.
    """
    try:
        return _merge_map(current, patch, schema.root, _Repeats())
    except RecursionError as error:
        raise StrategicMergeError("the patch is nested too deeply", code=400) from error


class _Repeats:
    """The cost of merging parts that this patch has merged before: each time all their entries are passed again."""

    def __init__(self) -> None:
        self._left = _MOST_REPEATED
        self._depth = 0

    @contextmanager
    def at(self, repeated: bool) -> Iterator[None]:
        self._depth += repeated
        yield
        self._depth -= repeated

    def count(self, part: Sized) -> None:
        if self._depth:
            self._left -= len(part)
            if self._left < 0:
                raise StrategicMergeError("the patch changes the items of a list too often", code=400)


def _merge_map(current: Mapping[str, Value], patch: Object, kind: MergeType | None, repeats: _Repeats) -> Object:
    repeats.count(current)
    if DIRECTIVE in patch:
        return _replaced(patch)
    _check_directives(patch, kind)
    result = dict(current)
    if RETAIN_KEYS in patch:
        kept = _retained(patch)
        result = {key: value for key, value in result.items() if key in kept}
    done = {RETAIN_KEYS}
    for key in sorted(patch):
        if key.startswith(ELEMENT_ORDER):
            done |= {key, _order_list(result, patch, key, kind, repeats)}
    for key in sorted(patch):
        if key in done:
            continue
        if key.startswith(DELETE_FROM):
            _delete_from(result, key, patch[key])
        elif patch[key] is None:
            result.pop(key, None)
        else:
            _merge_field(result, key, patch[key], kind, repeats)
    return result


def _replaced(patch: Object) -> Object:
    directive = patch[DIRECTIVE]
    if directive == "replace":
        replacement: Object = _bare(patch)
        return replacement
    if directive == "delete":
        return {}
    raise _unknown_directive(directive, patch)


def _unknown_directive(directive: Value, patch: Object) -> StrategicMergeError:
    return StrategicMergeError(f"unknown patch type: {go_text(directive)} in map: {go_text(patch)}")


def _check_directives(patch: Object, kind: MergeType | None) -> None:
    for key in patch:
        if not key.startswith("$") or key in (DIRECTIVE, RETAIN_KEYS) or key.startswith(_PREFIXES):
            continue
        if kind is not None and kind.fields is not None and kind.field(key) is None:
            raise StrategicMergeError(f"unknown directive {key!r} in strategic merge patch", code=400)


def _retained(patch: Object) -> set[str]:
    keys = patch[RETAIN_KEYS]
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise StrategicMergeError(_BAD_RETAIN_KEYS, code=400)
    kept = set(keys)
    for key, value in patch.items():
        if key != RETAIN_KEYS and value is not None and not key.startswith(_PREFIXES) and key not in kept:
            raise StrategicMergeError(_BAD_RETAIN_KEYS, code=400)
    return kept


def _list_name(key: str, prefix: str, problem: str) -> str:
    head, slash, name = key.partition("/")
    if head != prefix or not slash:
        raise StrategicMergeError(problem, code=400)
    return name


def _delete_from(result: Object, key: str, patch: Value) -> None:
    """Removes the scalars of `patch` from the list that `key` names."""
    name = _list_name(key, DELETE_FROM, _BAD_PRIMITIVE_LIST)
    current = result.get(name)
    if patch is None:
        result.pop(name, None)
    elif isinstance(current, list) and isinstance(patch, list) and (current or patch):
        if _element_form(current, patch) is dict:
            raise StrategicMergeError(_BAD_PRIMITIVE_LIST, code=400)
        gone = set(map(identity, patch))
        result[name] = [item for item in current if identity(item) not in gone]


def _merge_field(result: Object, key: str, patch: Value, kind: MergeType | None, repeats: _Repeats) -> None:
    current = result.get(key)
    if isinstance(current, dict) and isinstance(patch, dict):
        field = _field(kind, key)
        replaces = _strategy(field) == "replace"
        result[key] = _bare(patch) if replaces else _merge_map(current, patch, field, repeats)
    elif isinstance(current, list) and isinstance(patch, list):
        result[key] = _merge_list(current, patch, _field(kind, key), repeats)
    else:
        keep, value = _plain(patch)
        if keep:
            result[key] = value
        else:
            result.pop(key, None)


def _field(kind: MergeType | None, key: str) -> MergeType | None:
    if kind is None or not kind.is_map:
        return None
    field = kind.field(key)
    if field is None:
        raise StrategicMergeError(f'unable to find api field "{key}"')
    return field


def _strategy(kind: MergeType | None) -> str:
    """`merge`, `replace` or empty; `retainKeys` next to it only allows a directive."""
    others = [one for one in (kind.strategies if kind is not None else ()) if one != "retainKeys"]
    if len(others) > 1:
        raise StrategicMergeError(f"unexpected patch strategy: {go_text(others)}")
    return others[0] if others else ""


def _plain(value: Value) -> tuple[bool, Value]:
    """A value that is new here: whether to keep it, and its content without nulls and without parts that have a
    directive."""
    if isinstance(value, dict):
        if DIRECTIVE in value:
            return False, None
        pairs = ((key, _plain(item)) for key, item in value.items() if item is not None and not _is_directive(key))
        return True, {key: item for key, (keep, item) in pairs if keep}
    if isinstance(value, list):
        return True, [item for keep, item in map(_plain, value) if keep]
    return True, value


def _bare(value: Value) -> Value:
    """A value that replaces another: directives in it have no effect, nulls do not exist."""
    if isinstance(value, dict):
        return {key: _bare(item) for key, item in value.items() if item is not None and not _is_directive(key)}
    return [_bare(item) for item in value] if isinstance(value, list) else value


def _is_directive(key: str) -> bool:
    return key in (DIRECTIVE, RETAIN_KEYS) or (key.startswith(_PREFIXES) and "/" in key)


def _merge_list(current: list[Value], patch: list[Value], kind: MergeType | None, repeats: _Repeats) -> list[Value]:
    repeats.count(current)
    if _strategy(kind) != "merge" or kind is None:
        replacement: list[Value] = _bare(patch)
        return replacement
    if not current and not patch:
        return current
    if _element_form(current, patch) is not dict:
        merged = _distinct(current + patch)
        return _interleaved(merged, patch, current, _itself)
    if not kind.merge_key:
        raise StrategicMergeError(f"cannot merge lists without merge key for {kind.schema.get('type', 'Struct')}")
    return _merge_maps_list(current, patch, kind, repeats)


def _merge_maps_list(current: list[Value], patch: list[Value], kind: MergeType, repeats: _Repeats) -> list[Value]:
    key = kind.merge_key
    current, patch = _directed(current, patch, key)
    merged = list(current)
    places = _numbered(item.get(key, _NO_KEY) for item in merged)
    patched: set[int] = set()
    for item in patch:
        wanted = identity(_key_of(item, key))
        place = places.get(wanted)
        if place is None:
            bare = _bare(item)
            if key in bare:
                places[wanted] = len(merged)
                patched.add(len(merged))
            merged.append(bare)
        else:
            with repeats.at(place in patched):
                merged[place] = _merge_map(merged[place], item, kind.items, repeats)
            patched.add(place)
    return _interleaved(merged, patch, current, lambda item: _key_of(item, key))


def _directed(current: list[Value], patch: list[Value], key: str) -> tuple[list[Value], list[Value]]:
    """The lists after those items of the patch that only hold a directive have been applied."""
    plain: list[Value] = []
    gone: set[Hashable] = set()
    replace = False
    for item in patch:
        directive = item.get(DIRECTIVE, _itself)
        if directive is _itself:
            plain.append(item)
        elif directive == "delete":
            gone.add(identity(_key_of(item, key)))
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise StrategicMergeError("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(directive, item)
    if gone:
        current = [one for one in current if key not in one or identity(one[key]) not in gone]
    return ([_bare(item) for item in plain], []) if replace else (current, plain)


def _order_list(result: Object, patch: Object, key: str, kind: MergeType | None, repeats: _Repeats) -> str:
    """Merges the list that `key` orders and puts it into that order; returns the list's name, so that it is not merged
    again."""
    name = _list_name(key, ELEMENT_ORDER, _BAD_ELEMENT_ORDER)
    order, changes, current = patch[key], patch.get(name), result.get(name)
    for value in (order, *(one for one in (changes, current) if one is not None)):
        if not isinstance(value, list):
            raise StrategicMergeError(f"expected a []interface {{}}, but received a {_go_kind(value)}")
    field = _field(kind, name)
    merge_key = field.merge_key if field is not None else ""
    _check_order(changes or [], order, merge_key)
    if current is None and changes is None:
        return name
    if changes is None:
        merged = current or []
    elif current is None:
        merged = _plain(changes)[1]
    else:
        merged = _merge_list(current, changes, field, repeats)
    _element_form(current or [], changes or [])
    of: Callable[[Value], Value] = (lambda item: _key_of(item, merge_key)) if merge_key else _itself
    result[name] = _interleaved(merged, order, current or [], of)
    return name


def _check_order(changes: list[Value], order: list[Value], key: str) -> None:
    """The items of the patch must stand in the order list, in the same order; one with a directive, before its end."""
    if not order or not changes:
        return
    place = 0
    for item in changes:
        directive = item.get(DIRECTIVE) if key and isinstance(item, dict) else None
        if directive == "delete":
            continue
        if directive is None:
            wanted = _key_of(item, key) if key else item
            while place < len(order) and not same(_key_of(order[place], key) if key else order[place], wanted):
                place += 1
            place += 1
        if place > len(order) or (directive is not None and place == len(order)):
            raise StrategicMergeError(
                f"The order in patch list:\n{go_text(changes)}\n"
                f" doesn't match {ELEMENT_ORDER} list:\n{go_text(order)}\n"
            )


def _interleaved(
    merged: list[Value], first: Sequence[Value], current: list[Value], of: Callable[[Value], Value]
) -> list[Value]:
    """`merged` with the items of `first` in its order, and the others at their places in the live list."""
    wanted, live = _numbered(map(of, first)), _numbered(map(of, current))
    ranked = [(item, wanted.get(name, -1), live.get(name, -1)) for item in merged for name in (identity(of(item)),)]
    ours = sorted((entry for entry in ranked if entry[1] >= 0), key=lambda entry: entry[1])
    others = deque(sorted((entry for entry in ranked if entry[1] < 0), key=lambda entry: entry[2]))
    result: list[Value] = []
    for item, _, place in ours:
        while others and 0 <= others[0][2] < place:
            result.append(others.popleft()[0])
        result.append(item)
    return result + [item for item, _, _ in others]


def _numbered(values: Iterable[Value]) -> dict[Hashable, int]:
    """The first place of each value."""
    found: dict[Hashable, int] = {}
    for place, value in enumerate(values):
        found.setdefault(identity(value), place)
    return found


def _itself(item: Value) -> Value:
    return item


def _key_of(item: Value, key: str) -> Value:
    if not isinstance(item, dict):
        raise StrategicMergeError(f"expected a map[string]interface {{}}, but received a {_go_kind(item)}")
    if key not in item:
        raise StrategicMergeError(f"map: {go_text(item)} does not contain declared merge key: {key}")
    return item[key]


def _distinct(items: list[Value]) -> list[Value]:
    found: dict[Hashable, Value] = {}
    for item in items:
        found.setdefault(identity(item), item)
    return list(found.values())


def _element_form(*lists: list[Value]) -> type[Value]:
    """The one type of all items; raises when there are several types, none, or lists among them."""
    forms: set[type[Value]] = {item.__class__ for items in lists for item in items}
    if not forms:
        raise StrategicMergeError("no elements in any of the given slices")
    if list in forms:
        raise StrategicMergeError("lists of lists are not supported", code=422)
    if len(forms) > 1:
        raise StrategicMergeError(f"list element types are not identical: {go_text(list(lists))}")
    (form,) = forms
    return form


def _go_kind(value: Value) -> str:
    if isinstance(value, dict):
        return "map[string]interface {}"
    names = {str: "string", bool: "bool", int: "int64", float: "float64", list: "[]interface {}"}
    return names.get(value.__class__, "%!s(<nil>)")
