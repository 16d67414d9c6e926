"""Sprig's functions on regular expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hortus.render.gotemplate.calls import Functions, table
from hortus.render.gotemplate.errors import FunctionError
from hortus.render.gotemplate.regexes import Pattern, RegexError, compile_pattern
from hortus.render.gotemplate.regexes.pattern import quote_meta
from hortus.render.gotemplate.values import NilStrings, Strings


def _compiled(text: str) -> Pattern:
    try:
        return compile_pattern(text)
    except RegexError as error:
        raise FunctionError(str(error)) from None


def _compiled_or_panic(text: str) -> Pattern:
    """Sprig's functions without `must` use MustCompile, which panics with words of its own."""
    try:
        return compile_pattern(text)
    except RegexError as error:
        shown = f"`{text}`" if "`" not in text else text
        raise FunctionError(f"regexp: Compile({shown}): {error}") from None


def _match(text: str, subject: str) -> bool:
    try:
        return compile_pattern(text).matches(subject)
    except RegexError:
        return False


def _find_all(pattern: Pattern, subject: str, limit: int) -> list[str]:
    found = Strings(subject[span[0] : span[1]] for span in pattern.spans(subject, limit))
    return found or NilStrings()


def _split(pattern: Pattern, subject: str, limit: int) -> list[str]:
    return NilStrings() if limit == 0 else Strings(pattern.split(subject, limit))


def _find(pattern: Pattern, subject: str) -> str:
    return pattern.find(subject) or ""


def _replace(pattern: Pattern, subject: str, template: str) -> str:
    return pattern.replace(subject, template)


def _replace_literal(pattern: Pattern, subject: str, template: str) -> str:
    return pattern.replace(subject, template, literal=True)


def _both(name: str, signature: str, call: Callable[..., Any]) -> list[tuple[str, str, Callable[..., Any]]]:
    return [
        (name, signature, lambda text, *arguments: call(_compiled_or_panic(text), *arguments)),
        (f"must{name[0].upper()}{name[1:]}", signature, lambda text, *arguments: call(_compiled(text), *arguments)),
    ]


REGULAR: Functions = table(
    ("regexMatch", "string, string", _match),
    ("mustRegexMatch", "string, string", lambda text, subject: _compiled(text).matches(subject)),
    *_both("regexFindAll", "string, string, int", _find_all),
    *_both("regexFind", "string, string", _find),
    *_both("regexReplaceAll", "string, string, string", _replace),
    *_both("regexReplaceAllLiteral", "string, string, string", _replace_literal),
    *_both("regexSplit", "string, string, int", _split),
    ("regexQuoteMeta", "string", quote_meta),
)
