"""Sink `http`: NDJSON by POST, to whatever answers 2xx once it has kept the lines.

Headers say which lines a request holds, so that the other side can find what came twice: `Hortus-Audit-Spool`,
`Hortus-Audit-Sequence` (first and behind the last), `Hortus-Audit-Digest` (the chain behind the last line), and
`Content-Digest` of RFC 9530. An answer that carries `Content-Digest` of another body is no confirmation.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping

from hortus.domains.garden.audit.buffer.sinks.calling import SinkCaller
from hortus.domains.garden.audit.buffer.sinks.sink import SinkBatch, SinkError
from hortus.kube.secret import Secret

_RECEIPT = "Hortus-Audit-Receipt"


class HttpSink:
    """`require_receipt` demands the header `Hortus-Audit-Receipt` with the digest of the body in each answer."""

    def __init__(
        self,
        url: str,
        caller: SinkCaller,
        *,
        headers: Mapping[str, Secret] | None = None,
        require_receipt: bool = False,
    ) -> None:
        self._url = url
        self._caller = caller
        self._headers = dict(headers or {})
        self._require_receipt = require_receipt

    async def send(self, batch: SinkBatch) -> None:
        digest = f"sha-256=:{base64.b64encode(hashlib.sha256(batch.payload).digest()).decode()}:"
        headers = {name: value.reveal() for name, value in self._headers.items()} | {
            "Content-Type": "application/x-ndjson",
            "Content-Digest": digest,
            "Hortus-Audit-Spool": batch.spool,
            "Hortus-Audit-Sequence": f"{batch.first}-{batch.end}",
            "Hortus-Audit-Digest": batch.digest,
        }
        answer = await self._caller.send("POST", self._url, batch.payload, headers)
        receipt = answer.header(_RECEIPT)
        if not receipt and not self._require_receipt:
            return
        if receipt != digest:
            said = "no receipt" if not receipt else "a receipt of other bytes"
            raise SinkError(f"{self._url}: the answer holds {said}: nothing is confirmed")

    async def close(self) -> None:
        await self._caller.close()
