"""The sinks `kafka` and `stdout`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from tests.domains.garden.audit.sinks.broker import NOT_LEADER, TOO_LARGE, TOPIC, Broker, running_broker
from tests.domains.garden.audit.sinks.servers import LINES, batch
from tests.kube.certificates import issue

from hortus.domains.garden.audit.buffer.making import sink_of
from hortus.domains.garden.audit.buffer.settings import BufferSettingsError, ClientTlsPart, KafkaPart, SinkPart
from hortus.domains.garden.audit.buffer.sinks import SinkError
from hortus.domains.garden.audit.buffer.sinks.kafka import KafkaSink
from hortus.domains.garden.audit.buffer.sinks.stdout import StdoutSink
from hortus.kube.clock import SystemClock
from hortus.kube.secret import Secret
from hortus.kube.tls import client_context, server_context


def kafka(broker: Broker, **given: float) -> KafkaSink:
    return KafkaSink([f"127.0.0.1:{broker.port}"], TOPIC, **given)


def values(broker: Broker) -> list[bytes]:
    return [one.value for one in broker.records]


async def test_lines_are_records_in_order_confirmed_by_all_replicas() -> None:
    async with running_broker() as broker:
        sink = kafka(broker)
        await sink.send(batch())
        await sink.send(batch())
        await sink.close()
    assert values(broker) == [*LINES, *LINES]
    assert {one.partition for one in broker.records} == {broker.records[0].partition}, "one spool, one order"
    assert {one.key for one in broker.records} == {batch().spool.encode()}
    assert broker.acks == {-1}
    assert broker.records[0].timestamp == 1_795_428_000_250


async def test_records_that_were_kept_without_an_answer_are_not_there_twice() -> None:
    async with running_broker() as broker:
        sink = kafka(broker)
        broker.errors = [NOT_LEADER, None]
        await sink.send(batch())
        await sink.close()
    assert values(broker) == list(LINES)


async def test_a_record_that_is_too_large_is_said_to_be() -> None:
    async with running_broker() as broker:
        sink = kafka(broker)
        broker.errors = [TOO_LARGE]
        with pytest.raises(SinkError) as caught:
            await sink.send(batch())
        assert (caught.value.too_large, caught.value.refused) == (True, False)
        broker.errors = [TOO_LARGE]
        with pytest.raises(SinkError) as caught:
            await sink.send(batch(b"{}"))
        assert (caught.value.too_large, caught.value.refused) == (False, True)
        await sink.send(batch())
        await sink.close()
    assert values(broker) == list(LINES)


async def test_a_cluster_that_is_down_is_an_error_and_is_tried_again() -> None:
    async with running_broker() as broker:
        port = broker.port
    sink = KafkaSink([f"127.0.0.1:{port}"], TOPIC, timeout=5)
    with pytest.raises(SinkError, match=f"127.0.0.1:{port}/audit"):
        await sink.send(batch())
    await sink.close()


async def test_a_cluster_that_answers_nothing_is_given_up_in_time() -> None:
    hung_up = asyncio.Event()

    async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        hung_up.set()

    server = await asyncio.start_server(silence, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    sink = KafkaSink([f"127.0.0.1:{port}"], TOPIC, timeout=0.2)
    with pytest.raises(SinkError, match=r"127.0.0.1"):
        await sink.send(batch())
    await sink.close()
    await hung_up.wait()
    server.close()
    await server.wait_closed()


async def test_kafka_is_reached_by_tls(tmp_path: Path) -> None:
    authority = issue("ca", ca=True)
    pair = issue("127.0.0.1", authority, addresses=("127.0.0.1",))
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    context = server_context(certificate=pair.pem, key=Secret(pair.key_pem.decode()))
    async with running_broker(context) as broker:
        part = KafkaPart(
            brokers=(f"127.0.0.1:{broker.port}",), topic=TOPIC, tls=ClientTlsPart(ca_file=tmp_path / "ca.crt")
        )
        sink = sink_of(SinkPart(name="kafka", kafka=part), SystemClock())
        await sink.send(batch())
        await sink.close()
        other = KafkaSink([f"127.0.0.1:{broker.port}"], TOPIC, context=client_context(), timeout=5)
        with pytest.raises(SinkError):
            await other.send(batch())
        await other.close()
    assert values(broker) == list(LINES)


def test_without_its_library_the_sink_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiokafka", None)
    with pytest.raises(ValueError, match=r"install hortus\[kafka\]"):
        KafkaSink(["k:9092"], TOPIC)


def test_a_sink_has_one_kind() -> None:
    with pytest.raises(
        BufferSettingsError, match="exactly one of file, http, s3, splunk, loki, elasticsearch, syslog, kafka, stdout"
    ):
        _ = SinkPart(name="none").kind


async def test_lines_are_written_to_the_output() -> None:
    reading, writing = os.pipe()
    sink = StdoutSink(writing)
    await sink.send(batch())
    assert os.read(reading, 65536) == batch().payload
    os.close(reading)
    with pytest.raises(SinkError, match="standard output: Broken pipe"):
        await sink.send(batch())
    os.close(writing)
    await sink.close()
