"""Whether a cron schedule makes sense: five fields or an @-word, as the cron library of Kubernetes reads them."""

from __future__ import annotations

_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("dom", 1, 31), ("month", 1, 12), ("dow", 0, 6))
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NAMES = {
    "month": {name: place + 1 for place, name in enumerate(_MONTHS)},
    "dow": dict(zip(_DAYS, range(7), strict=True)),
}
_WORDS = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})


def schedule_problem(schedule: str) -> str:
    """What is wrong with a schedule; empty when nothing is."""
    if "TZ=" in schedule:
        return "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
    if schedule.startswith("@"):
        known = schedule in _WORDS or schedule.startswith("@every ")
        return "" if known else f"unrecognized descriptor: {schedule}"
    parts = schedule.split()
    if len(parts) != len(_FIELDS):
        return f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]"
    problems = (_field(part, *bounds) for part, bounds in zip(parts, _FIELDS, strict=True))
    return next((problem for problem in problems if problem), "")


def _field(text: str, name: str, low: int, high: int) -> str:
    problems = (_range(part, name, low, high) for part in text.split(","))
    return next((problem for problem in problems if problem), "")


def _range(text: str, name: str, low: int, high: int) -> str:
    span, _, step = text.partition("/")
    if step and not (step.isascii() and step.isdigit()):
        return f"failed to parse int from {step}"
    if step and not step.strip("0"):
        return f"step of range should be a positive number: {text}"
    if span in ("*", "?"):
        return ""
    ends = [_number(end, name) for end in span.split("-")]
    if None in ends or len(ends) > 2:
        return f"failed to parse int from {span}" if len(ends) <= 2 else f"too many hyphens: {text}"
    start, end = ends[0] or 0, ends[-1] or 0
    if start < low:
        return f"beginning of range ({start}) below minimum ({low}): {text}"
    if end > high:
        return f"end of range ({end}) above maximum ({high}): {text}"
    return f"beginning of range ({start}) beyond end of range ({end}): {text}" if start > end else ""


def _number(text: str, name: str) -> int | None:
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    return _NAMES.get(name, {}).get(text.lower())
