"""Values of Kubernetes' own CEL types, as maps with one marked key: the library accepts no foreign types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Tagged = dict[str, Any]
"""One marked key, such as `@quantity`, and the canonical form of the value, so that equal values are equal maps."""


def body(value: Tagged, tag: str) -> Any:
    """The content of `value` under `tag`. Raises CelError for a value of another type."""
    if tag not in value:
        raise ValueError("no such overload")
    return value[tag]


def parses(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    """Reports whether `parse` accepts a text."""

    def holds(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return holds
