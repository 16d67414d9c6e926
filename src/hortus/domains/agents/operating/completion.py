"""Completes parts that a server completes as a whole, so that what is stored equals what was sent.

A reference to a field is one atomic value (KEP-555): the server adds its default within what we own, and a comparison
with the stored object would see a difference for ever.
"""

from __future__ import annotations

from typing import Any, Final

from hortus.kube.objects import Object

_DEFAULTS: Final[dict[str, dict[str, str]]] = {
    "fieldRef": {"apiVersion": "v1"},
    "resourceFieldRef": {"divisor": "0"},
}


def completed(obj: Object) -> Object:
    """The object with the defaults of its atomic parts; what needs none is shared with `obj`."""
    found: Object = _completed(obj)
    return found


def _completed(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: {**_DEFAULTS[key], **below} if key in _DEFAULTS and isinstance(below, dict) else _completed(below)
            for key, below in value.items()
        }
    return [_completed(item) for item in value] if isinstance(value, list | tuple) else value
