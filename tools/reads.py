"""Check that domains read API objects as structs: `python tools/reads.py`.

A read by a key that is written out (`obj["spec"]`, `obj.get("spec")`) is a finding. Objects that are built to be sent
are literal dicts, and filling one (`spec["region"] = region`) is no read. `tools/reads.toml` names the adapters of each
domain, which may read documents as servers send them.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = Path("tools/reads.toml")
DOMAINS = Path("src/hortus/domains")


class Read(NamedTuple):
    path: str
    line: int
    text: str


class Settings(NamedTuple):
    others: frozenset[str]
    """Names of variables that hold no API object."""
    adapters: dict[str, str]
    """Files below the domains that may read documents, each with the reason."""


def load_settings(root: Path = ROOT) -> Settings:
    found = tomllib.loads((root / SETTINGS).read_text())
    return Settings(frozenset(found["others"]), found["adapters"])


def reads_of(source: str, path: str, others: frozenset[str]) -> Iterator[Read]:
    """Yields the reads by a written key in one file."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Subscript(value=holder, slice=ast.Constant(value=str()), ctx=ast.Load()):
                pass
            case ast.Call(func=ast.Attribute(value=holder, attr="get"), args=[ast.Constant(value=str()), *_]):
                pass
            case _:
                continue
        name = holder.id if isinstance(holder, ast.Name) else holder.attr if isinstance(holder, ast.Attribute) else ""
        if name not in others:
            yield Read(path, node.lineno, ast.unparse(node))


def findings(root: Path = ROOT) -> list[Read]:
    """The reads of all domains outside of their adapters."""
    settings = load_settings(root)
    found: list[Read] = []
    for file in sorted((root / DOMAINS).rglob("*.py")):
        path = file.relative_to(root / DOMAINS).as_posix()
        if path not in settings.adapters:
            found += reads_of(file.read_text(), path, settings.others)
    return found


def problems(root: Path = ROOT) -> list[str]:
    missing = [path for path in load_settings(root).adapters if not (root / DOMAINS / path).exists()]
    return [
        *(f"{SETTINGS} names {path}, which does not exist" for path in missing),
        *(f"{DOMAINS}/{read.path}:{read.line}: {read.text}: read a struct instead" for read in findings(root)),
    ]


if __name__ == "__main__":
    lines = problems()
    print("\n".join(lines) or "reads: in order")
    sys.exit(bool(lines))
