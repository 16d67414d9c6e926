"""The shared parts of printers: paths, ages, lists of text, selectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hortus.kube.objects import Object, parse_time

Cell = str | int | bool | None
Printer = Callable[[Object, float], Cell]

NONE = "<none>"
UNKNOWN = "<unknown>"
UNSET = "<unset>"

_ABSENT: dict[str, Cell] = {
    "": "",
    "int": 0,
    "bool": False,
    "none": NONE,
    "unknown": UNKNOWN,
    "unset": UNSET,
    "na": "N/A",
}


def look(obj: Mapping[str, Any], *path: str) -> Any:
    """The value below `path`, None when any part is missing."""
    found: Any = obj
    for step in path:
        if not isinstance(found, Mapping):
            return None
        found = found.get(step)
    return found


def items(obj: Mapping[str, Any], *path: str) -> list[Any]:
    """The list below `path`, empty when there is none."""
    return look(obj, *path) or []


def path_printer(word: str) -> Printer:
    """The printer of `.a.b/type`: the value there, or the default of its type when there is none."""
    path, _, kind = word.partition("/")
    steps, absent = path.removeprefix(".").split("."), _ABSENT[kind]
    as_bool = kind == "bool" and word.startswith(".spec.suspend")

    def cell(obj: Object, now: float) -> Cell:
        value = look(obj, *steps)
        if value is None or value == "":
            value = absent
        if as_bool:
            return "True" if value else "False"
        return value if isinstance(value, (str, int, bool)) else str(value)

    return cell


def short_duration(seconds: float) -> str:
    """A span as kubectl shows it: `5s`, `3m20s`, `15m`, `2h5m`, `13h`, `3d4h`, `20d`, `2y30d`, `9y`.

    The precision falls with the length, as in apimachinery's HumanDuration.
    """
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def since(stamp: object, now: float) -> str:
    """The age of an RFC 3339 time; `<unknown>` without one."""
    if not isinstance(stamp, str) or not stamp:
        return UNKNOWN
    return short_duration(now - parse_time(stamp))


def age(obj: Object, now: float) -> Cell:
    return since(look(obj, "metadata", "creationTimestamp"), now)


def joined(values: Iterable[object], empty: str = "") -> str:
    return ",".join(str(value) for value in values) or empty


def label_pairs(labels: Mapping[str, str] | None) -> str:
    """`a=b,c=d`, sorted; `<none>` when there are none."""
    return joined((f"{key}={value}" for key, value in sorted((labels or {}).items())), NONE)


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """A LabelSelector in the text form of a list request; `<none>` when it selects everything."""
    if not selector:
        return NONE
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    terms = selector.get("matchExpressions") or []
    parts += [_term(term["key"], term["operator"], term.get("values") or []) for term in terms]
    return ",".join(sorted(parts)) or NONE


def _term(key: str, operator: str, values: list[str]) -> str:
    if operator in ("In", "NotIn"):
        return f"{key} {operator.lower()} ({','.join(sorted(values))})"
    return f"!{key}" if operator == "DoesNotExist" else key
