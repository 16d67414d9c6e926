"""The small files next to the segments: the spool's identity, the begin of its chain, its head, one cursor per sink.

Each is JSON with a checksum (with the spool's key, a MAC), and is replaced as a whole. A file that does not check is
reported as `FoundMark.problem` and never guessed.
"""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from hortus.domains.garden.audit.buffer.spool.disk import SpoolDisk
from hortus.domains.garden.audit.buffer.spool.frames import HashChain
from hortus.kube.shapes import decode_json

IDENTITY = "spool.json"
ANCHOR = "anchor.json"
HEAD = "head.json"
_CURSOR = "cursor-{}.json"
_SINK = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
FORMAT = 1

_Body = TypeVar("_Body", bound=msgspec.Struct)


class SpoolError(Exception):
    """The spool cannot be used; the message names the file and the fix."""


class SpoolIdentity(msgspec.Struct, frozen=True, rename="camel"):
    """`spool.json`: written once."""

    format: int
    id: str
    keyed: bool


class SpoolPosition(msgspec.Struct, frozen=True, rename="camel"):
    """A place between two frames."""

    segment: int
    offset: int
    sequence: int
    """Sequence number of the next line."""
    digest: str
    """Digest of the frame before, in hex."""


class _Checked(msgspec.Struct, frozen=True):
    body: msgspec.Raw
    check: str


class FoundMark(NamedTuple):
    """A position that was read from a file, and the reason where there is none."""

    position: SpoolPosition | None
    problem: str = ""


class SpoolMarks:
    """The small files of the spool in `folder`."""

    def __init__(self, folder: Path, chain: HashChain, disk: SpoolDisk) -> None:
        self._folder = folder
        self._chain = chain
        self._disk = disk

    def identify(self, *, create: bool) -> SpoolIdentity:
        """The spool's identity, made where there is none and `create` says so. Raises SpoolError."""
        path = self._folder / IDENTITY
        if create and not path.exists():
            made = SpoolIdentity(FORMAT, secrets.token_hex(16), self._chain.keyed)
            self._write(IDENTITY, made, durable=True)
        try:
            checked = decode_json(path.read_bytes(), _Checked)
            found = decode_json(bytes(checked.body), SpoolIdentity)
        except FileNotFoundError:
            raise SpoolError(f"{path} does not exist: {self._folder} holds no spool") from None
        except msgspec.DecodeError as error:
            raise SpoolError(f"{path} cannot be read: {error}") from None
        if found.format != FORMAT:
            raise SpoolError(f"{path}: format {found.format} is not known; this version reads {FORMAT}")
        if found.keyed != self._chain.keyed:
            verb = "was made with a key: give" if found.keyed else "was made without a key: leave out"
            raise SpoolError(f"{path}: the spool {verb} the key file, or use another folder")
        if checked.check != self._check(IDENTITY, checked.body):
            raise SpoolError(f"{path} does not check: the file was altered, or the key is another one")
        return found

    def anchor(self) -> FoundMark:
        """The begin of the chain where older segments were deleted."""
        return self._position(ANCHOR)

    def head(self) -> FoundMark:
        """A place up to which lines were acknowledged, at most a second before the last one."""
        return self._position(HEAD)

    def cursor(self, sink: str) -> FoundMark:
        """The place up to which `sink` has confirmed all lines."""
        return self._position(_CURSOR.format(sink))

    def cursors(self) -> list[str]:
        """The names of the sinks that have a cursor."""
        return sorted(path.name[len("cursor-") : -len(".json")] for path in self._folder.glob(_CURSOR.format("*")))

    def set_anchor(self, position: SpoolPosition) -> None:
        self._write(ANCHOR, position, durable=True)

    def set_head(self, position: SpoolPosition) -> None:
        self._write(HEAD, position, durable=False)

    def set_cursor(self, sink: str, position: SpoolPosition, *, durable: bool = False) -> None:
        """Moves the cursor of `sink`. Without `durable` a loss of power lets some lines be sent again."""
        self._write(_CURSOR.format(sink), position, durable=durable)

    def _position(self, name: str) -> FoundMark:
        try:
            return FoundMark(self._read(name, SpoolPosition))
        except FileNotFoundError:
            return FoundMark(None)
        except SpoolError as error:
            return FoundMark(None, str(error))

    def _read(self, name: str, body: type[_Body]) -> _Body:
        path = self._folder / name
        try:
            checked = decode_json(path.read_bytes(), _Checked)
            if checked.check != self._check(name, checked.body):
                raise SpoolError(f"{path} does not check: the file was altered")
            return decode_json(bytes(checked.body), body)
        except msgspec.DecodeError as error:
            raise SpoolError(f"{path} cannot be read: {error}") from None

    def _write(self, name: str, body: msgspec.Struct, *, durable: bool) -> None:
        raw = msgspec.json.encode(body)
        checked = _Checked(msgspec.Raw(raw), self._check(name, raw))
        self._disk.replace(self._folder / name, msgspec.json.encode(checked), durable=durable)

    def _check(self, name: str, raw: bytes | msgspec.Raw) -> str:
        # The name is covered, so that one file cannot be put in the place of another.
        return self._chain.digest(name.encode(), (bytes(raw),)).hex()


def check_sink_name(name: str) -> None:
    """Raises ValueError for a name that cannot be part of a file's name."""
    if not _SINK.fullmatch(name):
        raise ValueError(f"sink name {name!r} must be 1 to 63 small letters, digits and dashes")
