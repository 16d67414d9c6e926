"""The clients of a server, known by the certificates that they show."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Self

import msgspec
from aiohttp import web


class KnownClients(msgspec.Struct, frozen=True):
    """The authority that certifies clients, and the common names of those that may call; without any, each of them."""

    authority: bytes
    names: frozenset[str] = frozenset()

    @classmethod
    def named(cls, file: str, names: str) -> Self | None:
        """The clients of flags: a file of PEM, and names with commas between; None without a file. Raises OSError."""
        if not file:
            return None
        return cls(Path(file).read_bytes(), frozenset(name for part in names.split(",") if (name := part.strip())))

    def check(self, request: web.Request) -> None:
        """Raises HTTPForbidden for a request whose connection shows no certificate, or one of another name."""
        transport = request.transport
        if transport is None or not transport.get_extra_info("peercert"):
            raise web.HTTPForbidden(text="show the client certificate of a known caller\n")
        if not shows_name(request, self.names):
            raise web.HTTPForbidden(text="the client certificate names nobody who may call\n")


def shows_name(request: web.Request, names: Collection[str]) -> bool:
    """Returns whether the certificate of the connection has one of these common names, or there are no names."""
    if not names or request.transport is None:
        return True
    given = request.transport.get_extra_info("peercert") or {}
    return any(name == "commonName" and value in names for part in given.get("subject", ()) for name, value in part)
