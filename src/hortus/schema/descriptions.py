"""Docstrings of classes and of their fields, read from the source of each module once.

Python discards a string below a field; `ast` still sees it, so that the description of a field can be next to the
field. Without its source a kind has no descriptions and works otherwise.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import NamedTuple

_SCOPES = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class _Documented(NamedTuple):
    """The docstrings of one class, without those that it inherits."""

    text: str = ""
    fields: Mapping[str, str] = {}


def of_class(cls: type) -> str:
    """The docstring of the class as paragraphs."""
    return _of(cls).text


@cache
def of_fields(cls: type) -> dict[str, str]:
    """Docstrings by Python field name, inherited ones included."""
    return {name: text for base in reversed(cls.__mro__) for name, text in _of(base).fields.items()}


def _of(cls: type) -> _Documented:
    return _module(cls.__module__).get(cls.__qualname__, _Documented())


@cache
def _module(name: str) -> Mapping[str, _Documented]:
    """The classes of a module by their qualified names; none without its source."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[name]))
    except (KeyError, OSError, TypeError, SyntaxError):
        return {}
    return {
        qualified: _Documented(_paragraphs(ast.get_docstring(node) or ""), _fields(node.body))
        for qualified, node in _classes(tree, "")
    }


def _classes(scope: ast.AST, prefix: str) -> Iterator[tuple[str, ast.ClassDef]]:
    """The classes in `scope` with the names that Python gives them."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.ClassDef):
            yield f"{prefix}{node.name}", node
        if isinstance(node, _SCOPES):
            inner = "." if isinstance(node, ast.ClassDef) else ".<locals>."
            yield from _classes(node, f"{prefix}{node.name}{inner}")
        elif isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _classes(node, prefix)


def _fields(statements: list[ast.stmt]) -> dict[str, str]:
    found = {}
    for field, text in pairwise(statements):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str):
            found[field.target.id] = _paragraphs(inspect.cleandoc(text.value.value))
    return found


def _paragraphs(text: str) -> str:
    """Joins lines, because readers wrap text themselves; empty lines still separate paragraphs."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))
