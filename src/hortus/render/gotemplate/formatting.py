"""Go's fmt for the values of templates: Sprint, Sprintln and Sprintf with all verbs and flags.

What a verb cannot print comes out as in Go, `%!d(string=x)`, never as an error.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from hortus.render.gotemplate.errors import FunctionError
from hortus.render.gotemplate.values import ABSENT, type_name
from hortus.render.gotemplate.verbs import Flags, argument, text_of

_TOO_LARGE = 1_000_000
"""Largest width or precision; Go's own bound."""
_LONGEST_PADDING = 1 << 20
_VERB = re.compile(r"%([+\-# 0]*)(?:(\d+)|(\*))?(?:(\.)(?:(\d+)|(\*))?)?(.)?", re.DOTALL)


def sprint(values: Sequence[Any]) -> str:
    """fmt.Sprint: blanks between operands when neither is a string."""
    if len(values) == 1:
        return text_of(values[0])
    parts: list[str] = []
    for index, value in enumerate(values):
        if index and type(value) is not str and type(values[index - 1]) is not str:
            parts.append(" ")
        parts.append(text_of(value))
    return "".join(parts)


def sprintln(values: Sequence[Any]) -> str:
    """fmt.Sprintln."""
    return " ".join(map(text_of, values)) + "\n"


def sprintf(template: str, values: Sequence[Any]) -> str:
    """fmt.Sprintf."""
    return _Printer(template, values).run()


class _Printer:
    def __init__(self, template: str, values: Sequence[Any]) -> None:
        self.template = template
        self.values = values
        self.number = 0
        self.reordered = False
        self.out: list[str] = []

    def run(self) -> str:
        at, text = 0, self.template
        while (begin := text.find("%", at)) >= 0:
            self.out.append(text[at:begin])
            at = self._directive(begin)
        self.out.append(text[at:])
        if not self.reordered and self.number < len(self.values):
            extra = ", ".join(
                "<nil>" if value is None or value is ABSENT else f"{type_name(value)}={text_of(value)}"
                for value in self.values[self.number :]
            )
            self.out.append(f"%!(EXTRA {extra})")
        return "".join(self.out)

    def _directive(self, begin: int) -> int:
        found = _VERB.match(self.template, begin)
        if found is None or "[" in self.template[begin : found.end()]:
            return self._indexed(begin)
        flags = Flags(found[1])
        if flags.minus:
            flags.zero = False
        if found[2]:
            flags.width = self._bounded(found[2], "WIDTH")
        elif found[3]:
            self._star_width(flags)
        if found[4]:
            flags.precision = self._bounded(found[5], "PREC") if found[5] else 0
            if found[6]:
                self._star_precision(flags)
        self._verb(found[7], flags)
        return found.end()

    def _indexed(self, begin: int) -> int:
        """The slow way: argument indexes in brackets."""
        at, text = begin + 1, self.template
        start = at
        while at < len(text) and text[at] in "+-# 0":
            at += 1
        flags = Flags(text[start:at])
        at, good, after = self._index(at)
        starred = text[at : at + 1] == "*"
        at, given = self._size(at, flags, width=True)
        after = after and not starred
        if after and given:
            good = False
        if text[at : at + 1] == ".":
            good = good and not after
            at, index_good, after = self._index(at + 1)
            good = good and index_good
            at, given = self._size(at, flags, width=False)
            if not given:
                flags.precision = 0
        at, index_good, _ = self._index(at)
        good = good and index_good
        verb = text[at : at + 1]
        if not good and verb and verb != "%":
            self.out.append(f"%!{verb}(BADINDEX)")
            return at + 1
        self._verb(verb or None, flags)
        return at + 1

    def _index(self, at: int) -> tuple[int, bool, bool]:
        if self.template[at : at + 1] != "[":
            return at, True, False
        self.reordered = True
        end = self.template.find("]", at)
        if end < 0:
            return at + 1, False, False
        digits = self.template[at + 1 : end]
        if digits.isascii() and digits.isdigit() and 1 <= int(digits) <= len(self.values):
            self.number = int(digits) - 1
            return end + 1, True, True
        return end + 1, False, True

    def _size(self, at: int, flags: Flags, *, width: bool) -> tuple[int, bool]:
        text = self.template
        if text[at : at + 1] == "*":
            (self._star_width if width else self._star_precision)(flags)
            return at + 1, True
        end = at
        while text[end : end + 1].isdigit():
            end += 1
        if end == at:
            return at, False
        found = self._bounded(text[at:end], "WIDTH")
        if width:
            flags.width = found
        else:
            flags.precision = found
        return end, True

    def _bounded(self, digits: str, _name: str) -> int | None:
        return int(digits) if len(digits) < 8 and int(digits) <= _TOO_LARGE else None

    def _star(self) -> int | None:
        value = self.values[self.number] if self.number < len(self.values) else None
        self.number += 1
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _TOO_LARGE:
            return int(value)
        return None

    def _star_width(self, flags: Flags) -> None:
        flags.width = self._star()
        if flags.width is None:
            self.out.append("%!(BADWIDTH)")
        elif flags.width < 0:
            flags.width, flags.minus, flags.zero = -flags.width, True, False

    def _star_precision(self, flags: Flags) -> None:
        flags.precision = self._star()
        if flags.precision is not None and flags.precision < 0:
            flags.precision = None
        elif flags.precision is None:
            self.out.append("%!(BADPREC)")

    def _verb(self, verb: str | None, flags: Flags) -> None:
        if not verb:
            self.out.append("%!(NOVERB)")
        elif verb == "%":
            self.out.append("%")
        elif self.number >= len(self.values):
            self.out.append(f"%!{verb}(MISSING)" if not self.reordered else f"%!{verb}(BADINDEX)")
        else:
            value = self.values[self.number]
            self.number += 1
            if (flags.width or 0) > _LONGEST_PADDING or (flags.precision or 0) > _LONGEST_PADDING:
                raise FunctionError("printf: width or precision is larger than this renderer allows")
            if verb == "v":
                flags.sharp_v, flags.sharp = flags.sharp, False
                flags.plus_v, flags.plus = flags.plus, False
            self.out.append(argument(value, verb, flags))


__all__ = ["sprint", "sprintf", "sprintln", "text_of"]
