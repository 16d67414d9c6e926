"""Rendered charts by what they were rendered from, the least recently used forgotten first."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Any

import orjson

from hortus.render.helm.manifests import Rendered

_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS


def digest_of_values(*parts: Any) -> str:
    """A SHA-256 over plain data, the same for maps of any order."""
    return hashlib.sha256(orjson.dumps(parts, option=_OPTIONS)).hexdigest()


class RenderCache:
    """Bounded by the text it holds, in characters; objects are about four times that."""

    def __init__(self, *, characters: int = 32 << 20) -> None:
        self._limit = characters
        self._size = 0
        self._found: OrderedDict[str, Rendered] = OrderedDict()

    def get(self, key: str) -> Rendered | None:
        found = self._found.get(key)
        if found is not None:
            self._found.move_to_end(key)
        return found

    def put(self, key: str, rendered: Rendered) -> None:
        if key in self._found or len(rendered.text) > self._limit:
            return
        self._found[key] = rendered
        self._size += len(rendered.text)
        while self._size > self._limit:
            _, dropped = self._found.popitem(last=False)
            self._size -= len(dropped.text)

    def __len__(self) -> int:
        return len(self._found)
