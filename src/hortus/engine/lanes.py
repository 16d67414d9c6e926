"""The order inside one priority of a queue: first come first served, or fair between flows.

A flow is whatever must not starve others: a remote cluster, a tenant. `Fair` serves flows in turn and, with a limit,
parks a flow that already has so many keys in work, so that one hanging cluster never holds every worker.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

K = TypeVar("K", bound=Hashable)


class Lane(Protocol[K]):
    """Holds waiting keys with the instant since when they wait."""

    def add(self, key: K, since: float) -> None: ...

    def discard(self, key: K) -> float:
        """Take out a key that waits here, wherever it stands, and return since when it waited."""

    def pop(self) -> tuple[K, float] | None:
        """The next key that may run now, or None."""

    def __len__(self) -> int: ...


class Fifo(Generic[K]):
    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: OrderedDict[K, float] = OrderedDict()

    def add(self, key: K, since: float) -> None:
        self._keys[key] = since

    def discard(self, key: K) -> float:
        return self._keys.pop(key)

    def pop(self) -> tuple[K, float] | None:
        return self._keys.popitem(last=False) if self._keys else None

    def __len__(self) -> int:
        return len(self._keys)


class Flows(Generic[K]):
    """The flow of each key, and the number of keys of each flow in work, over all lanes of a queue."""

    def __init__(self, of: Callable[[K], Hashable], *, limit: int | None = None) -> None:
        if limit is not None and limit < 1:
            raise ValueError(f"a flow needs a limit of at least 1, not {limit}")
        self.of = of
        self._limit = limit
        self._busy: dict[Hashable, int] = {}
        self._flow_of: dict[K, Hashable] = {}
        """The flows of keys in work: the answer of `of` may have changed when one is done."""

    def full(self, flow: Hashable) -> bool:
        return self._limit is not None and self._busy.get(flow, 0) >= self._limit

    def started(self, key: K) -> None:
        flow = self._flow_of[key] = self.of(key)
        self._busy[flow] = self._busy.get(flow, 0) + 1

    def finished(self, key: K) -> Hashable:
        flow = self._flow_of.pop(key)
        left = self._busy[flow] - 1
        if left:
            self._busy[flow] = left
        else:
            del self._busy[flow]
        return flow


class Fair(Generic[K]):
    """Flows take turns; each is served first come first served within itself."""

    __slots__ = ("_flow_of", "_flows", "_parked", "_ready")

    def __init__(self, flows: Flows[K]) -> None:
        self._flows = flows
        self._ready: OrderedDict[Hashable, OrderedDict[K, float]] = OrderedDict()
        self._parked: dict[Hashable, OrderedDict[K, float]] = {}
        self._flow_of: dict[K, Hashable] = {}

    def add(self, key: K, since: float) -> None:
        flow = self._flow_of[key] = self._flows.of(key)
        keys = self._ready.get(flow) or self._parked.get(flow)
        if keys is None:
            keys = self._ready[flow] = OrderedDict()
        keys[key] = since

    def discard(self, key: K) -> float:
        flow = self._flow_of.pop(key)
        for flows in (self._ready, self._parked):
            keys = flows.get(flow)
            if keys is not None and key in keys:
                since = keys.pop(key)
                if not keys:
                    del flows[flow]
                return since
        raise KeyError(key)

    def pop(self) -> tuple[K, float] | None:
        while self._ready:
            flow, keys = self._ready.popitem(last=False)
            if self._flows.full(flow):
                self._parked[flow] = keys
                continue
            key, since = keys.popitem(last=False)
            if keys:
                self._ready[flow] = keys
            del self._flow_of[key]
            return key, since
        return None

    def release(self, flow: Hashable) -> None:
        """A key of `flow` is done: when it was parked, it takes its place in the turn again."""
        keys = self._parked.pop(flow, None)
        if keys is not None:
            self._ready[flow] = keys

    def __len__(self) -> int:
        return len(self._flow_of)
