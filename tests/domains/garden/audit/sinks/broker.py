"""A broker of Kafka in the place of a cluster: one topic with some partitions, by the classes of the client library."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

from aiokafka.protocol.admin import ApiVersionRequest_v0, ApiVersionResponse_v0
from aiokafka.protocol.metadata import MetadataRequest_v1, MetadataResponse_v1
from aiokafka.protocol.produce import ProduceRequest_v3, ProduceResponse_v3
from aiokafka.protocol.transaction import InitProducerIdRequest_v0, InitProducerIdResponse_v0
from aiokafka.record.memory_records import MemoryRecords

PARTITIONS = 3
TOPIC = "audit"
_REQUESTS: Any = (ApiVersionRequest_v0, MetadataRequest_v1, ProduceRequest_v3, InitProducerIdRequest_v0)
NOT_LEADER = 6
TOO_LARGE = 10


class Record(NamedTuple):
    partition: int
    key: bytes
    value: bytes
    timestamp: int


class Broker:
    """Keeps records. `errors` are used up first: the code of each answer to records, or None to hang up."""

    def __init__(self) -> None:
        self.port = 0
        self.records: list[Record] = []
        self.errors: list[int | None] = []
        self.acks: set[int] = set()
        self.serving: set[asyncio.Task[None]] = set()
        self._sequences: dict[tuple[int, int], int] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.serving.add(task)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                answer = self._answer(await reader.readexactly(size))
                if answer is None:
                    break
                writer.write(len(answer).to_bytes(4, "big") + answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()

    def _answer(self, body: bytes) -> bytes | None:
        key, version = int.from_bytes(body[:2], "big"), int.from_bytes(body[2:4], "big")
        name = int.from_bytes(body[8:10], "big")
        kind = next(one for one in _REQUESTS if (key, version) == (one.API_KEY, one.API_VERSION))
        made = self._made(kind.decode(body[10 + name :]))
        return None if made is None else body[4:8] + made.encode()

    def _made(self, request: Any) -> Any:
        if isinstance(request, ApiVersionRequest_v0):
            return ApiVersionResponse_v0(0, [(one.API_KEY, one.API_VERSION, one.API_VERSION) for one in _REQUESTS])
        if isinstance(request, MetadataRequest_v1):
            partitions = [(0, number, 1, [1], [1]) for number in range(PARTITIONS)]
            broker = (1, "127.0.0.1", self.port, None)
            return MetadataResponse_v1(
                [broker], 1, [(0, name, False, partitions) for name in request.topics or [TOPIC]]
            )
        if isinstance(request, InitProducerIdRequest_v0):
            return InitProducerIdResponse_v0(0, 0, 7, 0)
        error = self.errors.pop(0) if self.errors else 0
        if error is None:
            return None
        self.acks.add(request.required_acks)
        topics = [
            (name, [(number, error or self._kept(number, data), 0, -1) for number, data in parts])
            for name, parts in request.topics
        ]
        return ProduceResponse_v3(topics, 0)

    def _kept(self, partition: int, data: bytes) -> int:
        found = MemoryRecords(data)
        while (batch := found.next_batch()) is not None:
            assert batch.validate_crc()
            records = list(batch)
            place = (batch.producer_id, partition)
            if batch.base_sequence < self._sequences.get(place, 0):
                continue  # a repetition, which a broker confirms and does not keep again
            self._sequences[place] = batch.base_sequence + len(records)
            self.records += [Record(partition, one.key, one.value, one.timestamp) for one in records]
        return 0


@asynccontextmanager
async def running_broker(context: ssl.SSLContext | None = None) -> AsyncIterator[Broker]:
    broker = Broker()
    server = await asyncio.start_server(broker.serve, "127.0.0.1", 0, ssl=context)
    broker.port = server.sockets[0].getsockname()[1]
    try:
        yield broker
    finally:
        server.close()
        await server.wait_closed()
        for task in broker.serving:
            task.cancel()
        await asyncio.gather(*broker.serving, return_exceptions=True)
