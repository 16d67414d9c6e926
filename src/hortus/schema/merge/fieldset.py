"""Sets of fields. The set *is* the nested dict that FieldsV1 puts on the wire, so that nothing is parsed on hot paths.

Each key is a path element (`elements.py`). A node that is empty, or holds ".", is a member; its other keys are the
members below it. `{}` at the root is the empty set, below the root it is a leaf. Sets are values: every operation
returns a new set, shares parts with its operands, and returns the operand itself when nothing changed, so that `is`
detects "unchanged". A set is never changed in place. The order of keys has no meaning until `arranged`.

Semantics: sigs.k8s.io/structured-merge-diff, package fieldpath.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hortus.schema.merge.elements import SELF, canonical, describe, in_order

FieldSet = dict[str, Any]
Path = tuple[str, ...]


def field_set(*paths: Path) -> FieldSet:
    """The set of `paths`; a path is a tuple of elements, such as ("f:spec", "f:replicas")."""
    result: FieldSet = {}
    for path in paths:
        result = union(result, _chain(path))
    return result


def _chain(path: Path) -> FieldSet:
    node: FieldSet = {}
    for element in reversed(path):
        node = {element: node}
    return node


def parse_fields(fields: object) -> FieldSet:
    """The set of a FieldsV1 document from outside: spelled and ordered canonically, unknown elements dropped.

    Raises ValueError when it is not one.
    """
    if fields is None:
        return {}
    parsed = _parsed(fields)
    return {key: parsed[key] for key in parsed if key != SELF} if SELF in parsed else parsed


def _parsed(fields: object) -> FieldSet:
    if not isinstance(fields, dict):
        raise ValueError(f"expected a map of path elements, got {type(fields).__name__}")
    found: FieldSet = {}
    for key, below in fields.items():
        if key == SELF:
            found[SELF] = {}
            continue
        element = canonical(key)
        if element is not None:
            found[element] = _parsed(below)
    if len(found) == 1 and SELF in found:
        return {}
    return {key: found[key] for key in in_order(found)}


def arranged(fields: FieldSet) -> FieldSet:
    """The same set with its keys in the order in which Go's serialiser emits them."""
    ordered = in_order(fields) if len(fields) > 1 else list(fields)
    return {key: arranged(below) if (below := fields[key]) else below for key in ordered}


def is_member(node: FieldSet) -> bool:
    """Reports whether a node below the root is in the set itself."""
    return not node or SELF in node


def has(fields: FieldSet, path: Path) -> bool:
    """Reports whether `path` itself is a member; the whole object has no owner, so the empty path never is."""
    if not path:
        return False
    node = fields
    for element in path:
        below = node.get(element)
        if below is None:
            return False
        node = below
    return is_member(node)


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    if left is right or not right:
        return left
    if not left:
        return right
    return _merged(left, right)


def _merged(left: FieldSet, right: FieldSet) -> FieldSet:
    result = None
    for key, theirs in right.items():
        ours = left.get(key)
        both = theirs if ours is None else ours if ours is theirs else node_union(ours, theirs)
        if both is not ours:
            if result is None:
                result = dict(left)
            result[key] = both
    return left if result is None else result


def node_union(left: FieldSet, right: FieldSet) -> FieldSet:
    """The union of two nodes below the root, where an empty one is a member."""
    if not left:
        return left if not right else right if SELF in right else {SELF: {}, **right}
    if not right:
        return left if SELF in left else {SELF: {}, **left}
    return _merged(left, right)


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """The members of both."""
    result: FieldSet = {}
    if not left or not right:
        return result
    for key, ours in left.items():
        theirs = right.get(key)
        if theirs is None or key == SELF:
            continue
        below = _node_intersection(ours, theirs)
        if below is not None:
            result[key] = below
    return result


def _node_intersection(left: FieldSet, right: FieldSet) -> FieldSet | None:
    below = intersection(left, right)
    if is_member(left) and is_member(right):
        return {SELF: {}, **below} if below else {}
    return below or None


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """The members of `left` that are not members of `right`; a parent and its child are different members."""
    if not right or not left:
        return left
    result = None
    for key, theirs in right.items():
        ours = left.get(key)
        if ours is None or key == SELF:
            continue
        rest = _node_difference(ours, theirs)
        if rest is not ours:
            if result is None:
                result = dict(left)
            if rest is None:
                del result[key]
            else:
                result[key] = rest
    return left if result is None else result


def _node_difference(left: FieldSet, right: FieldSet) -> FieldSet | None:
    if not is_member(right):
        return left if not left else _rejoined(left, difference(left, right))
    if not left:
        return None
    below = difference(left, right)
    if SELF in below:
        below = {key: node for key, node in below.items() if key != SELF}
    return below or None


def _rejoined(left: FieldSet, below: FieldSet) -> FieldSet | None:
    if below is left:
        return left
    if len(below) == 1 and SELF in below:
        return {}
    return below or None


def recursive_difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """`left` without the members of `right` and without everything below those."""
    if not right or not left:
        return left
    result = None
    for key, theirs in right.items():
        ours = left.get(key)
        if ours is None or key == SELF:
            continue
        rest = None if is_member(theirs) else _rejoined(ours, recursive_difference(ours, theirs)) if ours else ours
        if rest is not ours:
            if result is None:
                result = dict(left)
            if rest is None:
                del result[key]
            else:
                result[key] = rest
    return left if result is None else result


def leaves(fields: FieldSet) -> FieldSet:
    """The members that have no members below them."""
    return {key: leaves(below) for key, below in fields.items() if key != SELF}


def members(fields: FieldSet, above: Path = ()) -> Iterator[Path]:
    """Every member, in the order in which conflicts are reported: the members of a node first, then those below."""
    ordered = [key for key in in_order(fields) if key != SELF]
    for key in ordered:
        if is_member(fields[key]):
            yield (*above, key)
    for key in ordered:
        if fields[key]:
            yield from members(fields[key], (*above, key))


def path_text(path: Path) -> str:
    """The path as an error shows it, such as `.spec.containers[name="web"].image`."""
    return "".join(map(describe, path))
