"""Values of options: durations, numbers, output formats. Each refuses a text in the words of its user."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from hortus.terminal.output import OutputFormat

_DAY = 86400.0


class Duration(click.ParamType[float]):
    """Seconds, from a text such as `30s`, `1h30m` or `30d`; a number alone is seconds."""

    name = "duration"

    def __init__(self, *, least: float = 0.1) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from hortus.kube import durations

        try:
            found = _number(str(value)) or _with_days(str(value))
        except durations.DurationError:
            self.fail(f"{value!r} is not a duration such as 30s or 1h30m", param, ctx)
        if found < self._least:
            self.fail(f"{value!r} is less than {durations.from_seconds(self._least)}", param, ctx)
        return found


class Number(click.IntRange):
    """A whole number between two bounds."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            bounds = f"{self.min} or more" if self.max is None else f"{self.min} to {self.max}"
            self.fail(f"{value!r} is not a whole number, {bounds}", param, ctx)


class OutputChoice(click.ParamType[OutputFormat]):
    """One of the output formats that a command has."""

    name = "format"

    def __init__(self, formats: Sequence[str]) -> None:
        """Each format by its name; `jsonpath=TEMPLATE` for one that takes an argument."""
        self._formats = formats

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> OutputFormat:
        if isinstance(value, OutputFormat):
            return value
        name, _, argument = str(value).partition("=")
        form = next((known for known in self._formats if known.partition("=")[0] == name), None)
        if form is None or (argument and "=" not in form):
            self.fail(f"{value!r} is not a format of this command: {listed(self._formats)}", param, ctx)
        if "=" in form and not argument:
            self.fail(f"{name} needs an argument: -o {form}", param, ctx)
        return OutputFormat(name, argument)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        names = (known.partition("=")[0] + ("=" if "=" in known else "") for known in self._formats)
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def listed(words: Sequence[str]) -> str:
    """`a, b or c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _with_days(text: str) -> float:
    """Seconds of a Go duration before which days may stand, as in `1d12h`. Raises DurationError."""
    from hortus.kube import durations

    days, mark, rest = text.partition("d")
    if not mark or not days.isdecimal():
        return durations.seconds(text)
    return int(days) * _DAY + (durations.seconds(rest) if rest else 0.0)


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None
