"""Shoots with what Gardener 1.150 makes of them, measured there; INDEX.md, next to the data, explains them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from hortus.kube.objects import Object
from hortus.kube.patches import apply_json_patch

_FOLDER = Path(__file__).resolve().parents[4] / "shared" / "corpora"


class Case(NamedTuple):
    id: str
    shoot: Object
    """As it is sent."""
    expected: Object

    @property
    def defaulted(self) -> Any:
        """The spec that Gardener makes of it; only for a case that names one."""
        return apply_json_patch(self.shoot["spec"], self.expected["defaulted"])


def cases() -> list[Case]:
    """Every case; skips the test where the data is not there. `HORTUS_CORPORA` names another place."""
    folder = Path(os.environ.get("HORTUS_CORPORA") or _FOLDER)
    if not folder.is_dir():
        pytest.skip(f"no corpora at {folder}: set HORTUS_CORPORA to compare with what Gardener answered")
    return list(_read(folder))


@cache
def _read(folder: Path) -> tuple[Case, ...]:
    return tuple(_cases(folder))


def _cases(folder: Path) -> Iterator[Case]:
    bases = orjson.loads((folder / "shoot-bases.json").read_bytes())
    for line in (folder / "shoots.jsonl").read_bytes().splitlines():
        found = orjson.loads(line)
        shoot = apply_json_patch(orjson.loads(orjson.dumps(bases[found["base"]])), found["patch"])
        yield Case(found["id"], shoot, found["expected"])
