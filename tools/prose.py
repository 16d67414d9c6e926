"""Check the prose of the tree, `python tools/prose.py`: docstrings, words, references to sections, commit subjects.

The rules are those of a reader who does not know the code: a docstring names its subject and makes one claim, so it
does not begin with a question word, and that of a module, class or function not with a preposition; a comment does not
begin with a relative pronoun; a text that names a section also names the document by something that can be opened (RFC,
KEP, address, path in a repository, page below docs/).
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import deque
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = Path("tools/prose.toml")
LONGEST_SUBJECT = 72
"""Characters; longer ones are cut by `git log --oneline` in a terminal of 80."""

_FRAGMENT = re.compile(r"\W*(By|For|From|Have|Its|Like|Not|Nothing|Over|There|Those)\b")
_QUESTION = re.compile(r"\W*(What|Whatever|Whether|Who|Whoever|Whom|Whose|Of|Which|Why|How|Where|Wherever)\b")
_RELATIVE = re.compile(r"(What|Whatever|Whether|Who|Whoever|Whom|Whose|Of|Which)\b(?!.*\?)(?! course\b)")
"""The begin of a comment that has no subject; one that asks a question has."""
_COMMENT = re.compile(r"(?:^|\s)#\s+(\S.*)$")
_SECTION = re.compile(r"\bsections? \d|\u00a7")
_SOURCE = re.compile(
    r"\bRFCs? \d+|\bKEP-?\s?\d+|https?://|\b[\w.-]+(?:/[\w.-]+)+\.(?:adoc|go|html|md|proto|rst|ya?ml)\b"
)
_IDENTIFIER_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_WORDED = frozenset((*_DOCUMENTED, ast.Constant, ast.keyword, ast.arg, ast.Name, ast.Attribute))
_CONTEXTS = frozenset((ast.Load, ast.Store, ast.Del))
_SPOKEN_ARGUMENTS = {"help", "description", "doc", "summary", "epilog"}
_PAGES = ("*.md", "docs/**/*.md", "charts/**/*.md", "src/**/*.md", "examples/**/*.md")


class Finding(NamedTuple):
    path: str
    line: int
    text: str


class Rules(NamedTuple):
    words: dict[re.Pattern[str], str]
    """Patterns that prose does not hold, and what to write instead."""
    names: dict[str, str]
    """Words that identifiers do not hold, and what to write instead."""
    exempt: frozenset[str]
    subjects_since: str


def load_rules(root: Path = ROOT) -> Rules:
    settings = tomllib.loads((root / SETTINGS).read_text())
    words = {re.compile(rf"\b(?:{pattern})\b", re.I): instead for pattern, instead in settings["words"].items()}
    return Rules(words, settings["names"], frozenset(settings["exempt"]), settings["subjects"]["since"])


def check_text(text: str, path: str, line: int, rules: Rules) -> Iterator[Finding]:
    """Yields the words and sections of one text; `line` is its first."""
    for pattern, instead in rules.words.items():
        for match in pattern.finditer(text):
            at = line + text.count("\n", 0, match.start())
            yield Finding(path, at, f"{match[0]!r}: write {instead}")
    section = _SECTION.search(text)
    if section and not _SOURCE.search(text):
        at = line + text.count("\n", 0, section.start())
        yield Finding(path, at, f"{section[0]!r} without a document that a reader can open")


def check_python(source: str, path: str, rules: Rules) -> Iterator[Finding]:
    inside: set[int] = set()
    for node in _worded(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from check_text(node.value, path, node.lineno, rules)
            inside.update(range(node.lineno, node.end_lineno or node.lineno))
        for start, text in _spoken(node):
            if match := _QUESTION.match(text):
                yield Finding(path, start, f"a docstring that begins with {match[1]!r}: name its subject")
        for start, text in _docstring(node):
            if match := _FRAGMENT.match(text):
                yield Finding(path, start, f"a docstring that begins with {match[1]!r}: write a sentence")
        for name in _defined(node):
            for word in _IDENTIFIER_WORD.findall(name):
                if instead := rules.names.get(word.lower()):
                    yield Finding(path, getattr(node, "lineno", 1), f"the name {name!r}: write {instead}")
    yield from _comments(source.splitlines(), inside, path, rules)


def _worded(tree: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes that hold words or names, in the order of `ast.walk`, which takes three times as long."""
    waiting = deque([tree])
    while waiting:
        node = waiting.popleft()
        if type(node) in _WORDED:
            yield node
        for value in vars(node).values():
            if isinstance(value, list):
                waiting.extend(one for one in value if isinstance(one, ast.AST))
            elif isinstance(value, ast.AST) and type(value) not in _CONTEXTS:
                waiting.append(value)


def _comments(lines: list[str], inside: set[int], path: str, rules: Rules) -> Iterator[Finding]:
    """Comments on following lines are one text: a sentence and its source may be wrapped."""
    block: list[str] = []
    for number, line in enumerate([*lines, ""], 1):
        comment = _COMMENT.search(line) if number not in inside else None
        if comment and (not block or line.lstrip().startswith("#")):
            block.append(comment[1])
            continue
        if block:
            text, first = "\n".join(block), number - len(block)
            if match := _RELATIVE.match(text):
                yield Finding(path, first, f"a comment that begins with {match[1]!r}: name its subject")
            yield from check_text(text, path, first, rules)
        block = [comment[1]] if comment else []


def _spoken(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yields the docstrings of `node`'s body, also those below fields and constants, and the help texts of calls."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        for before, statement in zip([None, *node.body], node.body, strict=False):
            if before is None or isinstance(before, ast.Assign | ast.AnnAssign):
                value = statement.value if isinstance(statement, ast.Expr) else None
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield value.lineno, value.value
    if isinstance(node, ast.keyword) and node.arg in _SPOKEN_ARGUMENTS:
        value = node.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value.lineno, value.value


def _docstring(node: ast.AST) -> Iterator[tuple[int, str]]:
    match node:
        case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            if text := ast.get_docstring(node):
                yield node.body[0].lineno, text


def _defined(node: ast.AST) -> list[str]:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return [name]
    return []


def findings(root: Path = ROOT, rules: Rules | None = None) -> Iterator[Finding]:
    """Yields all findings of the files below `root`."""
    rules = rules or load_rules(root)
    for part in ("src", "tests", "tools"):
        for file in sorted((root / part).rglob("*.py")):
            path = file.relative_to(root).as_posix()
            if path not in rules.exempt:
                yield from check_python(file.read_text(), path, rules)
    for file in sorted({file for pattern in _PAGES for file in root.glob(pattern)}):
        path = file.relative_to(root).as_posix()
        if path not in rules.exempt:
            yield from check_page(file.read_text(), path, rules)


def check_page(source: str, path: str, rules: Rules) -> Iterator[Finding]:
    """A paragraph is one text."""
    line = 1
    for paragraph in source.split("\n\n"):
        yield from check_text(paragraph, path, line, rules)
        line += paragraph.count("\n") + 2


def long_subjects(since: str, root: Path = ROOT) -> list[str]:
    """Subjects of commits after `since` that are too long; none where there is no history, as in an exported tree."""
    if not (root / ".git").exists():
        return []
    log = subprocess.run(
        ["git", "log", "--no-merges", "--format=%cI\t%h\t%s"], cwd=root, capture_output=True, text=True
    )
    start = datetime.fromisoformat(since)
    commits = [line.split("\t", 2) for line in log.stdout.splitlines()]
    return [
        f"{name} {subject}"
        for at, name, subject in commits
        if len(subject) > LONGEST_SUBJECT and datetime.fromisoformat(at) > start
    ]


def problems(root: Path = ROOT) -> list[str]:
    rules = load_rules(root)
    return [
        *(f"commit subject over {LONGEST_SUBJECT}: {line}" for line in long_subjects(rules.subjects_since, root)),
        *(f"{found.path}:{found.line}: {found.text}" for found in findings(root, rules)),
    ]


if __name__ == "__main__":
    lines = problems()
    print("\n".join(lines) or "prose: in order")
    sys.exit(bool(lines))
