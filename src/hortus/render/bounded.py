"""A cache that is bounded by what its entries weigh, the least recently used forgotten first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Bounded(Generic[K, V]):
    """Keeps entries as long as their `weight` (bytes, or what the caller counts in) adds up to at most `limit`."""

    def __init__(self, limit: int, weight: Callable[[K, V], int]) -> None:
        self._limit = limit
        self._weight = weight
        self._size = 0
        self._found: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        found = self._found.get(key)
        if found is not None:
            self._found.move_to_end(key)
        return found

    def put(self, key: K, value: V) -> None:
        """Keep a value in place of what was there. One that is heavier than everything together may be is not kept."""
        self.forget(key)
        weight = self._weight(key, value)
        if weight > self._limit:
            return
        self._found[key] = value
        self._size += weight
        while self._size > self._limit:
            oldest, dropped = self._found.popitem(last=False)
            self._size -= self._weight(oldest, dropped)

    def forget(self, key: K) -> None:
        dropped = self._found.pop(key, None)
        if dropped is not None:
            self._size -= self._weight(key, dropped)

    @property
    def size(self) -> int:
        """The weight of all entries."""
        return self._size

    def __len__(self) -> int:
        return len(self._found)
