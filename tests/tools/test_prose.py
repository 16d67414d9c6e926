"""Claims about tools/prose.py."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .loading import tool

prose = tool("prose")
RULES = prose.load_rules()
MODULE = "src/hortus/kube/watch.py"


def found(source: str) -> list[str]:
    return [finding.text for finding in prose.check_python(source, MODULE, RULES)]


@pytest.mark.parametrize("word", ["What", "Whether", "Who", "Whose", "Of", "Which", "How", "Where", "Why"])
def test_a_docstring_does_not_begin_with_a_question_word(word: str) -> None:
    text = f"a docstring that begins with '{word}': name its subject"
    assert found(f'"""{word} is kept."""') == [text]
    assert found(f'class A:\n    """{word} is kept."""') == [text]
    assert found(f'async def a():\n    """{word} is kept."""') == [text]
    assert found(f'class A:\n    size: int = 1\n    """{word} is kept."""') == [text]
    assert found(f'SIZE = 1\n"""{word} is kept."""') == [text]
    assert found(f'option("--size", help="{word} is kept.")') == [text]


@pytest.mark.parametrize("word", ["From", "By", "Over", "Nothing", "Those", "Have"])
def test_a_docstring_is_no_fragment(word: str) -> None:
    text = f"a docstring that begins with '{word}': write a sentence"
    assert found(f'"""{word} names."""') == [text]
    assert found(f'def a():\n    """{word} names."""') == [text]
    assert found(f'class A:\n    names: dict[str, int]\n    """{word} names."""') == []


@pytest.mark.parametrize("word", ["What", "Whatever", "Whether", "Who", "Whoever", "Whose", "Of", "Which"])
def test_a_comment_does_not_begin_with_a_relative_pronoun(word: str) -> None:
    text = f"a comment that begins with '{word}': name its subject"
    assert found(f"# {word} is kept\n# stays.\n") == [text]
    assert found(f"size = 1  # {word} is kept.\n") == [text]
    assert found(f"# Secrets stay.\n# {word} is kept.\n") == []
    assert found(f"# {word} is kept? All.\n") == []
    assert found(f'text = "# {word} is kept."\n') == []
    assert found(f"# {word}ing, or a name.\n#{word} is kept.\n") == []


def test_a_string_that_is_no_docstring_may_ask() -> None:
    assert found('question = "What is kept?"\nprint("Of course")') == []
    assert found('"""Returns the Secrets that no cluster owns. What is kept stays."""') == []


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ('"""Reports the state."""\n\n\ndef run():\n    """Lists the objects\n    anew."""\n', 6),
        ("# Lists the objects\n# anew.\n", 2),
        ("size = 1  # counted anew\n", 1),
        ('log.info("listed anew")\n', 1),
        ('log.info(f"listed {size} objects anew")\n', 1),
    ],
)
def test_a_word_is_found_in_docstrings_comments_and_messages(source: str, line: int) -> None:
    assert list(prose.check_python(source, MODULE, RULES)) == [
        prose.Finding(MODULE, line, "'anew': write 'again' or 'from scratch'")
    ]


def test_a_word_within_another_one_is_none() -> None:
    assert found('"""Besides the two kinds that are told apart, canewdon stays."""') == []


@pytest.mark.parametrize(
    "source",
    ["def list_anew(): ...", "class AnewList: ...", "def f(*, list_anew): ...", "list_anew = 1", "self.list_anew = 1"],
)
def test_a_word_is_found_in_the_names_that_a_module_defines(source: str) -> None:
    (text,) = found(source)
    assert text.endswith("write 'again'")


def test_names_that_others_defined_may_be_used() -> None:
    assert found("list_anew()\nother.list_anew()") == []


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        ("The order of writes (section 2.2).", False),
        ("Contract: infrastructure-manager, sections 1.1 and 2.1.", False),
        ("RFC 7230 section 6.5.", True),
        ("KEP-555, section 3.", True),
        ("kyma-project/infrastructure-manager docs/contributor/adr/004.md, section 3.", True),
        ("Section 3 is elsewhere; docs/clusters/shoot.md has it, section 3.", True),
        ("https://example.com/page, section 3", True),
        ("This section is short.", True),
    ],
)
def test_a_section_names_a_document_that_a_reader_can_open(text: str, is_open: bool) -> None:
    assert (found(f'"""{text}"""') == []) is is_open
    assert (list(prose.check_page(f"Head\n\n{text}\n", "docs/a.md", RULES)) == []) is is_open


def test_a_finding_names_its_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / prose.SETTINGS).write_text((prose.ROOT / prose.SETTINGS).read_text())
    file = tmp_path / MODULE
    file.parent.mkdir(parents=True)
    file.write_text('"""What is kept."""\n')
    (tmp_path / "README.md").write_text("Head\n\nListed anew.\n")
    assert prose.problems(tmp_path) == [
        f"{MODULE}:1: a docstring that begins with 'What': name its subject",
        "README.md:3: 'anew': write 'again' or 'from scratch'",
    ]


def git(root: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


def test_commits_have_short_subjects(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "s" * 72)
    assert prose.long_subjects("2020-01-01T00:00:00Z", tmp_path) == []
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "l" * 73)
    (line,) = prose.long_subjects("2020-01-01T00:00:00Z", tmp_path)
    assert line.endswith(" " + "l" * 73)
    assert prose.long_subjects("2100-01-01T00:00:00Z", tmp_path) == []


def test_a_tree_without_history_has_no_subjects(tmp_path: Path) -> None:
    assert prose.long_subjects("2020-01-01T00:00:00Z", tmp_path) == []
