"""The steps of a JSONPath: functions from a list of values to a list of values, which `jsonpath` reads from a text.

A step may yield a value many times: each further `..` over a deep object, or `[*,*]`, multiplies their number. A `Walk`
bounds that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from hortus.schema.problems import json_text, number_text


class JsonPathError(ValueError):
    """The expression cannot be parsed, or cannot be applied to this object."""


class Walk:
    """One evaluation of a path. It ends with a JsonPathError when it has passed `most` values.

    With `thin`, a value that several ways lead to is kept twice at most: enough for the first value of a path, and for
    a filter, which refuses to compare more than one. The cost is then that of the object times the steps.
    """

    __slots__ = ("_left", "thin")

    def __init__(self, most: int, *, thin: bool) -> None:
        self._left = most
        self.thin = thin

    def passed(self, count: int) -> None:
        """Counts values. Raises JsonPathError."""
        self._left -= count
        if self._left < 0:
            raise JsonPathError("the path leads to too many values")

    def run(self, steps: Iterable[Step], values: list[Any]) -> list[Any]:
        for step in steps:
            values = step(values, self)
            self.passed(len(values))
            if self.thin and len(values) > 2:
                values = _thinned(values)
        return values


Step = Callable[[list[Any], Walk], list[Any]]


def _thinned(values: list[Any]) -> list[Any]:
    copies: dict[int, int] = {}
    kept = []
    for value in values:
        seen = copies.get(id(value), 0)
        if seen < 2:
            copies[id(value)] = seen + 1
            kept.append(value)
    return kept


def printed(value: Any) -> str:
    """One value as kubectl prints it: text bare, the rest as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return number_text(value)
    return json_text(value)


def chain(steps: list[Step]) -> Step:
    return lambda values, walk: walk.run(steps, values)


def constant(value: Any) -> Step:
    return lambda values, walk: [value]


def itself(values: list[Any], walk: Walk) -> list[Any]:
    return values


def member(name: str) -> Step:
    return lambda values, walk: [value[name] for value in values if isinstance(value, dict) and name in value]


def _members(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def every_member(values: list[Any], walk: Walk) -> list[Any]:
    return [member for value in values for member in _members(value)]


def descend(values: list[Any], walk: Walk) -> list[Any]:
    """Each container and, before its next sibling, all containers below it."""
    found: list[Any] = []
    waiting = list(reversed(values))
    visits: dict[int, int] = {}
    while waiting:
        value = waiting.pop()
        members = list(_members(value))
        if not members:
            continue
        if walk.thin:
            seen = visits.get(id(value), 0)
            if seen == 2:
                continue  # it and all below it have been found twice
            visits[id(value)] = seen + 1
        walk.passed(len(members))
        found.append(value)
        waiting.extend(reversed(members))
    return found


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise JsonPathError(f"{printed(value)} is not array or slice")
    return value


def element(place: int) -> Step:
    return sliced(place, place + 1 if place != -1 else None, None)


def sliced(start: int | None, stop: int | None, stride: int | None) -> Step:
    """Members from `start` to before `stop`; unlike Python's, bounds beyond the list are an error.

    As in client-go a list of which nothing is asked for ends the step: the lists behind it are not looked at.
    """
    if stride is not None and stride <= 0:
        raise JsonPathError("step must be > 0")

    def part(members: list[Any]) -> list[Any] | None:
        size = len(members)
        first = 0 if start is None else start + size if start < 0 else start
        last = size if stop is None else stop + size if stop < 0 else stop
        if first == last:
            return None
        for place, limit in ((first, size - 1), (last - 1, size - 1)):
            if not 0 <= place <= limit:
                raise JsonPathError(f"array index out of bounds: index {place}, length {size}")
        if first > last:
            raise JsonPathError(f"starting index {first} is greater than ending index {last}")
        return members[first:last:stride]

    def parts(values: list[Any], walk: Walk) -> list[Any]:
        found: list[Any] = []
        for value in values:
            if value is None:
                continue
            members = part(_listed(value))
            if members is None:
                break
            found += members
        return found

    return parts


def where(path: Step) -> Step:
    return lambda values, walk: [member for value in values for member in _listed(value) if path([member], walk)]


def where_compared(left: Step, holds: Callable[[Any, Any], bool], right: Step) -> Step:
    def passes(member: Any, walk: Walk) -> bool:
        lefts, rights = left([member], walk), right([member], walk)
        if len(lefts) > 1 or len(rights) > 1:
            raise JsonPathError("can only compare one element at a time")
        if not (lefts and rights):
            return False
        if not _comparable(lefts[0], rights[0]):
            raise JsonPathError("incompatible types for comparison")
        return holds(lefts[0], rights[0])

    return lambda values, walk: [member for value in values for member in _listed(value) if passes(member, walk)]


def _comparable(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return isinstance(left, bool) and isinstance(right, bool)
    numbers = (int, float)
    return (isinstance(left, numbers) and isinstance(right, numbers)) or (
        isinstance(left, str) and isinstance(right, str)
    )


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
