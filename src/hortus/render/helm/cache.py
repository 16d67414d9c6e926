"""Rendered charts by what they were rendered from, the least recently used forgotten first."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from hortus.render.bounded import Bounded
from hortus.render.helm.manifests import Rendered

_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS


def digest_of_values(*parts: Any) -> str:
    """A SHA-256 over plain data, the same for maps of any order."""
    return hashlib.sha256(orjson.dumps(parts, option=_OPTIONS)).hexdigest()


class RenderCache(Bounded[str, Rendered]):
    """Bounded by the text it holds, in characters; objects are about four times that."""

    def __init__(self, *, characters: int = 32 << 20) -> None:
        super().__init__(characters, lambda _, rendered: len(rendered.text))
