"""The whole transcript of a scenario, compared with the original's.

The original's transcripts lie under golden/, one file for each module of scenarios, written by our own runs of the real
kube-apiserver: `HORTUS_RECORD_TRANSCRIPTS=1` with `-m real_apiserver` writes them again. Every run against the original
verifies them, every run against the embedded server must say the same, where no original is present too.

A scenario's mark `allows(entry, *patterns)` exempts places that match a pattern (`*/body/details/causes*`); the entry
begins an item of docs/apiserver-limits.md. A pattern without a difference fails, so that none outlives its cause.
"""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import functools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import yarl
from tests.apiserver.wire import Answer, Events, Wire
from tests.conformance.api.masks import masked

from hortus.kube import yaml
from hortus.kube.objects import Object

EVERYWHERE = {
    "Descriptions of built-in fields": ["*/columnDefinitions/*/description"],
    "Pods name the service account `default`": ["*/body/spec/serviceAccount", "*/body/spec/serviceAccountName"],
}
"""Exempted in every scenario: entries of docs/apiserver-limits.md and the places they account for."""
GOLDEN = Path(__file__).parent / "golden"
RECORDING = bool(os.environ.get("HORTUS_RECORD_TRANSCRIPTS"))
_HEADERS = ("Content-Type", "Retry-After", "Allow", "WWW-Authenticate", "Location")
_PATIENCE = 60.0
"""Seconds after which something that a server should have learned of by itself fails the test."""


class Transcript(list[Object]):
    """The exchanges of one scenario in their order."""

    def __init__(self) -> None:
        super().__init__()
        self._is_silent = False

    def tell(self, exchange: Object) -> None:
        if not self._is_silent:
            self.append(exchange)

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """Excludes requests whose answers differ from run to run."""
        before, self._is_silent = self._is_silent, True
        try:
            yield
        finally:
            self._is_silent = before


class RecordedWire(Wire):
    """A wire that keeps what went over it."""

    def __init__(self, wire: Wire, transcript: Transcript) -> None:
        super().__init__(wire.session, wire.base, wire.token)
        self.transcript = transcript

    async def send(self, method: str, path: str, body: Any = None, **options: Any) -> Answer:
        answer = await super().send(method, path, body, **options)
        self.transcript.tell(_exchange(method, path, options, answer))
        return answer

    async def raw(
        self, method: str, path: str, body: bytes | None, *, content_type: str, headers: dict[str, str], recorded: bool
    ) -> Answer:
        """A request whose path goes out as it is written; a redirect is not followed."""
        sent = self._headers(headers, "", content_type or ("application/json" if body is not None else ""))
        url = yarl.URL(self.base + path, encoded=True)
        async with self.session.request(method, url, headers=sent, data=body, allow_redirects=False) as response:
            answer = await _answer(response)
        if recorded:
            self.transcript.tell(_exchange(method, path, {"content_type": content_type, "headers": headers}, answer))
        return answer

    @contextlib.asynccontextmanager
    async def watch(
        self, path: str, *, accept: str = "", headers: dict[str, str] | None = None
    ) -> AsyncIterator[Events]:
        async with super().watch(path, accept=accept, headers=headers) as events:
            yield _RecordedEvents(events, self.transcript, path)

    def unrecorded(self) -> contextlib.AbstractContextManager[None]:
        """Leaves out requests whose answers depend on timing."""
        return self.transcript.silent()

    async def until(self, ask: Callable[[], Awaitable[Answer]], holds: Callable[[Answer], bool]) -> Answer:
        """Ask again until the answer is as wanted; the transcript has that one alone.

        For what a server learns by a watch of its own (webhooks, policies, a CRD's new schema): the answer is the only
        sign of it that kube-apiserver gives.
        """
        async with asyncio.timeout(_PATIENCE):
            while True:
                start = len(self.transcript)
                if holds(answer := await ask()):
                    return answer
                del self.transcript[start:]

    async def at_once(self, *asks: Callable[[RecordedWire], Awaitable[Answer]]) -> list[Answer]:
        """Ask all of this together, and record it in this order; for answers that a server lets wait for a time."""
        wires = [RecordedWire(self, Transcript()) for _ in asks]
        answers = await asyncio.gather(*(ask(wire) for ask, wire in zip(asks, wires, strict=True)))
        for exchange in (exchange for wire in wires for exchange in wire.transcript):
            self.transcript.tell(exchange)
        return answers

    async def expect_gone(self, collection: str, *names: str) -> None:
        """Wait for the deletion of each of these, by a watch. Not recorded: others appear and disappear meanwhile."""
        with self.unrecorded():
            listed = (await self.get(collection)).body
            left = set(names) & {item["metadata"]["name"] for item in listed["items"]}
            revision = listed["metadata"]["resourceVersion"]
            async with self.watch(f"{collection}?watch=true&resourceVersion={revision}") as events:
                while left:
                    event = await events.next()
                    if event["type"] == "DELETED":
                        left.discard(event["object"]["metadata"]["name"])


class _RecordedEvents(Events):
    def __init__(self, events: Events, transcript: Transcript, path: str) -> None:
        super().__init__(events._response)
        self._transcript = transcript
        self._path = path.partition("?")[0]

    async def next(self) -> Object:
        event = await super().next()
        self._transcript.tell({"watch": self._path, "event": event})
        return event


async def _answer(response: aiohttp.ClientResponse) -> Answer:
    content, raw = response.headers.get("Content-Type", ""), await response.read()
    is_json = "json" in content and raw
    return Answer(response.status, orjson.loads(raw) if is_json else raw, response.headers)


def _exchange(method: str, path: str, options: Object, answer: Answer) -> Object:
    headers = {name: answer.headers[name] for name in _HEADERS if name in answer.headers}
    if headers.get("Content-Type") == "application/json":
        del headers["Content-Type"]
    if warnings := answer.headers.getall("Warning", []):
        headers["Warning"] = warnings
    body = answer.body.decode(errors="replace") if isinstance(answer.body, bytes) else answer.body
    if "yaml" in headers.get("Content-Type", ""):
        body = yaml.load(body)
    sent = {name: options[name] for name in ("content_type", "accept", "headers") if options.get(name)}
    return {"request": f"{method} {path}", **sent, "code": answer.code, "headers": headers, "body": body}


def verify(module: str, scenario: str, transcript: Transcript, *, is_original: bool, allowed: list[str]) -> None:
    """Fail where this is not what the original said; with RECORDING, write down what it says."""
    seen = masked(list(transcript))
    if RECORDING and is_original:
        _record(module, scenario, seen)
        return
    wanted = _said(module).get(scenario)
    assert wanted is not None, f"golden/{module}.jsonl has no {scenario}: record it from the real kube-apiserver"
    found = list(_differences(wanted, seen, ""))
    if not is_original:
        idle = [pattern for pattern in allowed if not any(fnmatch.fnmatchcase(each[0], pattern) for each in found)]
        assert not idle, f"nothing differs (any more) at {idle}"
        allowed = [*allowed, *(pattern for patterns in EVERYWHERE.values() for pattern in patterns)]
        found = [each for each in found if not any(fnmatch.fnmatchcase(each[0], pattern) for pattern in allowed)]
    shown = "\n".join(
        f"{path}\n    original: {_short(one)}\n    here:     {_short(other)}" for path, one, other in found
    )
    assert not found, f"the original says otherwise:\n{shown}"


def _short(value: Any) -> str:
    text = "(absent)" if value is _ABSENT else orjson.dumps(value).decode()
    return text if len(text) < 1000 else text[:1000] + " ..."


_ABSENT = object()


def _differences(one: Any, other: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from _differences(one.get(key, _ABSENT), other.get(key, _ABSENT), f"{path}/{key}")
    elif (mine := _named(one)) and (yours := _named(other)) and mine.keys() != yours.keys():
        yield from _differences(mine, yours, path)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (mine, yours) in enumerate(zip(one, other, strict=True)):
            yield from _differences(mine, yours, f"{path}/{index}")
    elif type(one) is not type(other) or one != other:
        yield path, one, other


def _named(value: Any) -> dict[str, Any]:
    """The items of a list by their names, where all have one of their own."""
    if not isinstance(value, list) or not all(isinstance(each, dict) and "name" in each for each in value):
        return {}
    found = {str(each["name"]): each for each in value}
    return found if len(found) == len(value) else {}


@functools.cache
def _said(module: str) -> dict[str, list[Object]]:
    """The transcripts of a module, read once for all its scenarios."""
    return _read(module)


def _read(module: str) -> dict[str, list[Object]]:
    path = GOLDEN / f"{module}.jsonl"
    found: dict[str, list[Object]] = {}
    for line in path.read_bytes().splitlines() if path.exists() else ():
        entry = orjson.loads(line)
        if "scenario" in entry:
            current = found.setdefault(entry["scenario"], [])
        else:
            current.append(entry)
    return found


def _record(module: str, scenario: str, exchanges: list[Object]) -> None:
    known = _read(module) | {scenario: exchanges}
    lines: list[Object] = []
    for name in sorted(known):
        lines += [{"scenario": name}, *known[name]]
    GOLDEN.mkdir(exist_ok=True)
    (GOLDEN / f"{module}.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    _said.cache_clear()
