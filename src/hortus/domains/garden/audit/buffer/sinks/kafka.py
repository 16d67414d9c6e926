"""Sink `kafka`: one record per line, confirmed by all replicas in sync. It needs the extra `kafka`.

Records have the spool as their key, so that those of one spool stay in one partition and in order. The producer is
idempotent: an attempt that Kafka took without an answer is not there twice, as long as the process lives.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from hortus.domains.garden.audit.buffer.sinks.lines import seconds_of
from hortus.domains.garden.audit.buffer.sinks.sink import SinkBatch, SinkError
from hortus.kube.secret import Secret

if TYPE_CHECKING:
    from aiokafka import AIOKafkaProducer

_LARGEST_REQUEST = 8 * 1024 * 1024
"""Bytes that the producer sends at a time; the broker's own limit may be lower."""


class KafkaUser(NamedTuple):
    """A user of SASL."""

    name: str
    password: Secret
    mechanism: str


class KafkaSink:
    """`context` is that of TLS; None sends without it."""

    def __init__(
        self,
        brokers: Sequence[str],
        topic: str,
        *,
        context: ssl.SSLContext | None = None,
        user: KafkaUser | None = None,
        timeout: float = 60.0,
    ) -> None:
        """Raises ValueError where the extra is not installed."""
        try:
            import aiokafka  # noqa: F401 - its absence is an error of the configuration, at the start
        except ImportError:
            raise ValueError("sink kafka: install hortus[kafka], which has its client") from None
        self._brokers = list(brokers)
        self._topic = topic
        self._context = context
        self._user = user
        self._timeout = timeout
        self._producer: AIOKafkaProducer | None = None

    async def send(self, batch: SinkBatch) -> None:
        from aiokafka.errors import KafkaError, MessageSizeTooLargeError

        try:
            async with asyncio.timeout(self._timeout):
                await self._sent(batch)
        except TimeoutError as error:
            await self.close()
            raise SinkError(f"{self._place}: no answer within {self._timeout:g} s") from error
        except MessageSizeTooLargeError as error:
            raise SinkError(f"{self._place}: {error}", too_large=batch.lines > 1, refused=batch.lines == 1) from error
        except (KafkaError, OSError) as error:
            await self.close()
            raise SinkError(f"{self._place}: {error or type(error).__name__}") from error

    async def close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(Exception):
                await producer.stop()

    @property
    def _place(self) -> str:
        return f"{','.join(self._brokers)}/{self._topic}"

    async def _sent(self, batch: SinkBatch) -> None:
        """Send all lines and wait for the answers to all of them."""
        if self._producer is None:
            self._producer = await self._started()
        key = batch.spool.encode()
        futures = [
            await self._producer.send(self._topic, line, key=key, timestamp_ms=int(seconds_of(line, batch.time) * 1000))
            for line in batch.split()
        ]
        answers = await asyncio.gather(*futures, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    async def _started(self) -> AIOKafkaProducer:
        from aiokafka import AIOKafkaProducer

        protocol = f"{'SASL_' if self._user else ''}{'SSL' if self._context else 'PLAINTEXT'}"
        options: dict[str, Any] = {}
        if self._user is not None:
            options = {
                "sasl_mechanism": self._user.mechanism,
                "sasl_plain_username": self._user.name,
                "sasl_plain_password": self._user.password.reveal(),
            }
        producer = AIOKafkaProducer(
            bootstrap_servers=self._brokers,
            security_protocol=protocol,
            ssl_context=self._context,
            acks="all",
            enable_idempotence=True,
            max_request_size=_LARGEST_REQUEST,
            request_timeout_ms=int(self._timeout * 1000),
            **options,
        )
        try:
            await producer.start()
        except BaseException:
            # A producer that never started still has connections.
            with suppress(Exception):
                await producer.stop()
            raise
        return producer
