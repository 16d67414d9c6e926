"""The test files that a change can reach, by imports.

A module that is imported by name reaches with all its imports, also those in functions. A package of which a part is
imported runs too, but its functions do not: of it only the imports at its top count. What is found at run time
(domains, by their registry) and programs that a test starts count as not imported; a run without `SINCE` has these. A
file that is no module reaches the modules in which its name stands, and the tests in which its top folder's stands in
quotes.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
_PLACES = ("src/hortus", "tests")
"""The folders of modules."""
# Parsing all modules takes seconds, these lines a fraction. A line of a docstring that looks like an import is none the
# worse: more tests run.
_IMPORT = re.compile(r"^( *)(?:from +([\w.]+) +import +(\([^)]*\)|[^\n#]*)|import +([^\n#]*))", re.MULTILINE)
_TYPES_ALONE = re.compile(r"^if TYPE_CHECKING:\n(?:[ \n][^\n]*\n)*", re.MULTILINE)


class _Node(NamedTuple):
    module: str
    is_used: bool
    """False for a package of which only a part is imported."""


def changed_files(revision: str) -> list[str]:
    """Returns the paths that differ from where the branch left `revision`, those not committed included.

    Raises CalledProcessError for a revision that git does not know.
    """
    base = _git("merge-base", revision, "HEAD")[0]
    return sorted({*_git("diff", "--name-only", base), *_git("ls-files", "--others", "--exclude-standard")})


def reachable_tests(changed: Sequence[str], *, root: Path = ROOT) -> frozenset[str]:
    """Returns the test files that these paths can reach; both are relative to `root`."""
    files = [str(path.relative_to(root)) for place in _PLACES for path in (root / place).rglob("*.py")]
    paths = {_name(file): file for file in files}
    texts = {name: (root / file).read_text() for name, file in paths.items()}
    gone = {_name(file) for file in changed if file.endswith(".py") and file.startswith(_PLACES)}
    importers = _importers(texts, known={*paths, *gone})
    reached = {_Node(name, used) for name in (*gone, *_naming(changed, texts)) for used in (True, False)}
    waiting = list(reached)
    while waiting:
        new = importers[waiting.pop()] - reached
        reached |= new
        waiting.extend(new)
    running = {paths[node.module] for node in reached if node.module in paths}
    folders = tuple(f"{Path(file).parent}/" for file in running if file.endswith("conftest.py"))
    tests = (file for file in files if Path(file).name.startswith("test_"))
    return frozenset(file for file in tests if file in running or file.startswith(folders))


def _importers(texts: dict[str, str], known: set[str]) -> dict[_Node, set[_Node]]:
    found: dict[_Node, set[_Node]] = defaultdict(set)
    for name, text in texts.items():
        for is_top, imported in _imports(name, text):
            users = [_Node(name, True), *([_Node(name, False)] if is_top else [])]
            is_used = True
            for part in _prefixes(imported):
                if part in known:
                    found[_Node(part, is_used)].update(users)
                    is_used = False
    return found


def _naming(changed: Sequence[str], texts: dict[str, str]) -> Iterator[str]:
    for file in changed:
        if not file.endswith(".py"):
            folder = f'"{Path(file).parts[0]}"'
            for name, text in texts.items():
                if Path(file).name in text or (folder in text and name.rpartition(".")[2].startswith("test_")):
                    yield name


def _imports(importer: str, text: str) -> Iterator[tuple[bool, str]]:
    """Yields the names that a module imports, and True with those at its top."""
    for indent, module, names, modules in _IMPORT.findall(_TYPES_ALONE.sub("", text)):
        if module.startswith("."):  # one level, in tests alone
            module = importer.rpartition(".")[0] + module
        for one in re.split(r"[,\s]+", (names or modules).strip("() \n")):
            yield not indent, f"{module}.{one}" if module else one


def _name(file: str) -> str:
    parts = Path(file.removeprefix("src/")).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _prefixes(name: str) -> Iterator[str]:
    while name:
        yield name
        name = name.rpartition(".")[0]


def _git(*words: str) -> list[str]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
