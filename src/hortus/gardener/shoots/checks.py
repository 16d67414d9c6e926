"""Checks of single fields, which the tables of rules are made of, and the walk of an object along such a table.

A table maps paths of fields below some part of a Shoot to their checks. It is compiled once; a walk costs a look-up for
each field of the table whose parents are there. Values are those of a decoded Shoot: of the right type, durations and
quantities as texts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from hortus.gardener.shoots.facts import Release, RuleFacts
from hortus.gardener.shoots.fields import forbidden_since
from hortus.kube import durations, naming
from hortus.kube.durations import DurationError
from hortus.kube.quantities import Quantity, QuantityError
from hortus.schema import FieldError
from hortus.schema.problems import forbidden, invalid, not_supported, required

Check = Callable[[Any, str, RuleFacts], Iterable[FieldError]]
"""The problems of the value of a field at a path."""
NOT_NEGATIVE: Final = "must be greater than or equal to 0"


class FieldRules:
    """Fields by their paths below a part, each with its checks."""

    def __init__(self, fields: Mapping[str, Check | tuple[Check, ...]]) -> None:
        self._root = _Node()
        for path, checks in fields.items():
            node = self._root
            for step in path.split("."):
                node = node.children.setdefault(step, _Node())
            node.checks.extend(checks if isinstance(checks, tuple) else (checks,))

    def problems(self, part: Mapping[str, Any] | None, path: str, facts: RuleFacts) -> list[FieldError]:
        """The problems of all fields of a part that the table has."""
        found: list[FieldError] = []
        if part:
            _walk(part, self._root, path, facts, found)
        return found


class _Node:
    """A field in a table."""

    __slots__ = ("checks", "children")

    def __init__(self) -> None:
        self.checks: list[Check] = []
        self.children: dict[str, _Node] = {}


def _walk(part: Mapping[str, Any], node: _Node, path: str, facts: RuleFacts, found: list[FieldError]) -> None:
    for name, child in node.children.items():
        value = part.get(name)
        if value is None:
            continue
        at = f"{path}.{name}"
        for check in child.checks:
            found.extend(check(value, at, facts))
        if child.children:
            _walk(value, child, at, facts, found)


def between(least: float | None, most: float | None, text: str) -> Check:
    """A number within bounds, with the message of a violation."""

    def check(value: float, path: str, facts: RuleFacts) -> Iterator[FieldError]:
        if (least is not None and value < least) or (most is not None and value > most):
            yield invalid(path, value, text)

    return check


def not_negative(value: float, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    if value < 0:
        yield invalid(path, value, NOT_NEGATIVE)


def at_least(least: float, text: str) -> Check:
    return between(least, None, text)


def at_most(most: float, text: str) -> Check:
    return between(None, most, text)


def one_of(values: Sequence[str]) -> Check:
    """Values that a field may have, in the order of the message."""
    allowed = frozenset(values)

    def check(value: str, path: str, facts: RuleFacts) -> Iterator[FieldError]:
        if value not in allowed:
            yield not_supported(path, value, values)

    return check


def forbidden_from(field: str, text: str, *checks: Check) -> Check:
    """A field that some Kubernetes version removed, by the table of such fields, and its checks in earlier ones."""
    series = forbidden_since(field)

    def check(value: object, path: str, facts: RuleFacts) -> Iterator[FieldError]:
        if facts.reaches(series):
            yield forbidden(path, f"for Kubernetes {text}")
            return
        for one in checks:
            yield from one(value, path, facts)

    return check


def forbidden_below(series: Release, text: str) -> Check:
    """A field that Kubernetes versions before `series` do not have."""

    def check(value: object, path: str, facts: RuleFacts) -> Iterator[FieldError]:
        if facts.below(series):
            yield forbidden(path, text)

    return check


def at(name: str, check: Check) -> Check:
    """A check whose problems Gardener reports at another name than the field's own."""

    def renamed(value: object, path: str, facts: RuleFacts) -> Iterable[FieldError]:
        return check(value, f"{path.rpartition('.')[0]}.{name}", facts)

    return renamed


@functools.lru_cache(maxsize=1024)
def nanoseconds(text: str) -> int:
    """A duration of a decoded Shoot. One that cannot be read counts as 0: decoding refuses it."""
    try:
        return durations.parse(text)
    except DurationError:
        return 0


def duration(value: str, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """A duration that is not negative."""
    if nanoseconds(value) < 0:
        yield invalid(path, value, "must be non-negative")


def whole_seconds(value: str, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """A duration that is not negative in whole seconds."""
    seconds = -(-nanoseconds(value) // durations.SECOND)
    if seconds < 0:
        yield invalid(path, seconds, NOT_NEGATIVE)


def lasting(
    text: str, *, least: int | None = None, most: int | None = None, shown: Callable[[str], object] = str
) -> Check:
    """A duration within bounds, in nanoseconds. A message has it as `shown` makes it of the text."""

    def check(value: str, path: str, facts: RuleFacts) -> Iterator[FieldError]:
        length = nanoseconds(value)
        if (least is not None and length < least) or (most is not None and length > most):
            yield invalid(path, shown(value), text)

    return check


@functools.lru_cache(maxsize=1024)
def quantity_of(text: str) -> Quantity:
    """A quantity of a decoded Shoot. One that cannot be read counts as 0: decoding refuses it."""
    try:
        return Quantity.parse(text)
    except QuantityError:
        return Quantity(0)


def quantity(value: str, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """A quantity that is not negative."""
    if quantity_of(value).amount < 0:
        yield invalid(path, value, NOT_NEGATIVE)


def label(value: str, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    for text in naming.dns_label(value):
        yield invalid(path, value, text)


def subdomain(value: str, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    for text in naming.dns_subdomain(value):
        yield invalid(path, value, text)


def label_name(value: str, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    for text in key_texts(value):
        yield invalid(path, value, text)


def labels(value: Mapping[str, str], path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """Keys and values of labels, all reported at the path of the map."""
    for key, text in value.items():
        yield from label_name(key, path, facts)
        for problem in value_texts(text):
            yield invalid(path, text, problem)


def annotation_keys(value: Mapping[str, str], path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """Keys of annotations, whose case does not count, and the size of all together."""
    for key in value:
        for text in key_texts(key.lower()):
            yield invalid(path, key, text)
    size = sum(len(part.encode("utf-8", "surrogatepass")) for pair in value.items() for part in pair)
    if size > ANNOTATIONS_LIMIT:
        yield FieldError(path, f"Too long: may not be more than {ANNOTATIONS_LIMIT} bytes", "FieldValueTooLong")


ANNOTATIONS_LIMIT: Final = 256 << 10
"""Bytes of all keys and values (k8s.io/apimachinery, pkg/api/validation)."""


def key_texts(key: str) -> list[str]:
    """Problems of the key of a label, in the words of Kubernetes 1.36's library, which Gardener is built with."""
    return [_in_bytes(text).replace("a qualified name", "a valid label key") for text in naming.qualified_name(key)]


def value_texts(value: str) -> list[str]:
    """Problems of the value of a label, in the same words."""
    return [_in_bytes(text) for text in naming.label_value(value)]


def _in_bytes(text: str) -> str:
    return f"{text.removesuffix(' characters')} bytes" if text.endswith(" characters") else text


def filled(text: str) -> Check:
    """A field that must not be empty."""

    def check(value: object, path: str, facts: RuleFacts) -> Iterator[FieldError]:
        if not value:
            yield required(path, text)

    return check
