"""Sprig's functions, as Helm has them.

`SPRIG` is what any template may call; `REFUSED` are names that sprig has and we do not give: they reach the process
or a network.
"""

from __future__ import annotations

from hortus.render.gotemplate.calls import Function, Functions
from hortus.render.gotemplate.errors import FunctionError
from hortus.render.gotemplate.functions.certificates import CERTIFICATES
from hortus.render.gotemplate.functions.dates import DATES
from hortus.render.gotemplate.functions.dicts import DICTS
from hortus.render.gotemplate.functions.encodings import ENCODINGS
from hortus.render.gotemplate.functions.lists import LISTS
from hortus.render.gotemplate.functions.maths import MATHS
from hortus.render.gotemplate.functions.regular import REGULAR
from hortus.render.gotemplate.functions.secrets import SECRETS
from hortus.render.gotemplate.functions.strings import STRINGS
from hortus.render.gotemplate.functions.urls import URLS
from hortus.render.gotemplate.functions.versions import VERSIONS
from hortus.render.gotemplate.functions.words import WORDS


def _fail(message: str) -> str:
    raise FunctionError(message)


SPRIG: Functions = {
    **STRINGS,
    **WORDS,
    **MATHS,
    **LISTS,
    **DICTS,
    **ENCODINGS,
    **DATES,
    **REGULAR,
    **VERSIONS,
    **URLS,
    **SECRETS,
    **CERTIFICATES,
    "fail": Function("fail", "string", _fail),
}
REFUSED: frozenset[str] = frozenset(("env", "expandenv", "getHostByName"))

__all__ = ["REFUSED", "SPRIG"]
