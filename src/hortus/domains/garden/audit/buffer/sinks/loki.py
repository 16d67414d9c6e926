"""Sink `loki`: log lines of one stream by the push API.

A line has the time at which it was received: within a stream Loki refuses lines that are much older than its newest.
Source: https://grafana.com/docs/loki/latest/reference/loki-http-api/#ingest-logs
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from hortus.domains.garden.audit.buffer.sinks.calling import SinkCaller
from hortus.domains.garden.audit.buffer.sinks.sink import SinkBatch
from hortus.kube.secret import Secret

_NO_CONTENT = 204


class LokiSink:
    """`url` is Loki's address, without a path. `labels` are those of the stream."""

    def __init__(
        self,
        url: str,
        caller: SinkCaller,
        *,
        labels: Mapping[str, str],
        tenant: str = "",
        headers: Mapping[str, Secret] | None = None,
    ) -> None:
        self._url = f"{url.rstrip('/')}/loki/api/v1/push"
        self._caller = caller
        self._labels = dict(labels)
        self._tenant = tenant
        self._headers = dict(headers or {})

    async def send(self, batch: SinkBatch) -> None:
        time = int(batch.time * 1e9)
        # One nanosecond apart: Loki drops a line that equals another of the same time.
        values = [(str(time + number), line.decode()) for number, line in enumerate(batch.split())]
        body = msgspec.json.encode({"streams": [{"stream": self._labels, "values": values}]})
        headers = {name: value.reveal() for name, value in self._headers.items()}
        headers["Content-Type"] = "application/json"
        if self._tenant:
            headers["X-Scope-OrgID"] = self._tenant
        # Any other success is not Loki's: a proxy's page, or another service.
        await self._caller.send("POST", self._url, body, headers, accepted=lambda status: status == _NO_CONTENT)

    async def close(self) -> None:
        await self._caller.close()
