""".helmignore: which files of a directory are no part of the chart."""

from __future__ import annotations

import re
from collections.abc import Callable

from hortus.render.helm.errors import ChartError

_Rule = tuple[bool, bool, Callable[[str], bool]]
"""Three parts: is it negated, is it for directories alone, and the test of a path."""


class IgnoreRules:
    """The rules of one chart; the last word is `templates/.?*`, which Helm always adds."""

    def __init__(self, text: str = "") -> None:
        lines = text.removeprefix("\ufeff").splitlines()
        self._rules: list[_Rule] = []
        for line in lines:
            rule = line.strip()
            if rule and not rule.startswith("#"):
                self._rules.append(_parsed(rule))
        self._rules.append(_parsed("templates/.?*"))

    def ignores(self, path: str, *, is_directory: bool) -> bool:
        """True when the path, relative to the chart, is left out."""
        if path in (".", "./"):
            return False
        for negated, directories, matches in self._rules:
            if negated:
                if directories and not is_directory:
                    return True
                if not matches(path):
                    return True
                continue
            if directories and not is_directory:
                continue
            if matches(path):
                return True
        return False


def _parsed(rule: str) -> _Rule:
    if rule == "**" or "**" in rule:
        raise ChartError(f".helmignore: {rule!r}: double-star (**) syntax is not supported")
    negated = rule.startswith("!")
    rule = rule.removeprefix("!")
    directories = rule.endswith("/")
    rule = rule.removesuffix("/")
    if rule.startswith("/"):
        pattern = glob_pattern(rule[1:])
        return negated, directories, lambda path: bool(pattern.fullmatch(path))
    pattern = glob_pattern(rule)
    if "/" in rule:
        return negated, directories, lambda path: bool(pattern.fullmatch(path))
    return negated, directories, lambda path: bool(pattern.fullmatch(path.rpartition("/")[2]))


def glob_pattern(text: str) -> re.Pattern[str]:
    """filepath.Match as a regular expression: `*` and `?` stop at `/`. Raises ChartError."""
    out: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "*":
            if not out or out[-1] != "[^/]*":
                out.append("[^/]*")
        elif char == "?":
            out.append("[^/]")
        elif char == "[":
            end = text.find("]", at + 1)
            if end < 0:
                raise ChartError(f".helmignore: {text!r}: syntax error in pattern")
            body = text[at:end]
            negate = body.startswith("^")
            out.append("[" + ("^" if negate else "") + re.sub(r"([\\\[&~|^])", r"\\\1", body.removeprefix("^")) + "]")
            at = end + 1
        else:
            if char == "\\":
                if at >= len(text):
                    raise ChartError(f".helmignore: {text!r}: syntax error in pattern")
                char, at = text[at], at + 1
            out.append(re.escape(char))
    try:
        return re.compile("".join(out), re.DOTALL)
    except re.error:
        raise ChartError(f".helmignore: {text!r}: syntax error in pattern") from None
