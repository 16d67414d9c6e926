"""Placeholders of a stack's files: `<< .ClusterClassVersion >>` and its like, filled when a release is made.

The blanks belong to the marks. A name that is not known becomes empty, as in csctl, and is reported, because a shell's
`cat << EOF` looks the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from hortus.domains.stacks.publishing.errors import BadStack
from hortus.render.archive import Tree

_OPEN, _CLOSE = b"<< ", b" >>"
_PLACEHOLDER = re.compile(re.escape(_OPEN) + b"(.*?)" + re.escape(_CLOSE), re.DOTALL)
_SHOWN = 40


class FilledStack(NamedTuple):
    """The files of a stack with the placeholders filled, and what its author should know."""

    files: Tree
    warnings: tuple[str, ...]


def fill(stack: Tree, values: Mapping[str, str]) -> FilledStack:
    """Fill the placeholders of all files. Raises BadStack for one that does not end."""
    known = {f".{name}".encode(): text.encode() for name, text in values.items()}
    files, warnings, problems = {}, [], []
    for path, file in stack.items():
        unknown = {name for name in _PLACEHOLDER.findall(file.data) if name not in known}
        warnings += [f"{path}: {_written(name)} is no known placeholder and becomes empty" for name in sorted(unknown)]
        end = file.data.rpartition(_CLOSE)[2]
        if _OPEN in end:
            at = file.data.rindex(_OPEN)
            line = file.data.count(b"\n", 0, at) + 1
            problems.append(f"{path}: line {line}: a placeholder begins with '<< ' and does not end with ' >>'")
        files[path] = _PLACEHOLDER.sub(lambda found: known.get(found[1], b""), file.data)
    if problems:
        raise BadStack(*problems)
    return FilledStack(Tree(files), tuple(warnings))


def _written(name: bytes) -> str:
    text = name.decode("utf-8", "replace")
    return ascii(f"<< {text[:_SHOWN]}{'...' if len(text) > _SHOWN else ''} >>")
