"""Stores of the API server's objects: one small protocol, `Backend`, and its implementations.

`MemoryBackend` forgets at exit; `SqliteBackend` keeps one machine's state in a file; `EtcdBackend` shares an etcd with
other servers. All answer reads and watches from the same index in memory (`_index`) and differ in how a write becomes
durable. A server gets one from its composition root; nothing below the resources' layer knows which.
"""

from hortus.apiserver.store._history import HistoryLimits
from hortus.apiserver.store._watches import WatchLimits
from hortus.apiserver.store.backend import (
    Backend,
    Commit,
    Mismatch,
    RevisionCompacted,
    RevisionInFuture,
    StoredRecord,
    StoreFailed,
    StoreKey,
    StoreWatch,
    Value,
)
from hortus.apiserver.store.etcd import EtcdBackend
from hortus.apiserver.store.memory import MemoryBackend
from hortus.apiserver.store.sqlite import SqliteBackend
from hortus.etcd.wire import EtcdLogin

__all__ = [
    "Backend",
    "Commit",
    "EtcdBackend",
    "EtcdLogin",
    "HistoryLimits",
    "MemoryBackend",
    "Mismatch",
    "RevisionCompacted",
    "RevisionInFuture",
    "SqliteBackend",
    "StoreFailed",
    "StoreKey",
    "StoreWatch",
    "StoredRecord",
    "Value",
    "WatchLimits",
]
