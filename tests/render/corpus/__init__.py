"""The corpus of templates: each line of templates/*.txt is one, rendered with values.yaml.

golden/*.json hold what Helm's own engine gives for each, written by `python -m tests.render.corpus`. Lines whose
result is random or depends on the time print only the parts that do not change.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hortus.render.gotemplate import goyaml

FOLDER = Path(__file__).parent
FILES = {"a.txt": b"one\ntwo\n", "conf/x.yaml": b"a: 1\n", "conf/y.txt": b"why\n", "conf/d/z": b"zed"}


class Case(NamedTuple):
    topic: str
    line: int
    template: str


def values() -> dict[str, Any]:
    found = goyaml.read((FOLDER / "values.yaml").read_text())
    assert isinstance(found, dict)
    return found


def cases(topic: str) -> Iterator[Case]:
    text = (FOLDER / "templates" / f"{topic}.txt").read_text()
    for number, line in enumerate(text.split("\n"), start=1):
        if line:
            yield Case(topic, number, line)


TOPICS = sorted(path.stem for path in (FOLDER / "templates").glob("*.txt"))
