"""The differences of two states of an object, field by field, with the values of Secrets masked.

A list whose items have names, keys or types is compared item by item, whatever their order; any other list by place.
The server's bookkeeping is left out: it changes with every write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

MASKED: Final = "(masked)"
_BOOKKEEPING: Final = (
    "metadata.resourceVersion",
    "metadata.managedFields",
    "metadata.generation",
    "metadata.uid",
    "metadata.creationTimestamp",
    "metadata.selfLink",
    "status.observedGeneration",
)
_TIMES: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z\Z")
_NAMES: Final = ("name", "type", "key", "cluster", "path")
LONGEST: Final = 200
"""Characters of a value that a plan shows."""
_SECRET_KINDS: Final = frozenset({"Secret"})
_SECRET_PARTS: Final = ("data.", "stringData.")
_SECRET_WORDS: Final = re.compile(r"password|token|secretkey|privatekey|client-key|agentkey|downloadkey", re.IGNORECASE)
_APPLIED: Final = "metadata.annotations.kubectl.kubernetes.io/last-applied-configuration"


class FieldDifference(NamedTuple):
    """One field; None where it is absent on that side."""

    path: str
    before: Any
    after: Any


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any], *, longest: int = LONGEST
) -> Iterator[FieldDifference]:
    """The fields that differ, without times and bookkeeping; of a text the first `longest` characters."""
    is_secret = (after.get("kind") or before.get("kind")) in _SECRET_KINDS
    for path, old, new in _walk("", before, after):
        if path.startswith(_BOOKKEEPING) or path.endswith(".observedGeneration"):
            continue
        if _is_time(old) and _is_time(new):
            continue
        if _is_confidential(path, is_secret=is_secret):
            old, new = (None if value is None else MASKED for value in (old, new))
        yield FieldDifference(path, _short(old, longest), _short(new, longest))


def _is_confidential(path: str, *, is_secret: bool) -> bool:
    if is_secret and (path.startswith(_SECRET_PARTS) or path in ("data", "stringData") or path == _APPLIED):
        return True
    return path == _APPLIED or _SECRET_WORDS.search(path.rpartition(".")[2]) is not None


def _walk(path: str, old: Any, new: Any) -> Iterator[FieldDifference]:
    if old == new:
        return
    if isinstance(old, Mapping | None) and isinstance(new, Mapping | None) and (old or new):
        left, right = old or {}, new or {}
        for key in sorted({*left, *right}):
            yield from _walk(f"{path}.{key}" if path else str(key), left.get(key), right.get(key))
    elif isinstance(old, list | None) and isinstance(new, list | None) and (old or new):
        left_items, right_items = _items(old or []), _items(new or [])
        if left_items is None or right_items is None:
            left_items, right_items = _placed(old or []), _placed(new or [])
        for key in dict.fromkeys([*left_items, *right_items]):
            yield from _walk(f"{path}[{key}]", left_items.get(key), right_items.get(key))
    else:
        yield FieldDifference(path, old, new)


def _items(items: Sequence[Any]) -> dict[str, Any] | None:
    """The items by the field that names them; None where none does."""
    if not items:
        return {}
    for field in _NAMES:
        names = [item.get(field) if isinstance(item, Mapping) else None for item in items]
        if all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
            return dict(zip(names, items, strict=True))  # type: ignore[arg-type]
    return None


def _placed(items: Sequence[Any]) -> dict[str, Any]:
    return {str(index): item for index, item in enumerate(items)}


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and _TIMES.match(value) is not None


def _short(value: Any, longest: int) -> Any:
    return f"{value[:longest]}…" if isinstance(value, str) and len(value) > longest else value
