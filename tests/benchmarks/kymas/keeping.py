"""A fleet that is installed once and measured often: the state folder of its `hortus up`, kept on disk.

A phase may run on a copy of the folder, in a process of its own, without what other phases did. The kubeconfigs of the
clusters name the port of the API server, so each start takes the one of the first.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec


class Kept(msgspec.Struct):
    """The facts of a fleet on disk."""

    port: int
    kymas: int


class Place(NamedTuple):
    """The folder of one run."""

    folder: Path
    kept: Kept | None
    """None for a fleet that has to be installed."""

    def keep(self, *, port: int, kymas: int) -> None:
        """Note that the fleet is installed."""
        (self.folder / _FACTS).write_bytes(msgspec.json.encode(Kept(port, kymas)))

    def found(self) -> Place:
        """The same folder with the facts that it has now."""
        return _place(self.folder)


_FACTS = "fleet.json"


@contextlib.contextmanager
def place_of(fleet: Path | None, *, copied: bool, scratch: Path) -> Iterator[Place]:
    """The folder to run in: `fleet` itself, a copy of it, or one that is gone afterwards."""
    if fleet is not None and not copied:
        fleet.mkdir(parents=True, exist_ok=True)
        yield _place(fleet)
        return
    with tempfile.TemporaryDirectory(dir=scratch, prefix=".bench-") as made:
        folder = Path(made)
        if fleet is not None:
            shutil.copytree(fleet, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.sock"))
        yield _place(folder)


def _place(folder: Path) -> Place:
    facts = folder / _FACTS
    return Place(folder, msgspec.json.decode(facts.read_bytes(), type=Kept) if facts.exists() else None)
