"""The annotation of client-side apply, as `kubectl apply --server-side` finds it.

Client-side apply keeps its configuration in an annotation and its ownership under another manager. An apply by the
manager `kubectl` may therefore take over, without force, the fields whose value equals the annotation's; and as long as
the annotation is there, it is updated. Source: KEP-555, "Migrating from client-side apply".
"""

from __future__ import annotations

from typing import Any

import orjson

from hortus.schema.merge.comparison import compare
from hortus.schema.merge.extraction import UnkeyedItem, fields_of
from hortus.schema.merge.fieldset import FieldSet, difference
from hortus.schema.merge.typecheck import problems_of
from hortus.schema.merge.types import MergeType

Object = dict[str, Any]

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_ANNOTATIONS_LIMIT = 256 * 1024
"""Bytes of all keys and values of annotations together (apimachinery validation)."""
_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def allowed_by_last_applied(live: Object, api_version: str, root: MergeType) -> FieldSet | None:
    """The fields that client-side apply set and that still have its value; None without a usable annotation."""
    text = _annotations(live).get(LAST_APPLIED)
    if not text:
        return None
    try:
        config = orjson.loads(text)
        if not isinstance(config, dict) or config.get("apiVersion") != api_version or problems_of(config, root):
            return None
        found = compare(config, live, root)
        allowed = fields_of(config, root)
    except (orjson.JSONDecodeError, UnkeyedItem):
        return None
    return difference(difference(difference(allowed, found.modified), found.added), found.removed)


def with_last_applied(result: Object, config: Object) -> Object:
    """`result` with the annotation, if it has one, set to `config`; `result` itself when it is already."""
    annotations = _annotations(result)
    current = annotations.get(LAST_APPLIED)
    if not current:
        return result
    text = last_applied_text(config)
    if text == current:
        return result
    changed = {**annotations, LAST_APPLIED: text}
    if sum(len(key.encode()) + len(value.encode()) for key, value in changed.items()) > _ANNOTATIONS_LIMIT:
        del changed[LAST_APPLIED]
    return {**result, "metadata": {**result["metadata"], "annotations": changed}}


def last_applied_text(config: Object) -> str:
    """`config` in the form of the annotation: sorted keys, HTML escaped, a line feed at the end, without the annotation
    itself."""
    metadata = config.get("metadata") or {}
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict):
        kept = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
        config = {**config, "metadata": {**metadata, "annotations": kept}}
    return orjson.dumps(config, option=orjson.OPT_SORT_KEYS).decode().translate(_HTML) + "\n"


def _annotations(obj: Object) -> dict[str, str]:
    annotations = (obj.get("metadata") or {}).get("annotations")
    return annotations if isinstance(annotations, dict) else {}
