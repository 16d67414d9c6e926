"""One connection to a remote cluster with one credential, and the state that the answers of its server show."""

from __future__ import annotations

import hashlib

import orjson

from hortus.engine.remote.context import RemoteConnection
from hortus.kube.dialing import Memory
from hortus.kube.errors import Forbidden, Garbage, NotFound

PROBE = "/api/v1/namespaces/kube-system"
_METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
_SHORT_LINE = 64 << 10
"""Bytes of an unfinished event that are not counted."""


class Link:
    """One connection with one credential; so many `calls` are under way."""

    __slots__ = ("calls", "connection", "digest", "interruptions", "superseded")

    def __init__(self, connection: RemoteConnection, digest: bytes) -> None:
        self.connection = connection
        self.digest = digest
        self.calls = 0
        self.interruptions = 0
        """The number of times that its streams were ended in good order, to begin again."""
        self.superseded = ""
        """The reason why streams have to end: "rotated", "recreated", "gone", or "" while this link is current."""

    def interrupt(self) -> None:
        """End all streams in good order: their readers begin new ones where they stopped."""
        self.interruptions += 1
        self.connection.end_streams()

    async def identify(self) -> str:
        """The uid of the cluster, which proves the credential; "" when it may not read that, which proves it too."""
        try:
            answer = await self.connection.call("GET", PROBE, accept=_METADATA)
        except (Forbidden, NotFound):
            return ""
        return _uid(answer.body, self.connection.host)

    def not_json(self, method: str, target: str) -> Garbage:
        """The error for an answer in markup."""
        problem = f"{method} {target.partition('?')[0]} was answered with markup where JSON was asked for"
        advice = "set the server URL to the API server itself, not to a login page"
        return Garbage(self.connection.host, problem, advice)


class Line:
    """Counts what a watch holds of an event that is not complete yet, beyond what every watch may."""

    __slots__ = ("_held", "_memory", "_size")

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._size = 0
        self._held = 0

    def grows(self, piece: bytes) -> bool:
        """Take one more piece; False when there is no room for it."""
        end = piece.rfind(b"\n")
        self._size = self._size + len(piece) if end < 0 else len(piece) - end - 1
        over = max(0, self._size - _SHORT_LINE)
        if over > self._held and not self._memory.take(over - self._held):
            return False
        if over < self._held:
            self._memory.give(self._held - over)
        self._held = over
        return True

    def end(self) -> None:
        self._memory.give(self._held)
        self._held = 0


def digest_of(document: bytes) -> bytes:
    """The digest by which a credential is recognised without keeping it."""
    return hashlib.sha256(document).digest()


def _uid(body: bytes, host: str) -> str:
    try:
        found = orjson.loads(body)
        uid = found["metadata"]["uid"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        uid = None
    if not isinstance(uid, str):
        advice = "check that the server URL is that of a Kubernetes API server"
        raise Garbage(host, "what it says of its namespace kube-system is not a Kubernetes object", advice)
    return uid
