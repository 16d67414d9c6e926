"""Documents of another shape than expected, in the words of the people who wrote them.

msgspec says `Expected `bool`, got `str` - at `$.nodes``, which are the words of its own users.
"""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

T = TypeVar("T")

_TYPES = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "object": "a mapping",
    "array": "a list",
    "null": "empty",
}
_PLACE = re.compile(r"(?s)(?P<what>.*?)(?: - at `\$(?P<path>[^`]*)`)?\Z")
_TYPE = re.compile(r"Expected (?P<wanted>`[^`]+`(?: \| `[^`]+`)*), got `(?P<got>[^`]+)`\Z")
_FIELD = re.compile(r"Object (?P<verb>contains unknown|missing required) field `(?P<name>[^`]+)`\Z")


def decode_json(document: bytes | str, kind: type[T]) -> T:
    """JSON of anybody as `kind`. Raises msgspec.DecodeError, also for other bytes than UTF-8, and for deep nesting."""
    try:
        return msgspec.json.decode(document, type=kind)
    except UnicodeError as error:
        raise msgspec.DecodeError(f"JSON is not UTF-8: {error}") from None
    except RecursionError:
        raise msgspec.DecodeError("JSON is nested too deep") from None


def problem_of(error: msgspec.ValidationError, *, place: str) -> str:
    """The problem, after its path in the document that is called `place`."""
    found = _PLACE.match(str(error))
    assert found is not None, "every text matches"
    path = place + (found["path"] or "")
    if (field := _FIELD.match(found["what"])) is not None:
        unknown = field["verb"] == "contains unknown"
        return f"{path}: there is no setting {field['name']}" if unknown else f"{path}: {field['name']} is missing"
    if (type := _TYPE.match(found["what"])) is not None:
        wanted = " or ".join(_named(word.strip(" `")) for word in type["wanted"].split("|"))
        return f"{path}: must be {wanted}, and is {_named(type['got'])}"
    return f"{path}: {found['what'].replace('`', '')}"


def _named(word: str) -> str:
    return _TYPES.get(word, word)
