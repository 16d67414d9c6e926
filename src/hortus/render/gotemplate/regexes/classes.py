"""Sets of characters as ranges of code points: Perl's, POSIX's and Unicode's classes."""

from __future__ import annotations

import functools
import sys
import unicodedata

Ranges = tuple[tuple[int, int], ...]
ANY: Ranges = ((0, sys.maxunicode),)
NOT_NEWLINE: Ranges = ((0, 9), (11, sys.maxunicode))
PERL: dict[str, Ranges] = {
    "d": ((0x30, 0x39),),
    "s": ((9, 10), (12, 13), (32, 32)),
    "w": ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)),
}
POSIX: dict[str, Ranges] = {
    "alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)),
    "alpha": ((0x41, 0x5A), (0x61, 0x7A)),
    "ascii": ((0, 0x7F),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 0x1F), (0x7F, 0x7F)),
    "digit": ((0x30, 0x39),),
    "graph": ((0x21, 0x7E),),
    "lower": ((0x61, 0x7A),),
    "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ((9, 13), (32, 32)),
    "upper": ((0x41, 0x5A),),
    "word": PERL["w"],
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}
CONTROLS = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_CATEGORIES = frozenset(
    group[0] + minor
    for group in ("Lultmo", "Mnce", "Ndlo", "Pcdseifo", "Smcko", "Zslp", "Ccfos")
    for minor in ("", *group[1:])
)
_SCRIPTS = {"Latin": "LATIN", "Greek": "GREEK", "Cyrillic": "CYRILLIC", "Han": "CJK UNIFIED", "Hebrew": "HEBREW"}
_SCRIPTS |= {"Arabic": "ARABIC", "Hiragana": "HIRAGANA", "Katakana": "KATAKANA", "Thai": "THAI", "Hangul": "HANGUL"}


def negated(ranges: Ranges) -> Ranges:
    """The characters outside of the ranges."""
    found: list[tuple[int, int]] = []
    at = 0
    for low, high in merged(ranges):
        if low > at:
            found.append((at, low - 1))
        at = high + 1
    if at <= sys.maxunicode:
        found.append((at, sys.maxunicode))
    return tuple(found)


def merged(ranges: Ranges) -> Ranges:
    """The same characters, sorted and without overlaps."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


@functools.cache
def unicode_class(name: str) -> Ranges | None:
    if name == "Any":
        return ANY
    if name in _CATEGORIES:
        return _scan(lambda char: unicodedata.category(char).startswith(name))
    prefix = _SCRIPTS.get(name)
    if prefix is None:
        return None
    return _scan(lambda char: unicodedata.name(char, "").startswith(prefix) and char.isalpha())


def _scan(wanted: object) -> Ranges:
    assert callable(wanted)
    found: list[tuple[int, int]] = []
    begin = -1
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and wanted(chr(code))
        if inside and begin < 0:
            begin = code
        elif not inside and begin >= 0:
            found.append((begin, code - 1))
            begin = -1
    return tuple(found)


def folded(ranges: Ranges) -> Ranges:
    """With the other case of each letter; only of small ranges, large ones hold both anyway."""
    extra: list[tuple[int, int]] = []
    for low, high in ranges:
        if high - low > 2000:
            continue
        for code in range(low, high + 1):
            others = (chr(code).lower(), chr(code).upper())
            extra += [(ord(other), ord(other)) for other in others if len(other) == 1]
    return merged((*ranges, *extra))
