"""The names that `hortus.engine` exports: each has a use outside of the engine, or is there for authors."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import hortus.engine
from hortus.cli.new import TEMPLATE

ROOT = Path(__file__).resolve().parents[2]
FOR_AUTHORS = {
    "programs that put themselves together": {
        *("HOST_FLAGS", "Host", "LeadershipLost", "LogSettings", "add_kind", "configure_logging"),
        *("hosted", "run", "run_manager"),
    },
    "reading of objects and conditions": {
        *("copy_of", "has_condition", "is_owned_by", "resource_of"),
    },
    "sources, and what they need": {"Permission", "annotations_changed", "to_label", "to_same_name"},
}
"""Exports without a use by Hortus' own domains, by the work of an author that they are for."""


def _imported() -> Iterator[str]:
    """The names that are imported from the engine's package by the product, pages, examples and new projects."""
    for path in (ROOT / "src").rglob("*.py"):
        if "engine" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module == "hortus.engine":
                    yield from (alias.name for alias in node.names)
    texts = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.diff"), *TEMPLATE.rglob("*.tmpl")]
    for path in texts:
        for found in re.findall(r"from hortus\.engine import (\(.*?\)|[^\n]*)", path.read_text(), re.DOTALL):
            yield from re.findall(r"\w+", found)


def test_each_export_has_a_use_or_is_there_for_authors() -> None:
    imported, authors = set(_imported()), set().union(*FOR_AUTHORS.values())
    assert set(hortus.engine.__all__) - imported - authors == set()
    assert authors & imported == set(), "these have a use by now"
    assert imported - set(hortus.engine.__all__) <= {"events", "process"}, "modules"


def test_each_export_is_there() -> None:
    assert [name for name in hortus.engine.__all__ if not hasattr(hortus.engine, name)] == []
