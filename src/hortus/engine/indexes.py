"""Ready-made index functions for `Cache.add_index` and transforms that make objects smaller before they are kept."""

from __future__ import annotations

from collections.abc import Iterable

from hortus.engine.cache import IndexFunction, Transform
from hortus.kube.objects import Object

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def by_label(label: str) -> IndexFunction:
    """Files an object under the value of one label."""

    def values(obj: Object) -> Iterable[str]:
        labels = obj["metadata"].get("labels")
        return (labels[label],) if labels and label in labels else ()

    return values


def by_annotation(annotation: str) -> IndexFunction:
    """Files an object under the value of one annotation."""

    def values(obj: Object) -> Iterable[str]:
        annotations = obj["metadata"].get("annotations")
        return (annotations[annotation],) if annotations and annotation in annotations else ()

    return values


def by_owner_uid(obj: Object) -> Iterable[str]:
    """Files an object under the UID of each owner."""
    return [owner["uid"] for owner in obj["metadata"].get("ownerReferences") or ()]


def by_namespace(obj: Object) -> Iterable[str]:
    """Files an object under its namespace."""
    return (obj["metadata"].get("namespace", ""),)


def without_managed_fields(obj: Object) -> Object:
    """Drops metadata.managedFields and kubectl's last-applied annotation: often half of an object.

    Not for objects that we apply: `hortus.engine.apply` reads in managedFields what is ours.
    """
    metadata = obj["metadata"]
    metadata.pop("managedFields", None)
    annotations = metadata.get("annotations")
    if annotations is not None:
        annotations.pop(LAST_APPLIED, None)
    return obj


def managed_fields_of(*managers: str) -> Transform:
    """Keeps of metadata.managedFields only the entries of `managers`, which is what apply compares with."""

    def shrink(obj: Object) -> Object:
        metadata = obj["metadata"]
        entries = metadata.get("managedFields")
        if entries:
            metadata["managedFields"] = [entry for entry in entries if entry.get("manager") in managers]
        return obj

    return shrink
