"""Check that domains read API objects as structs: `python tools/reads.py`.

A read by a key that is written out (`obj["spec"]`, `obj.get("spec")`) is a finding. Objects that are built to be sent
are literal dicts, and filling one (`spec["region"] = region`) is no read. `tools/reads.toml` names the adapters of each
domain, which may read documents as servers send them, and the ceiling of the rest. `--list DOMAIN` prints the findings
of a domain; `--lower` writes the counts of today as the ceilings, never a higher one. A domain that is not in the file
has the ceiling 0.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = Path("tools/reads.toml")
DOMAINS = Path("src/hortus/domains")
_CEILING = re.compile(r'"([\w-]+)" = \d+$')


class Read(NamedTuple):
    path: str
    line: int
    text: str


class Settings(NamedTuple):
    others: frozenset[str]
    """Names of variables that hold no API object."""
    adapters: dict[str, str]
    """Files below the domains that may read documents, each with the reason."""
    ceilings: dict[str, int]


def load_settings(root: Path = ROOT) -> Settings:
    found = tomllib.loads((root / SETTINGS).read_text())
    return Settings(frozenset(found["others"]), found["adapters"], found["ceilings"])


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


def domain_of(path: str) -> str:
    return path.split("/")[0]


def problems(root: Path = ROOT) -> list[str]:
    settings = load_settings(root)
    counts = Counter(domain_of(read.path) for read in findings(root))
    missing = [path for path in settings.adapters if not (root / DOMAINS / path).exists()]
    return [
        *(f"tools/reads.toml names {path}, which does not exist" for path in missing),
        *(
            f"{domain} reads API objects by {count} written keys, {ceiling} are allowed: read a struct, or see "
            f"`python tools/reads.py --list {domain}`"
            for domain, count in sorted(counts.items())
            if count > (ceiling := settings.ceilings.get(domain, 0))
        ),
    ]


def lower(root: Path = ROOT) -> None:
    """Writes the counts of today where they are below the ceilings; each ceiling stands on a line of its own."""
    counts, ceilings = Counter(domain_of(read.path) for read in findings(root)), load_settings(root).ceilings
    lines = []
    for line in (root / SETTINGS).read_text().splitlines():
        if match := _CEILING.match(line):
            domain = match[1]
            line = f'"{domain}" = {min(counts[domain], ceilings[domain])}'
        lines.append(line)
    (root / SETTINGS).write_text("\n".join([*lines, ""]))


def main(arguments: list[str]) -> int:
    match arguments:
        case ["--lower"]:
            lower()
            return 0
        case ["--list", domain]:
            print("\n".join(f"{read.path}:{read.line}: {read.text}" for read in findings() if _within(read, domain)))
            return 0
    lines = problems()
    print("\n".join(lines) or "reads: in order")
    return bool(lines)


def _within(read: Read, domain: str) -> bool:
    return domain_of(read.path) == domain


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
