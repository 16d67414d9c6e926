"""The steps of a JSONPath: functions from a list of values to a list of values, which `jsonpath` reads from a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from hortus.schema.problems import json_text, number_text

Step = Callable[[list[Any]], list[Any]]


class JsonPathError(ValueError):
    """The expression cannot be parsed, or cannot be applied to this object."""


def printed(value: Any) -> str:
    """One value as kubectl prints it: text bare, the rest as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return number_text(value)
    return json_text(value)


def chain(steps: list[Step]) -> Step:
    def run(values: list[Any]) -> list[Any]:
        for step in steps:
            values = step(values)
        return values

    return steps[0] if len(steps) == 1 else run


def constant(value: Any) -> Step:
    return lambda values: [value]


def member(name: str) -> Step:
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]


def _members(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def every_member(values: list[Any]) -> list[Any]:
    return [member for value in values for member in _members(value)]


def descend(values: list[Any]) -> list[Any]:
    """Each container and, before its next sibling, all containers below it."""
    found: list[Any] = []
    waiting = list(reversed(values))
    while waiting:
        value = waiting.pop()
        members = list(_members(value))
        if members:
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

    def parts(values: list[Any]) -> list[Any]:
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
    return lambda values: [member for value in values for member in _listed(value) if path([member])]


def where_compared(left: Step, holds: Callable[[Any, Any], bool], right: Step) -> Step:
    def passes(member: Any) -> bool:
        lefts, rights = left([member]), right([member])
        if len(lefts) > 1 or len(rights) > 1:
            raise JsonPathError("can only compare one element at a time")
        if not (lefts and rights):
            return False
        if not _comparable(lefts[0], rights[0]):
            raise JsonPathError("incompatible types for comparison")
        return holds(lefts[0], rights[0])

    return lambda values: [member for value in values for member in _listed(value) if passes(member)]


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
