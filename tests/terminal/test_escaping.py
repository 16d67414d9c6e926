"""Texts of other people in Markdown, Mermaid, HTML and on terminals: read as what they are, and never as markup."""

from __future__ import annotations

import html as standard
import re
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from hortus.terminal.escaping import HARMFUL, html, markdown, mermaid, printable

HOSTILE = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[click](https://evil.example)",
    "![x](https://evil.example/pixel.png)", "https://evil.example", "www.evil.example", "<https://evil.example>",
    "`code`", "``a`", "**bold** __bold__ *a* _a_ ~~gone~~", "a | b | c", "a \\| b \\", "\\*a*", "&lt;b&gt; &#60;",
    "# heading", "- item", "+ item", "1. item", "12) item", "> quote", "===", "---", ":tada:", "$x$", "a\nb\n\n# c",
    "```\nfence\n```", '"]; click n0 href "https://evil.example"', "%%{init: {}}%%", "n0-->n1", "end", "#quot;",
    "\x1b[31mred\x1b[0m", "\u202egnp.exe", "\u2028", "", " ", "    indented", "[^1]: note", "[a]: https://evil.example",
]  # fmt: skip
_RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
_TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from("`*_[]()<>&|\\~#!:@$-+=.\n\"'"), max_size=60)


def hostile(test):  # type: ignore[no-untyped-def]
    for text in HOSTILE:
        test = example(text)(test)
    return settings(max_examples=300, deadline=None)(given(_TEXTS)(test))


def read(rendered: str) -> str:
    """The words of a rendered text, as people read them."""
    return " ".join(standard.unescape(rendered).replace("\u200b", "").replace("\xa0", " ").split())


def words(text: str) -> str:
    plain = printable(re.sub(r"[\t\n\v\f\r\u2028\u2029]+", " ", text))
    return " ".join(plain.replace("\u200b", "").replace("\xa0", " ").replace("\0", "").split())


@hostile
def test_a_text_in_a_line_of_markdown_is_that_text_alone(text: str) -> None:
    for before, tags in (("- ", r"ul|li|p"), ("### ", r"h3"), ("", "p")):
        rendered = _RENDERER.render(f"{before}{markdown(text)}")
        assert set(re.findall(r"</?([a-z0-9]+)", rendered)) <= {*tags.split("|")}, rendered
        assert read(re.sub(r"</?(ul|li|p|h3)>", "", rendered)) == words(text)


@hostile
def test_a_text_in_a_cell_of_markdown_stays_in_it(text: str) -> None:
    rendered = _RENDERER.render(f"| a | b |\n|---|---|\n| {markdown(text)} | last |")
    cells = re.findall(r"<td>(.*?)</td>", rendered)
    assert [read(cell) for cell in cells] == [words(text), "last"]


def test_nobody_is_mentioned_and_no_issue_is_referred_to() -> None:
    assert not re.search(r"@\w|#\d|https?://|www\.", markdown("@team fixes #12, owner/repo#3, https://a www.b.c a@b.c"))


@hostile
def test_a_text_in_a_label_of_mermaid_ends_no_label_and_is_no_markup(text: str) -> None:
    label = mermaid(text)
    assert re.fullmatch(r"([\w /.,()+=-]|#\d+;)*", label, re.ASCII)
    assert re.sub(r"#(\d+);", lambda found: chr(int(found[1])), label) == printable(text)


@hostile
def test_a_text_in_html_is_content_and_an_attribute(text: str) -> None:
    whole = f'<p title="{html(text)}">{html(text)}</p>'
    if re.search("[\ufffe\uffff]", text):
        return  # no character of XML
    found = ElementTree.fromstring(whole)
    assert (found.text or "", found.get("title"), len(found)) == (printable(text), printable(text), 0)


@pytest.mark.parametrize("code", [0, 7, 8, 9, 10, 13, 27, 127, 0x85, 0x9B, 0x061C, 0x200E, 0x2028, 0x202E, 0x2066])
def test_no_character_moves_the_cursor_or_turns_the_line(code: int) -> None:
    assert printable(f"a{chr(code)}b") == "ab"
    assert all(ord(char) not in HARMFUL for char in printable("".join(map(chr, range(0x3000)))))
