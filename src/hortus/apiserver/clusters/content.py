"""The finalizer that keeps a LogicalCluster until everything in it is gone."""

from __future__ import annotations

import msgspec

from hortus.apiserver.store.backend import Value
from hortus.apiserver.store.encoding import encode
from hortus.kube.objects import Object

FINALIZER = "tenancy.hortus.dev/content"


def without_finalizer(encoded: bytes) -> tuple[Value, bool] | None:
    """The object without the finalizer, and True if it was the last one; None when it has been removed already."""
    obj: Object = msgspec.json.decode(encoded)
    metadata = obj["metadata"]
    if FINALIZER not in metadata.get("finalizers", ()):
        return None
    metadata["finalizers"] = [name for name in metadata.get("finalizers", ()) if name != FINALIZER]
    last = not metadata["finalizers"]
    if last:
        del metadata["finalizers"]
    return encode(obj), last
