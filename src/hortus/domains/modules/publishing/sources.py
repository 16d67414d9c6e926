"""The files of a module: from paths next to its config, or from https addresses; and the commit they belong to."""

from __future__ import annotations

import re
from pathlib import Path

from yarl import URL

from hortus.render.artifacts import ArtifactError, Transfer, TransferSettings

LARGEST_FILE = 16 << 20
_TIMEOUT = 60.0
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF = re.compile(r"ref: (refs/[^\s]+)")


class BadSource(ValueError):
    """A file or repository that cannot be read; the message names the key, the place and the fix."""


DOWNLOADS = TransferSettings(max_document=LARGEST_FILE, whole_timeout=_TIMEOUT)


async def read_source(key: str, place: str, folder: Path, *, downloads: TransferSettings = DOWNLOADS) -> bytes:
    """The file that `key` of a config in `folder` names. Raises BadSource."""
    return await _download(key, place, downloads) if place.startswith("https://") else _read(key, place, folder)


async def _download(key: str, address: str, downloads: TransferSettings) -> bytes:
    try:
        async with Transfer(downloads) as transfer:
            answer = await transfer.document("GET", URL(address))
    except (ArtifactError, ValueError) as error:
        raise BadSource(f"{key}: {address}: {error}") from None
    if answer.status != 200:
        raise BadSource(f"{key}: {address}: answered with HTTP status {answer.status}; check the address")
    return answer.body


def _read(key: str, place: str, folder: Path) -> bytes:
    path = folder / place
    try:
        data = path.read_bytes()
    except OSError as error:
        problem = f"{key}: {place} cannot be read: {error.strerror}"
        raise BadSource(f"{problem}; paths are relative to the folder of the module-config, {folder}") from None
    if len(data) > LARGEST_FILE:
        raise BadSource(f"{key}: {place} has {len(data)} bytes; {LARGEST_FILE} are allowed")
    return data


def head_commit(folder: Path) -> str:
    """The commit that a git working tree is at. Raises BadSource."""
    found = _git_folder(folder)
    head = _line(found / "HEAD", folder)
    reference = _REF.fullmatch(head)
    commit = _resolved(found, reference[1]) if reference else head
    if not _COMMIT.fullmatch(commit):
        raise BadSource(f"{folder}: the git repository has no commit; commit the module first")
    return commit


def _git_folder(folder: Path) -> Path:
    """The folder `.git` of the tree around `folder`; in a worktree or submodule, `.git` is a file that names it."""
    resolved = folder.resolve()
    for place in (resolved, *resolved.parents):
        found = place / ".git"
        if found.is_file():
            return (place / _line(found, folder).removeprefix("gitdir: ")).resolve()
        if found.is_dir():
            return found
    advice = "name the module's with --module-sources-git-directory DIR; an empty DIR leaves the sources out"
    raise BadSource(f"{resolved} is in no git repository; {advice}")


def _resolved(git: Path, name: str) -> str:
    """The commit of a branch, from a file of its own or the packed ones; '' for a branch without commits."""
    shared = git / "commondir"
    folders = [git, (git / shared.read_text().strip()).resolve()] if shared.is_file() else [git]
    for folder in folders:
        if (folder / name).is_file():
            return (folder / name).read_text().strip()
        packed = folder / "packed-refs"
        if packed.is_file():
            for line in packed.read_text().splitlines():
                commit, _, reference = line.partition(" ")
                if reference == name:
                    return commit
    return ""


def _line(path: Path, folder: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        raise BadSource(f"{folder}: its git repository cannot be read ({path})") from None
