"""The layout of stored objects: JSON that begins with apiVersion, kind, and metadata with resourceVersion first."""

from __future__ import annotations

import msgspec

from hortus.apiserver.store.backend import Value
from hortus.kube.objects import Object


def encode(obj: Object) -> Value:
    """The object split where its revision is inserted; its present revision is dropped."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    rest = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
    kind = msgspec.json.encode({key: obj[key] for key in ("apiVersion", "kind") if key in obj})[:-1]
    head = kind + (b"," if len(kind) > 1 else b"") + b'"metadata":{"resourceVersion":"'
    tail = b'",' + msgspec.json.encode(metadata)[1:] if metadata else b'"}'
    return Value(head, tail + (b"," + msgspec.json.encode(rest)[1:] if rest else b"}"))
