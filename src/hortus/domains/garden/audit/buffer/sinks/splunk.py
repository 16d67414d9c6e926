"""Sink `splunk`: the HTTP Event Collector, with indexer acknowledgement where it is asked for.

Without acknowledgement an answer says that Splunk has taken the events, with it that they are indexed. Source: "Format
events for HTTP Event Collector" and "HTTP Event Collector indexer acknowledgment"
(https://docs.splunk.com/Documentation/Splunk/latest/Data/AboutHECIDXAck).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from hortus.domains.garden.audit.buffer.sinks.calling import SinkCaller
from hortus.domains.garden.audit.buffer.sinks.lines import seconds_of
from hortus.domains.garden.audit.buffer.sinks.sink import SinkBatch, SinkError
from hortus.kube.clock import Clock
from hortus.kube.secret import Secret
from hortus.kube.shapes import decode_json

_ACK_EVERY = 1.0
_ACK_WITHIN = 300.0
"""Seconds. Events that are not indexed by then are sent again."""


_Shape = TypeVar("_Shape")


class _Answer(msgspec.Struct, rename="camel"):
    code: int
    text: str = ""
    ack_id: int | None = None


class _Acks(msgspec.Struct):
    acks: dict[str, bool]


class SplunkSink:
    """`url` is that of the collector, without a path."""

    def __init__(
        self,
        url: str,
        token: Secret,
        caller: SinkCaller,
        *,
        clock: Clock,
        index: str = "",
        host: str = "",
        source: str = "kube-apiserver",
        sourcetype: str = "_json",
        fields: Mapping[str, str] | None = None,
        acknowledged: bool = False,
    ) -> None:
        self._url = url.rstrip("/")
        self._token = token
        self._caller = caller
        self._clock = clock
        self._channel = str(uuid.uuid4())
        self._acknowledged = acknowledged
        given = {"host": host, "source": source, "sourcetype": sourcetype, "index": index, "fields": dict(fields or {})}
        self._frame = msgspec.json.encode({name: value for name, value in given.items() if value})[1:-1]

    async def send(self, batch: SinkBatch) -> None:
        body = b"".join(
            b'{"time":%.6f,%b,"event":%b}' % (seconds_of(line, batch.time), self._frame, line) for line in batch.split()
        )
        answer = await self._caller.send("POST", f"{self._url}/services/collector/event", body, self._headers())
        found = self._decoded(answer.body, _Answer)
        if found.code != 0:
            raise SinkError(f"{self._url}: code {found.code}: {found.text[:200]}")
        if self._acknowledged:
            await self._wait(found.ack_id)

    async def close(self) -> None:
        await self._caller.close()

    async def _wait(self, number: int | None) -> None:
        if number is None:
            raise SinkError(f"{self._url}: no ackId in the answer: enable indexer acknowledgment for the token")
        end = self._clock.monotonic() + _ACK_WITHIN
        body = msgspec.json.encode({"acks": [number]})
        while self._clock.monotonic() < end:
            answer = await self._caller.send("POST", f"{self._url}/services/collector/ack", body, self._headers())
            if self._decoded(answer.body, _Acks).acks.get(str(number)):
                return
            await self._clock.sleep(_ACK_EVERY)
        raise SinkError(f"{self._url}: the events were not indexed within {_ACK_WITHIN:.0f} s")

    def _headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Splunk {self._token.reveal()}",
            "Content-Type": "application/json",
            "X-Splunk-Request-Channel": self._channel,
        }

    def _decoded(self, body: bytes, shape: type[_Shape]) -> _Shape:
        try:
            return decode_json(body, shape)
        except msgspec.DecodeError:
            raise SinkError(f"{self._url}: the answer is not one of an event collector") from None
