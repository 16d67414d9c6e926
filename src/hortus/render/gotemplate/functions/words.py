"""snakecase, kebabcase and camelcase: where a word ends, as xstrings decides it."""

from __future__ import annotations

import unicodedata

from hortus.render.gotemplate.calls import Functions, table
from hortus.render.gotemplate.functions.strings import SPACES, lower, upper

_IDEOGRAPHS = (("\u3400", "\u4d85"), ("\u4e00", "\u9fcc"), ("\U00020000", "\U0002b81d"))
"""Letters that make no word of their own."""


def _is_connector(char: str) -> bool:
    return char in "-_" or char in SPACES


def _kind(char: str) -> str:
    """connector, punctuation, upper, letter, number or other."""
    if _is_connector(char):
        return "connector"
    category = unicodedata.category(char)
    if category[0] == "P":
        return "punctuation"
    if char.isupper():
        return "upper"
    if category[0] == "L":
        return "other" if any(low <= char <= high for low, high in _IDEOGRAPHS) else "letter"
    return "number" if category[0] == "N" else "other"


def _words(text: str) -> list[tuple[str, str]]:
    """Runs of one kind; `HTTPStatus` is cut before the last capital, `Status` is one word of kind upper."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        kind = _kind(text[at])
        end = at + 1
        if kind == "upper":
            end = _upper_end(text, end)
        else:
            wanted = ("letter",) if kind == "letter" else (kind,)
            while end < len(text) and _kind(text[end]) in wanted:
                end += 1
        found.append((kind, text[at:end]))
        at = end
    return found


def _upper_end(text: str, end: int) -> int:
    if end < len(text) and _kind(text[end]) == "upper":
        while end < len(text) and _kind(text[end]) == "upper":
            end += 1
        return end - 1 if end < len(text) and _kind(text[end]) == "letter" else end
    while end < len(text) and _kind(text[end]) == "letter":
        end += 1
    return end


def _joined(text: str, connector: str) -> str:
    """Words in small letters; a connector where a word begins that none stands before."""
    words = _words(text)
    out: list[str] = []
    at = 0
    while at < len(words):
        kind, word = words[at]
        if kind == "connector":
            out.append(connector * len(word))
            at += 1
            continue
        at = _group(words, at, out, connector)
    return "".join(out)


def _group(words: list[tuple[str, str]], at: int, out: list[str], connector: str) -> int:
    """One word with what belongs to it: numbers after letters without a letter behind, letters after numbers."""
    kind, word = words[at]
    out.append(lower(word) if kind == "upper" else word)
    at += 1
    if kind == "number":
        return _after_number(words, at, out, connector)
    if kind == "punctuation" or at >= len(words):
        return at
    following = words[at][0]
    if following != "number":
        if following not in ("connector", "punctuation"):
            out.append(connector)
        return at
    if at + 1 >= len(words):
        out.append(words[at][1])
        return at + 1
    if words[at + 1][0] != "letter":
        out.append(words[at][1])
        if words[at + 1][0] not in ("connector", "punctuation"):
            out.append(connector)
        return at + 1
    out += (connector, words[at][1])
    return _after_number(words, at + 1, out, connector)


def _after_number(words: list[tuple[str, str]], at: int, out: list[str], connector: str) -> int:
    while at < len(words) and words[at][0] in ("letter", "number"):
        out.append(words[at][1])
        at += 1
    if at < len(words) and words[at][0] not in ("punctuation", "connector"):
        out.append(connector)
    return at


def snakecase(text: str) -> str:
    return _joined(text, "_")


def kebabcase(text: str) -> str:
    return _joined(text, "-")


def camelcase(text: str) -> str:
    """Pascal case: a capital after each connector, the first of several connectors dropped; a word in capitals
    alone keeps its first."""
    start = 0
    while start < len(text) and _is_connector(text[start]):
        start += 1
    if start >= len(text):
        # xstrings writes the last connector twice.
        return text + text[-1:]
    out = [text[:start]]
    shouting = text[start].isupper()
    pending = upper(text[start])
    for char in text[start + 1 :]:
        if _is_connector(char) and _is_connector(pending):
            out.append(pending)
        elif _is_connector(pending):
            shouting = char.isupper()
            char = upper(char)
        else:
            if shouting and char.isupper():
                char = lower(char)
            elif shouting:
                shouting = False
            out.append(pending)
        pending = char
    return "".join((*out, pending))


WORDS: Functions = table(
    ("snakecase", "string", snakecase),
    ("kebabcase", "string", kebabcase),
    ("camelcase", "string", camelcase),
)
