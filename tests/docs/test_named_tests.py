"""Tests that pages name as the holders of their promises: each file and each function is there, and is collected."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BASES = {"docs/apiserver-security.md": "tests/bad_inputs/apiserver", "docs/modules": "tests/domains/modules"}
"""Folders that a page's names without a folder lie in, by the page or its folder."""
_NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")
_HELD = re.compile(r"\bheld[^`.]*? by\s+`([^`]*)`", re.IGNORECASE)


def _pages() -> list[str]:
    texts = {page: page.read_text() for page in sorted(ROOT.glob("docs/**/*.md"))}
    return [str(page.relative_to(ROOT)) for page, text in texts.items() if _NAMED.search(text)]


@cache
def _functions(file: Path) -> frozenset[str]:
    """The functions at the top of a file whose names pytest collects."""
    found = ast.parse(file.read_text()).body if file.is_file() else []
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(one.name for one in found if isinstance(one, kinds) and one.name.startswith("test_"))


def _file_of(page: str, path: str) -> Path:
    if path.startswith("tests/"):
        return ROOT / path
    base = next((folder for prefix, folder in BASES.items() if page.startswith(prefix)), "tests")
    return ROOT / base / path


@pytest.mark.parametrize("page", _pages())
def test_each_test_that_a_page_names_is_there(page: str) -> None:
    named = _NAMED.findall((ROOT / page).read_text())
    assert [f"{path}::{name}" for path, name in named if name not in _functions(_file_of(page, path))] == []


@pytest.mark.parametrize("page", _pages())
def test_a_promise_names_its_test_by_file_and_function(page: str) -> None:
    """A folder or a file alone says nothing of the promise."""
    held = _HELD.findall((ROOT / page).read_text())
    assert [name for name in held if not _NAMED.fullmatch(f"`{name}`")] == []
