"""Maintenance windows: the times in which a module may be upgraded to a version that needs a downtime.

A policy is a JSON file: `rules`, each with regular expressions on labels of the Kyma (`match`) and `windows`, and a
`default` window. The first rule with a match decides; the default stands in where it has no window left.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from hortus.domains.modules.names import Label
from hortus.kube.objects import parse_time

LABELS: Final = {
    "globalaccountid": Label.GLOBAL_ACCOUNT_ID,
    "plan": Label.PLAN,
    "region": Label.REGION,
    "platformregion": Label.PLATFORM_REGION,
}
"""By the name in `match`, in small letters: case does not matter in these files."""
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_LOOK_AHEAD: Final = 8
"""Days. A window of one weekday is found in it, whatever the day and the zone."""


_T = TypeVar("_T")


class WindowPolicyError(ValueError):
    """A policy that cannot be used; the text names the field and the fix."""


class WindowUnknown(Exception):
    """No window is known for a Kyma."""


class WindowSpan(NamedTuple):
    """A time span, in seconds since the epoch."""

    begin: float
    end: float


class _Absolute(NamedTuple):
    window: WindowSpan

    def occurrences(self, now: float) -> Iterator[WindowSpan]:
        yield self.window


class _Weekly(NamedTuple):
    days: frozenset[int]
    begin: time
    end: time

    def occurrences(self, now: float) -> Iterator[WindowSpan]:
        """The windows in order of time, from that of the day before, which may reach into this one."""
        today = datetime.fromtimestamp(now, self.begin.tzinfo or UTC).date()
        for offset in range(-1, _LOOK_AHEAD + 1):
            day = today + timedelta(days=offset)
            if day.weekday() in self.days:
                yield self._on(day)

    def _on(self, day: date) -> WindowSpan:
        begin, end = datetime.combine(day, self.begin), datetime.combine(day, self.end)
        if end <= begin:
            end += timedelta(days=1)
        return WindowSpan(begin.timestamp(), end.timestamp())


_Recurrence = _Absolute | _Weekly


class _Document(msgspec.Struct):
    rules: Any = None
    default: Any = None


class _RuleFields(msgspec.Struct):
    match: Any = None
    windows: Any = None


class _MatchFields(msgspec.Struct):
    globalaccountid: Any = None
    plan: Any = None
    region: Any = None
    platformregion: Any = None


class _WindowFields(msgspec.Struct):
    days: Any = None
    begin: Any = None
    end: Any = None


class _Rule(NamedTuple):
    match: Mapping[str, re.Pattern[str]]
    """By the key of the label; one match is enough."""
    windows: Sequence[_Recurrence]

    def matches(self, labels: Mapping[str, str]) -> bool:
        return any(labels.get(key) and expression.search(labels[key]) for key, expression in self.match.items())


class MaintenancePolicy:
    """The maintenance windows of all Kymas."""

    def __init__(self, rules: Sequence[_Rule], default: _Recurrence | None, minimum: float) -> None:
        self._rules = rules
        self._default = default
        self._minimum = minimum

    @classmethod
    def read(cls, document: bytes, *, minimum: float) -> MaintenancePolicy:
        """`minimum` is the time in seconds that must be left of a window. Raises WindowPolicyError."""
        try:
            loaded = json.loads(document)
        except ValueError as error:
            raise WindowPolicyError(f"the maintenance policy is not JSON: {error}") from None
        policy = _read(loaded, _Document, "the maintenance policy")
        rules = [_rule(rule, f"rules[{number}]") for number, rule in enumerate(policy.rules or ())]
        try:
            default = _recurrence(policy.default, "default")
        except WindowPolicyError:
            # A default that names no times leaves the Kymas that no rule serves without a window.
            default = None
        return cls(rules, default, minimum)

    def window(self, labels: Mapping[str, str], now: float) -> WindowSpan:
        """The window of a Kyma with these labels that is active or comes next. Raises WindowUnknown."""
        rule = next((rule for rule in self._rules if rule.matches(labels)), None)
        recurrences: list[_Recurrence] = [*rule.windows] if rule else []
        if self._default is not None:
            recurrences.append(self._default)
        for recurrence in recurrences:
            for window in recurrence.occurrences(now):
                if window.end > now + self._minimum:
                    return window
        raise WindowUnknown("the maintenance policy has no window for this Kyma, neither in a rule nor by default")

    def active(self, labels: Mapping[str, str], now: float) -> bool:
        """Reports whether a Kyma with these labels may be maintained now. Raises WindowUnknown."""
        window = self.window(labels, now)
        return window.begin <= now < window.end


def _read(value: Any, shape: type[_T], where: str) -> _T:
    """Reads an object whose names have any case."""
    if not isinstance(value, dict):
        raise WindowPolicyError(f"{where} must be an object")
    return msgspec.convert({name.lower(): item for name, item in value.items()}, shape)


def _rule(value: Any, where: str) -> _Rule:
    fields = _read(value, _RuleFields, where)
    expressions = {}
    match = msgspec.structs.asdict(_read(fields.match or {}, _MatchFields, f"{where}.match"))
    for name, text in match.items():
        if text:
            try:
                expressions[LABELS[name]] = re.compile(text)
            except (re.error, TypeError) as error:
                message = f"{where}.match.{name}: {text!r} is no regular expression: {error}"
                raise WindowPolicyError(message) from None
    windows = fields.windows or ()
    return _Rule(expressions, [_recurrence(one, f"{where}.windows[{at}]") for at, one in enumerate(windows)])


def _recurrence(value: Any, where: str) -> _Recurrence:
    fields = _read(value, _WindowFields, where)
    for name, text in (("begin", fields.begin), ("end", fields.end)):
        if not isinstance(text, str):
            raise WindowPolicyError(f"{where}.{name} is missing")
    try:
        if fields.days:
            return _Weekly(_weekdays(fields.days), _time(fields.begin), _time(fields.end))
        return _Absolute(WindowSpan(parse_time(fields.begin), parse_time(fields.end)))
    except (ValueError, AttributeError) as error:
        hint = "write times as 21:00:00Z with days, as 2026-01-31T21:00:00Z without"
        raise WindowPolicyError(f"{where}: {error}; {hint}") from None


def _weekdays(days: Sequence[str]) -> frozenset[int]:
    return frozenset(_DAYS.index(day.lower()) for day in days)


def _time(text: str) -> time:
    found = time.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"time {text!r} has no zone")
    return found
