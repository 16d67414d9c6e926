"""Releases in folders: written whole or not at all, and read with the same limits as from a registry."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import mkdtemp

from hortus.domains.stacks.publishing.errors import BadStack
from hortus.render.archive import ArchiveError, Folder


def write_release(
    output: Path, name: str, files: Mapping[str, bytes], *, complete: Callable[[Path], None] = lambda _: None
) -> Path:
    """Write a release to `<output>/<name>`, in place of what is there. Raises BadStack.

    `complete` adds files to the folder before it gets its place; where it fails, nothing is changed.
    """
    final = output / name
    staging = None
    try:
        output.mkdir(parents=True, exist_ok=True)
        staging = Path(mkdtemp(prefix=".making-", dir=output))
        folder = staging / name
        folder.mkdir()
        for file, data in files.items():
            (folder / file).write_bytes(data)
        complete(folder)
        if final.exists():
            final.rename(staging / "former")
        folder.rename(final)
    except OSError as error:
        raise BadStack(f"{final} cannot be written: {error.strerror}; choose another folder with --output") from None
    finally:
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)
    return final


def read_release(folder: Path) -> dict[str, bytes]:
    """The files of a release in a folder; folders in it are passed over. Raises BadStack."""
    try:
        tree = Folder(folder).tree()
    except OSError as error:
        raise BadStack(f"{folder} cannot be read: {error.strerror}; name a folder that `create` has made") from None
    except ArchiveError as error:
        raise BadStack(f"{folder}: {error}") from None
    return {path: file.data for path, file in tree.items() if "/" not in path}
