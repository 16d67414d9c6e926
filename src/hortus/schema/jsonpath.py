r"""JSONPath as kubectl and CRDs write it: one path for table columns, whole templates for `-o jsonpath`.

    JsonPath.parse(r".metadata.labels.kyma-project\.io/shoot-name").find(obj)     # ["s-1"]
    JsonPathTemplate.parse('{range .items[*]}{.metadata.name}{"\n"}{end}').render(objects)

A path is a chain of steps, each mapping a list of values to a list of values. The dialect is client-go's
(kubernetes.io/docs/reference/kubectl/jsonpath): negative indexes, slices, unions, wildcards, `..` descent and filters
with one comparison. As there, dots inside `['a.b']` separate fields unless escaped, and a field that is absent yields
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from hortus.schema.jsonpathsteps import (
    COMPARISONS,
    JsonPathError,
    Step,
    Walk,
    chain,
    constant,
    descend,
    element,
    every_member,
    itself,
    member,
    printed,
    sliced,
    where,
    where_compared,
)

__all__ = ["JsonPath", "JsonPathError", "JsonPathTemplate", "printed"]


MOST_VALUES = 150_000
"""Values that the search for one value passes, about 0.1 s."""
_MOST_VALUES_FOR_ALL = 10_000_000
"""Values that the search for all values passes, some seconds of the user's own."""


class JsonPath:
    """One path below an object."""

    __slots__ = ("_steps", "text")

    def __init__(self, text: str, steps: tuple[Step, ...]) -> None:
        self.text = text
        self._steps = steps

    @classmethod
    def parse(cls, text: str) -> JsonPath:
        """A path, with or without braces around it. Raises JsonPathError."""
        bare = text.strip()
        if bare.startswith("{") and bare.endswith("}"):
            bare = bare[1:-1]
        scanner = _Scanner(bare)
        steps = scanner.steps()
        if not scanner.at_end():
            raise JsonPathError(f"unexpected {scanner.rest()!r} in {text!r}")
        return cls(text, tuple(steps))

    def find(self, obj: Any) -> list[Any]:
        """Every value the path leads to. Raises JsonPathError where a list was expected and is none."""
        return _run(self._steps, obj)

    def first(self, obj: Any) -> Any:
        """The first value, or None when there is none or the path does not fit the object.

        The cost is linear in the object, and bounded by `MOST_VALUES`: a path may be untrusted.
        """
        try:
            found = Walk(MOST_VALUES, thin=True).run(self._steps, [obj])
        except JsonPathError:
            return None
        return found[0] if found else None


class _Range(NamedTuple):
    path: tuple[Step, ...]
    body: tuple[_Part, ...]


_Part = str | tuple[Step, ...] | _Range


class JsonPathTemplate:
    """Text with paths in braces, as `-o jsonpath=` takes it."""

    __slots__ = ("_parts",)

    def __init__(self, parts: tuple[_Part, ...]) -> None:
        self._parts = parts

    @classmethod
    def parse(cls, text: str) -> JsonPathTemplate:
        """Parses the text. Raises JsonPathError, which names the part that is wrong."""
        return cls(_Blocks(text).parse())

    def render(self, obj: Any) -> str:
        return "".join(_rendered(self._parts, obj))


def _rendered(parts: tuple[_Part, ...], obj: Any) -> Iterable[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, _Range):
            for value in _run(part.path, obj):
                yield from _rendered(part.body, value)
        else:
            yield " ".join(map(printed, _run(part, obj)))


def _run(steps: tuple[Step, ...], obj: Any) -> list[Any]:
    return Walk(_MOST_VALUES_FOR_ALL, thin=False).run(steps, [obj])


class _Blocks:
    """Splits a template into text, actions and ranges."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._pos = 0
        self._open = 0

    def parse(self) -> tuple[_Part, ...]:
        parts: list[_Part] = []
        while self._pos < len(self._text):
            brace = self._text.find("{", self._pos)
            if brace != self._pos:
                end = len(self._text) if brace < 0 else brace
                parts.append(self._text[self._pos : end])
                self._pos = end
                continue
            if self._action(parts):
                return tuple(parts)
        return tuple(parts)

    def _action(self, parts: list[_Part]) -> bool:
        """Parse one `{…}`; True for the `{end}` of the open range."""
        scanner = _Scanner(self._text, self._pos + 1)
        scanner.spaces()
        word = scanner.word()
        steps = tuple(scanner.steps())
        if not scanner.take("}"):
            raise JsonPathError(f"unclosed action or unexpected text at {scanner.rest()!r}")
        self._pos = scanner.pos
        if word == "end":
            if not self._open:
                raise JsonPathError("not in range, nothing to end")
            self._open -= 1
            return True
        if word == "range":
            self._open += 1
            parts.append(_Range(steps, self.parse()))
        elif word:
            raise JsonPathError(f"unrecognized identifier {word}")
        else:
            parts.append(steps)
        return False


_WORD = re.compile(r"(?!true\b|false\b)[A-Za-z_]\w*")
_FIELD = re.compile(r"(?:\\.|[^\\\s.,\[\]$@{}])+")
_FILTER_FIELD = re.compile(r"(?:\\.|[^\\\s.,\[\]$@{}!=<>()])+")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_SLICE = re.compile(r"(-?\d+)?(:(-?\d+)?)?(:(-?\d+)?)?")
_OPERATOR = re.compile(r"[!<>=]+")
_QUOTED = re.compile(r"'((?:\\.|[^'\\\n])*)'|\"((?:\\.|[^\"\\\n])*)\"")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class _Scanner:
    def __init__(self, text: str, pos: int = 0, *, field: re.Pattern[str] = _FIELD) -> None:
        self._text = text
        self.pos = pos
        self._field = field

    def at_end(self) -> bool:
        return self.pos >= len(self._text)

    def rest(self) -> str:
        return self._text[self.pos : self.pos + 20]

    def spaces(self) -> None:
        while self._text[self.pos : self.pos + 1] in (" ", "\t"):
            self.pos += 1

    def take(self, literal: str) -> bool:
        if self._text.startswith(literal, self.pos):
            self.pos += len(literal)
            return True
        return False

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self.pos)
        if found is not None:
            self.pos = found.end()
        return found

    def word(self) -> str:
        found = self.match(_WORD)
        return found.group() if found else ""

    def steps(self) -> list[Step]:
        """Steps up to the first character that begins none; the caller checks that it is the end."""
        steps: list[Step] = []
        while (step := self._step(first=not steps)) is not None:
            steps.append(step)
        return steps

    def _step(self, *, first: bool) -> Step | None:
        self.spaces()
        if self.take("@") or self.take("$"):
            return itself
        if self.take(".."):
            return self._descent()
        if self.take("[?("):
            return self._filter()
        if self.take("["):
            return self._bracket()
        if self.take("."):
            return self._named() or itself
        if (quoted := self.match(_QUOTED)) is not None:
            return constant(_unquoted(quoted))
        if first and (number := self.match(_NUMBER)) is not None:
            text = number.group()
            return constant(float(text) if "." in text else int(text))
        if first and (self.take("true") or self.take("false")):
            return constant(self._text[self.pos - 4 : self.pos] == "true")
        return None

    def _named(self) -> Step | None:
        found = self.match(self._field)
        if found is None:
            return None
        name = found.group()
        return every_member if name == "*" else member(name.replace("\\", ""))

    def _descent(self) -> Step:
        if self._text.startswith("..", self.pos):
            raise JsonPathError("invalid multiple recursive descent")
        named = self._named()
        return descend if named is None else lambda values, walk: named(descend(values, walk), walk)

    def _bracket(self) -> Step:
        branches = [self._subscript()]
        while self.take(","):
            branches.append(self._subscript())
        if not self.take("]"):
            raise JsonPathError(f"invalid array index at {self.rest()!r}")
        if len(branches) == 1:
            return branches[0]
        return lambda values, walk: [value for branch in branches for value in branch(values, walk)]

    def _subscript(self) -> Step:
        self.spaces()
        if self._text.startswith("*", self.pos):
            self.pos += 1
            step: Step = sliced(None, None, None)
        elif (quoted := self.match(_QUOTED)) is not None:
            step = chain(_Scanner("." + (quoted.group(1) or quoted.group(2) or "")).steps())
        else:
            found = self.match(_SLICE)
            if found is None or not found.group():
                raise JsonPathError(f"invalid array index at {self.rest()!r}")
            start, ranged, stop, _, stride = found.groups()
            step = sliced(*map(_whole, (start, stop, stride))) if ranged else element(int(start))
        self.spaces()
        return step

    def _filter(self) -> Step:
        left = self._operand()
        self.spaces()
        operator = self.match(_OPERATOR)
        if operator is None:
            step = where(left)
        else:
            if operator.group() not in COMPARISONS:
                raise JsonPathError(f"unrecognized filter operator {operator.group()}")
            step = where_compared(left, COMPARISONS[operator.group()], self._operand())
        self.spaces()
        if not self.take(")]"):
            raise JsonPathError(f"unterminated filter at {self.rest()!r}")
        return step

    def _operand(self) -> Step:
        inner = _Scanner(self._text, self.pos, field=_FILTER_FIELD)
        steps = inner.steps()
        if not steps:
            raise JsonPathError(f"filter lacks an operand at {self.rest()!r}")
        self.pos = inner.pos
        return chain(steps)


def _whole(text: str | None) -> int | None:
    return int(text) if text else None


def _unquoted(quoted: re.Match[str]) -> str:
    body = quoted.group(1) if quoted.group(1) is not None else quoted.group(2)
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m.group(1), m.group(1)), body)
