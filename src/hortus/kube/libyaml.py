"""libyaml's events, given as Go's port of libyaml gives them.

The port that Kubernetes' tools read YAML with is older than the C library, and the two differ: in `[a b:, c]` the port
reads `a b:` as a text, ends a plain text of a flow collection at a question mark, does not know the escape `\\/`, and
refuses a document that declares YAML 1.2. Nearly all texts have none of this and are read by the C library alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import yaml
from yaml.error import Mark

_ODD = re.compile(r":[,?\[\]{}]|\?|\\/|^%", re.MULTILINE)
_UNKNOWN_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\/")
_REFUSED_COLON = "found unexpected ':'"
_MOST_REPAIRS = 100
"""Texts that end in a colon before the text is refused: it is read again from its beginning for each."""


class Events:
    """The events of a text, one by one. `next` raises yaml.YAMLError for what is no YAML."""

    def __init__(self, text: str | bytes) -> None:
        self._reader = yaml.CSafeLoader(text)
        self.next: Callable[[], Any] = self._reader.get_event
        decoded = _decoded(text)
        if decoded is not None and _ODD.search(decoded):
            self._text = decoded
            self._given = 0
            self._repairs = 0
            self._flow: list[Any] = []
            self.next = self._checked

    def dispose(self) -> None:
        """Free what the C library holds."""
        self._reader.dispose()

    def _checked(self) -> Any:
        try:
            event: Any = self._reader.get_event()
        except yaml.scanner.ScannerError as error:
            if error.problem != _REFUSED_COLON or self._repairs >= _MOST_REPAIRS:
                raise
            self._repair(error)
            return self._checked()
        self._given += 1
        kind = type(event)
        if kind is yaml.ScalarEvent:
            self._check(event)
        elif kind is yaml.SequenceStartEvent or kind is yaml.MappingStartEvent:
            self._flow.append(event if event.flow_style else None)
        elif kind is yaml.SequenceEndEvent or kind is yaml.MappingEndEvent:
            self._flow.pop()
        elif kind is yaml.DocumentStartEvent and event.version not in (None, (1, 1)):
            raise yaml.parser.ParserError(None, None, "found incompatible YAML document", event.start_mark)
        return event

    def _check(self, event: Any) -> None:
        if event.style == '"':
            found = _UNKNOWN_ESCAPE.search(self._text, event.start_mark.index, event.end_mark.index)
            if found:
                mark = self._mark(found.end() - 2)
                problem = "found unknown escape character"
                raise yaml.scanner.ScannerError("while parsing a quoted scalar", event.start_mark, problem, mark)
        elif not event.style and "?" in event.value and self._flow and self._flow[-1] is not None:
            end = "]" if type(self._flow[-1]) is yaml.SequenceStartEvent else "}"
            mark = self._mark(self._text.index("?", event.start_mark.index))
            raise yaml.parser.ParserError(None, None, f"did not find expected ',' or '{end}'", mark)

    def _mark(self, index: int) -> Mark:
        begin = self._text.rfind("\n", 0, index) + 1
        return Mark("", index, self._text.count("\n", 0, index), index - begin, None, 0)

    def _repair(self, error: yaml.MarkedYAMLError) -> None:
        """Quotes the text whose colon the C library refuses, and returns to the place of the error."""
        assert error.context_mark is not None and error.problem_mark is not None
        begin, end = error.context_mark.index, error.problem_mark.index + 1
        quoted = self._text[begin:end].replace("\\", "\\\\").replace('"', '\\"')
        self._text = f'{self._text[:begin]}"{quoted}"{self._text[end:]}'
        self._repairs += 1
        self._reader.dispose()
        self._reader = yaml.CSafeLoader(self._text)
        for _ in range(self._given):
            self._reader.get_event()


def _decoded(text: str | bytes) -> str | None:
    """The text whose characters the marks of events count; None where the C library is to say what is wrong."""
    if isinstance(text, bytes):
        encoding = "utf-16" if text[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        try:
            return text.decode(encoding)
        except UnicodeError:
            return None
    return text.removeprefix("\ufeff")
