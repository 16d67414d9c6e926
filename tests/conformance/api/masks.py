"""Takes out of a transcript what differs from one run to the next, and nothing else.

Identities keep what they say of each other: the first uid of a transcript is `<uid-1>` wherever it stands, and an
object's revisions are numbered in their order, so that a write that should have changed nothing shows. Numbers given
by a server that counts for everybody (a list's revision) say nothing and are gone.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import orjson

from hortus.kube.objects import Object

_NOBODY = "00000000-0000-0000-0000-000000000000"
_UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
# Times that scenarios send themselves are of years long ago.
_TIME = re.compile(r"\b20[2-9][4-9]-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_AGE = re.compile(r"\d+[smh](\d+s)?")
_WORDS = (
    (_TIME, "<time>"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "127.0.0.1:<port>"),
    (re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+"), "<token>"),
    (re.compile(r"\bLS0tLS1CRUdJTi[A-Za-z0-9+/=]+"), "<pem>"),
    (re.compile(r"(current: |in object meta: |oldest: |record \()\d+(?![\w-])"), r"\1<revision>"),
    (re.compile(r"continue=[\w%-]{30,}"), "continue=<continue>"),
    # A patched object that cannot be read is quoted whole, its fields in an order of each part's own.
    (re.compile(r'(?<=Invalid value: )"\{\\"(?:apiVersion|kind)\\".*\}"(?=: )', re.DOTALL), "<object>"),
)
_ASKED = re.compile(r"(resourceVersion=)([1-9]\d*)\b")
_LONG = 1000
"""Characters of a text beyond which a transcript keeps its beginning and digest."""
_FIRST_PORT = 20_000
"""The first that a server gives out by itself: those that it listens on in tests, and node ports."""
_SHOWN_PORT = 30_000
"""Stands in transcripts for each of them."""
_ADDRESSES = ("clusterIP", "clusterIPs")


def masked(exchanges: list[Object]) -> list[Object]:
    """The same transcript for every run of one scenario against one kind of server."""
    text = orjson.dumps(exchanges).decode()
    for name, shown in _generated_names(exchanges):
        text = text.replace(name, shown)
    whole = orjson.loads(text)
    mask = _Mask(whole)
    return [mask.applied(each) for each in whole]


def _generated_names(value: Any) -> set[tuple[str, str]]:
    if isinstance(value, list):
        return set().union(*map(_generated_names, value))
    if not isinstance(value, dict):
        return set()
    found = _generated_names(list(value.values()))
    start, name = value.get("generateName"), value.get("name")
    if isinstance(start, str) and isinstance(name, str) and name.startswith(start) and len(name) == len(start) + 5:
        found.add((name, f"{start}<5>"))
    return found


class _Mask:
    def __init__(self, whole: list[Object]) -> None:
        seen = dict.fromkeys(uid for uid in _UID.findall(orjson.dumps(whole).decode()) if uid != _NOBODY)
        self._uids = {uid: f"<uid-{number}>" for number, uid in enumerate(seen, start=1)}
        self._revisions: dict[str, set[int]] = {}
        self._returned: set[str] = set()
        self._collect(whole)

    def _collect(self, value: Any) -> None:
        if isinstance(value, list):
            for each in value:
                self._collect(each)
        elif isinstance(value, dict):
            if _has_identity(value):
                self._revisions.setdefault(value["uid"], set()).add(int(value["resourceVersion"]))
            self._returned.add(str(value.get("resourceVersion")))
            self._collect(list(value.values()))

    def applied(self, value: Any, key: str = "") -> Any:
        if isinstance(value, str):
            return self._text(value, key)
        if isinstance(value, list):
            return [
                self._cell(each) if key == "cells" else self.applied(each, key) for each in self._ordered(value, key)
            ]
        if isinstance(value, dict):
            return {self._text(name, ""): self._field(value, name) for name in sorted(value)}
        return (
            _SHOWN_PORT if key.lower().endswith("port") and isinstance(value, int) and value >= _FIRST_PORT else value
        )

    def _field(self, owner: Object, name: str) -> Any:
        if name == "resourceVersion" and isinstance(owner[name], str) and owner[name].isdigit():
            return self._revision(owner)
        return self.applied(owner[name], name)

    def _revision(self, metadata: Object) -> str:
        if not _has_identity(metadata):
            return "<revision>"
        return f"<revision-{sorted(self._revisions[metadata['uid']]).index(int(metadata['resourceVersion'])) + 1}>"

    def _text(self, value: str, key: str) -> str:
        if key in _ADDRESSES and value not in ("", "None"):
            return "<address>"
        if key == "serverAddress":
            return "<address>"
        if key == "continue" and value:
            return "<continue>"
        for pattern, shown in _WORDS:
            value = pattern.sub(shown, value)
        if len(value) > _LONG:
            value = (
                f"{value[:40]}<{len(value)} characters, {hashlib.blake2b(value.encode(), digest_size=8).hexdigest()}>"
            )
        if key == "request":
            value = _ASKED.sub(lambda found: f"{found[1]}<revision>" if found[2] in self._returned else found[0], value)
        return _UID.sub(lambda found: self._uids.get(found[0], found[0]), value)

    def _cell(self, value: Any) -> Any:
        return "<age>" if isinstance(value, str) and _AGE.fullmatch(value) else self.applied(value)

    def _ordered(self, value: list[Any], key: str) -> list[Any]:
        # Sorted by time first, whose seconds may pass between two writes or not.
        return sorted(value, key=_manager) if key == "managedFields" else value


def _has_identity(value: Object) -> bool:
    revision = value.get("resourceVersion")
    return isinstance(value.get("uid"), str) and isinstance(revision, str) and revision.isdigit()


def _manager(entry: Any) -> tuple[str, ...]:
    return tuple(str(entry.get(key, "")) for key in ("manager", "operation", "subresource", "apiVersion"))
