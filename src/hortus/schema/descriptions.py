"""Docstrings of classes and of their fields, read from the source once per class.

Python discards a string below a field; `ast` still sees it, so that the description of a field can be next to the
field. Without its source a kind has no descriptions and works otherwise.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache
from itertools import pairwise


@cache
def of_class(cls: type) -> str:
    """The docstring of the class as paragraphs."""
    body = _body(cls)
    return _paragraphs(ast.get_docstring(body) or "") if body is not None else ""


@cache
def of_fields(cls: type) -> dict[str, str]:
    """Docstrings by Python field name, inherited ones included."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        body = _body(base) if base is not object else None
        if body is not None:
            found |= _documented(body.body)
    return found


def _body(cls: type) -> ast.ClassDef | None:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):
        return None
    node = tree.body[0]
    return node if isinstance(node, ast.ClassDef) else None


def _documented(statements: list[ast.stmt]) -> dict[str, str]:
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
