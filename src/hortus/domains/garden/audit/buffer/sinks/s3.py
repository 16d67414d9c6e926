"""Sink `s3`: one object per batch, in Amazon S3 or what speaks its protocol.

The name of an object follows from its lines, so that a batch that is sent again replaces itself. The request carries
the SHA-256 of the body, signed, and an answer whose ETag is an MD5 of other bytes is no confirmation. Source:
"Signature Version 4" (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html).
"""

from __future__ import annotations

import gzip
import hashlib
import re
import uuid
from datetime import UTC, datetime

from hortus.domains.garden.audit.buffer.sinks.calling import HttpAnswer, SinkCaller
from hortus.domains.garden.audit.buffer.sinks.signing import AwsCredentials, signed_headers
from hortus.domains.garden.audit.buffer.sinks.sink import SinkBatch, SinkError
from hortus.kube.clock import Clock

_MD5 = re.compile(r'"?([0-9a-f]{32})"?')
PREFIX = "/audit-logs"
KEY_FORMAT = "/%Y/%m/%d/%H/%M/%S/$UUID"


class S3Sink:
    """`endpoint` is the scheme and host; buckets are addressed by path."""

    def __init__(
        self,
        endpoint: str,
        bucket: str,
        credentials: AwsCredentials,
        caller: SinkCaller,
        *,
        clock: Clock,
        region: str,
        prefix: str = PREFIX,
        key_format: str = KEY_FORMAT,
        compressed: bool = False,
    ) -> None:
        self._base = f"{endpoint.rstrip('/')}/{bucket}"
        self._credentials = credentials
        self._caller = caller
        self._clock = clock
        self._region = region
        self._format = prefix.rstrip("/") + key_format
        self._compressed = compressed

    async def send(self, batch: SinkBatch) -> None:
        # Without a time in it, so that the same lines give the same bytes.
        body = gzip.compress(batch.payload, mtime=0) if self._compressed else batch.payload
        url = self._base + self._key(batch)
        headers = {
            "content-type": "application/x-ndjson",
            "x-amz-meta-hortus-spool": batch.spool,
            "x-amz-meta-hortus-sequence": f"{batch.first}-{batch.end}",
            "x-amz-meta-hortus-digest": batch.digest,
        }
        if self._compressed:
            headers["content-encoding"] = "gzip"
        now = datetime.fromtimestamp(self._clock.now(), UTC)
        headers = signed_headers("PUT", url, headers, body, self._credentials, region=self._region, now=now)
        answer = await self._caller.send("PUT", url, body, headers, accepted=lambda status: status == 200)
        self._confirm(answer, body)

    async def close(self) -> None:
        await self._caller.close()

    def _key(self, batch: SinkBatch) -> str:
        name = uuid.uuid5(uuid.NAMESPACE_OID, f"{batch.spool}/{batch.first}/{batch.end}")
        key = datetime.fromtimestamp(batch.time, UTC).strftime(self._format).replace("$UUID", str(name))
        return key if key.startswith("/") else f"/{key}"

    def _confirm(self, answer: HttpAnswer, body: bytes) -> None:
        """Raises SinkError. With SSE-KMS, and in some stores, the ETag is not an MD5 and proves nothing."""
        tag = answer.header("ETag")
        if not tag:
            raise SinkError(f"{self._base}: the answer has no ETag: it is not one of an object store")
        found = _MD5.fullmatch(tag)
        if found is None or "kms" in answer.header("x-amz-server-side-encryption"):
            return
        if found[1] != hashlib.md5(body, usedforsecurity=False).hexdigest():
            raise SinkError(f"{self._base}: the ETag is that of other bytes: nothing is confirmed")
