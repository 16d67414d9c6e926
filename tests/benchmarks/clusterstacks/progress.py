"""The folder of a benchmark of cluster stacks, which may be kept for a later run."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from tests.benchmarks.clusterstacks import catalog
from tests.benchmarks.fleet import free_port

_ROOT = Path(__file__).resolve().parents[3]


class Progress(msgspec.Struct):
    """The contents of a folder that is kept."""

    releases: int
    clusters: int
    port: int
    """Port of the API server: kubeconfigs of clusters name it."""
    prepared: list[str] = []
    version: int = 1
    """Version of the stack that the Clusters have."""


def save(folder: Path, progress: Progress) -> None:
    """Write the state of a folder."""
    (folder / "progress.json").write_bytes(msgspec.json.encode(progress))


@contextlib.contextmanager
def folder_of(options: Any) -> Iterator[Path]:
    """The folder of --state, or one that is deleted in the end."""
    if options.state:
        options.state.mkdir(parents=True, exist_ok=True)
        yield options.state.resolve()
        return
    with tempfile.TemporaryDirectory(dir=_ROOT, prefix=".bench-") as scratch:
        yield Path(scratch)


def progress_of(folder: Path, options: Any) -> Progress:
    """The state of a folder that was kept, or of a new one with its releases."""
    file = folder / "progress.json"
    if file.exists():
        return msgspec.json.decode(file.read_bytes(), type=Progress)
    catalog.write_releases(folder / "releases", options.releases)
    return Progress(options.releases, options.clusters, free_port())
