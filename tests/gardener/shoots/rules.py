"""Gardener's own rules, and how often each was met: read from its source, and from counters compiled into it."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.oracles.programs import SOURCES, GoProgram, built_program, go

MODULE: Final = "github.com/gardener/gardener"
SHOOT: Final = "pkg/api/core/validation/shoot.go"
_FILES: Final = ("pkg/api/core/validation/", "pkg/utils/validation/")
_BLOCK: Final = re.compile(rf"{MODULE}/(\S+):(\d+)\.(\d+),(\d+)\.(\d+) \d+ (\d+)")
_FUNCTION: Final = re.compile(r"func (?:\([^)]*\) )?(\w+)")
_ERROR: Final = re.compile(
    r"field\.(?:Invalid|Required|Forbidden|NotSupported|Duplicate|TooLong|TooMany|InternalError)\("
)


class Block(NamedTuple):
    begin: tuple[int, int]
    end: tuple[int, int]
    count: int


class Rule(NamedTuple):
    """A place in Gardener's source that makes an error."""

    file: str
    function: str
    line: int
    text: str
    count: int


class Met(NamedTuple):
    rules: tuple[Rule, ...]
    """The rules of the functions that ran at least once."""
    silent: frozenset[str]
    """Functions of the validation of Shoots that never ran."""


@contextmanager
def counting(program: str, folder: Path) -> Iterator[GoProgram]:
    """The program, which writes its counters into the folder as it ends."""
    binary = built_program(program)
    assert binary is not None
    os.environ["GOCOVERDIR"] = str(folder)
    try:
        running = GoProgram(binary)
    finally:
        del os.environ["GOCOVERDIR"]
    yield running
    running.close()


def met(folder: Path) -> Met:
    """The rules of all files that validate, with what the counters in the folder say."""
    text = folder / "counters.txt"
    go(SOURCES / "gardener", "tool", "covdata", "textfmt", f"-i={folder}", f"-o={text}")
    source = Path(go(SOURCES / "gardener", "list", "-m", "-f", "{{.Dir}}", MODULE).strip())
    rules: list[Rule] = []
    silent: set[str] = set()
    for file, blocks in _blocks(text.read_text()).items():
        if not file.startswith(_FILES):
            continue
        lines = (source / file).read_text().splitlines()
        ran = {_function(lines, block.begin[0]) for block in blocks if block.count}
        rules += [rule for rule in _rules(file, lines, blocks) if rule.function in ran]
        if file == SHOOT:
            silent = {found[1] for line in lines if (found := _FUNCTION.match(line))} - ran
    return Met(tuple(rules), frozenset(silent))


def _blocks(text: str) -> dict[str, list[Block]]:
    found: dict[str, list[Block]] = defaultdict(list)
    for match in _BLOCK.finditer(text):
        file, *numbers = match.groups()
        top, left, bottom, right, count = map(int, numbers)
        found[file].append(Block((top, left), (bottom, right), count))
    return found


def _rules(file: str, lines: list[str], blocks: list[Block]) -> Iterator[Rule]:
    for number, line in enumerate(lines, 1):
        if (error := _ERROR.search(line)) is None:
            continue
        place = (number, error.start() + 1)
        counts = [block.count for block in blocks if block.begin <= place < block.end]
        if counts:
            yield Rule(file, _function(lines, number), number, line.strip(), counts[-1])


def _function(lines: list[str], number: int) -> str:
    """The function that the line belongs to."""
    return next(found[1] for line in reversed(lines[:number]) if (found := _FUNCTION.match(line)))
