"""The finalizer that keeps a LogicalCluster until everything in it is gone."""

from __future__ import annotations

import msgspec

from hortus.apiserver.store.backend import Value
from hortus.kube.objects import Object

FINALIZER = "tenancy.hortus.dev/content"

_MARK = "\x00resource-version\x00"
_ENCODED_MARK = msgspec.json.encode(_MARK)[1:-1]


def without_finalizer(encoded: bytes) -> tuple[Value, bool]:
    """The object with our finalizer taken off, and whether it was the last one."""
    obj: Object = msgspec.json.decode(encoded)
    metadata = obj["metadata"]
    metadata["finalizers"] = [name for name in metadata.get("finalizers", ()) if name != FINALIZER]
    last = not metadata["finalizers"]
    if last:
        del metadata["finalizers"]
    metadata["resourceVersion"] = _MARK
    head, _, tail = msgspec.json.encode(obj).partition(_ENCODED_MARK)
    return Value(head, tail), last
