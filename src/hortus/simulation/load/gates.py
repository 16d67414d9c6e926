"""Conditions that a run must meet before a release goes out: `p99(time_to_ready) <= 30s`, `failures == 0`.

    quantity operator number[unit]        quantity: a name, or function(name)

What was not measured breaks a gate: a release is not let through because a metrics page could not be read.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable

import msgspec

QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
FUNCTIONS = (*QUANTILES, "min", "max", "mean", "count", "memory", "cpu")
DISTRIBUTIONS = ("time_to_ready", "time_to_rotated", "time_to_healed", "time_to_gone", "queue_time", "calls")
SCALARS = ("objects", "ready", "failures", "errors", "seconds", "throughput", "calls_per_object", "bytes_per_object")
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_UNITS = {
    "": 1.0,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "%": 0.01,
    "/s": 1.0,
}
_GATE = re.compile(
    r"\s*(?:(?P<function>\w+)\s*\(\s*(?P<inner>[\w.-]+)\s*\)|(?P<name>[\w.]+))"
    r"\s*(?P<operator><=|>=|==|!=|<|>)\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z%/]*)\s*\Z"
)
Measured = Callable[[str, str], float | None]
"""(function or empty, name) -> the value in seconds, bytes or a plain number; None where it was not measured."""


class GateError(Exception):
    """The expression is no gate; the message says what is expected."""


class Gate(msgspec.Struct, frozen=True):
    """One parsed gate."""

    text: str
    function: str
    name: str
    operator: str
    limit: float
    """In seconds, bytes or as a plain number."""
    fails_if: bool = False
    """True when the gate is broken while the comparison is true, not when it is false."""

    @classmethod
    def parse(cls, text: str, *, fails_if: bool = False) -> Gate:
        """Raises GateError."""
        found = _GATE.match(text)
        if found is None:
            raise GateError(f"{text!r} is no gate; expected is such as 'p99(time_to_ready) <= 30s' or 'failures == 0'")
        function, name = found["function"] or "", found["inner"] or found["name"]
        if function:
            _known(function, FUNCTIONS, f"{text!r}: function")
            if function not in ("memory", "cpu"):
                _known(name.partition(".")[0], DISTRIBUTIONS, f"{text!r}: distribution")
        else:
            if name in FUNCTIONS:
                of = "controllers" if name in ("memory", "cpu") else DISTRIBUTIONS[0]
                raise GateError(f"{text!r}: {name} of what? Expected is such as {name}({of})")
            _known(name, SCALARS, f"{text!r}: quantity")
        if found["unit"] not in _UNITS:
            raise GateError(
                f"{text!r}: unit {found['unit']!r} is not known; there are: {', '.join(filter(None, _UNITS))}"
            )
        limit = float(found["number"]) * _UNITS[found["unit"]]
        return cls(text.strip(), function, name, found["operator"], limit, fails_if)

    def judge(self, measured: Measured) -> Verdict:
        """The verdict on a run."""
        value = measured(self.function, self.name)
        if value is None:
            return Verdict(self.shown, None, passed=False)
        return Verdict(self.shown, value, passed=_OPERATORS[self.operator](value, self.limit) != self.fails_if)

    @property
    def shown(self) -> str:
        """The value as a person reads it."""
        return f"not {self.text}" if self.fails_if else self.text


class Verdict(msgspec.Struct, frozen=True):
    """The result of a gate."""

    gate: str
    value: float | None
    """None: it was not measured, which does not pass."""
    passed: bool


def _known(word: str, words: tuple[str, ...], what: str) -> None:
    if word not in words:
        close = difflib.get_close_matches(word, words, n=1)
        hint = f", did you mean {close[0]}?" if close else ""
        raise GateError(f"{what} {word!r} is not known{hint}; there are: {', '.join(words)}")
