"""Texts of objects in the formats that commands write: one function for each, so that no text is ever markup.

Labels, messages, specs and the names in references come from other people. A format that is added gets a function here.
"""

from __future__ import annotations

import html as _html
import re
from typing import Final

HARMFUL: Final = (
    127,
    *range(128, 160),
    0x061C,
    0x200E,
    0x200F,
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
)
"""Code points above the first 32 that move a terminal's cursor, end a line, or change the direction of its text."""
_CONTROL: Final = dict.fromkeys((*range(32), *HARMFUL))
_BREAKS: Final = re.compile(r"[\t\n\v\f\r\u2028\u2029]+")
_SPACE: Final = "\u200b"
"""Has no width. GitHub and GitLab look for mentions and numbers of issues in the finished text, whatever escapes it."""
_MARKDOWN: Final = {ord(char): f"\\{char}" for char in "`*_[]~"} | {
    ord("&"): "&amp;",
    ord("<"): "&lt;",
    ord(">"): "&gt;",
    ord("|"): "&#124;",
    ord("\\"): "&#92;",
    ord("$"): "&#36;",
    ord("@"): f"@{_SPACE}",
    ord("#"): f"\\#{_SPACE}",
    ord("!"): f"!{_SPACE}",
}
_ADDRESS: Final = re.compile(r":(?=\S)|(?<=\bwww)\.", re.IGNORECASE)
"""Begins an address that is made a link by itself, or an emoji."""
_BLOCK: Final = re.compile(r"^(\d*)([-+=.)])")
"""Begins a list, or underlines a heading, where a text begins a line."""
_MERMAID: Final = re.compile(r"[^\w /.,()+=-]", re.ASCII)


def printable(text: str) -> str:
    """A text for a terminal, on one line: without control and direction characters."""
    return text.translate(_CONTROL)


def html(text: str) -> str:
    """A text as content, or as a quoted attribute, of HTML, SVG and XML."""
    return _html.escape(printable(text))


def markdown(text: str) -> str:
    """A text within a line, or a cell of a table, of GitHub Flavored Markdown (spec 0.29, 6.1 and 6.2)."""
    line = printable(_BREAKS.sub(" ", text)).strip().translate(_MARKDOWN)
    line = _ADDRESS.sub(lambda found: f"\\{found[0]}", line)
    return _BLOCK.sub(r"\1\\\2", line)


def mermaid(text: str) -> str:
    """A text within a quoted label of Mermaid: all but plain characters are entities (its docs, "Entity codes")."""
    return _MERMAID.sub(lambda found: f"#{ord(found[0])};", printable(text))
