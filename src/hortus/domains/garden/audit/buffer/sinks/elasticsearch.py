"""Sink `elasticsearch`: documents in one index or data stream, by the bulk API of Elasticsearch and OpenSearch.

A document is created under an id that follows from its place in the spool, and is never written over: one that is there
already (409) is confirmed. The privilege `create_doc` is enough, so that the receiver cannot change what it once sent.
Source: https://www.elastic.co/guide/en/elasticsearch/reference/current/docs-bulk.html
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

import msgspec

from hortus.domains.garden.audit.buffer.sinks.calling import SinkCaller
from hortus.domains.garden.audit.buffer.sinks.lines import seconds_of
from hortus.domains.garden.audit.buffer.sinks.sink import SinkBatch, SinkError
from hortus.kube.secret import Secret
from hortus.kube.shapes import decode_json

_LARGEST_ANSWER: Final = 16 * 1024 * 1024
"""Bytes; an answer has one item for each line, with at most some hundred bytes each."""
_WANTED: Final = "filter_path=errors,items.*.status,items.*.error.type,items.*.error.reason"
_KEPT: Final = (200, 201, 409)
_BAD_REQUEST: Final = 400
_OF_DOCUMENTS: Final = ("mapper_parsing_exception", "document_parsing_exception", "strict_dynamic_mapping_exception")
_ARGUMENT: Final = "illegal_argument_exception"
_ARGUMENTS_OF_DOCUMENTS: Final = ("Limit of ", "Document contains ", "mapper [")
"""Begins of reasons. The same type also says that an alias has no index to write to, which is no document's fault."""
_SHOWN: Final = 200


class _Error(msgspec.Struct):
    type: str = ""
    reason: str | None = None


class _Item(msgspec.Struct):
    status: int
    error: _Error | None = None

    @property
    def is_refused(self) -> bool:
        """True where the index refuses the document for itself, and would again."""
        if self.status != _BAD_REQUEST or self.error is None:
            return False
        argument = self.error.type == _ARGUMENT and (self.error.reason or "").startswith(_ARGUMENTS_OF_DOCUMENTS)
        return argument or self.error.type in _OF_DOCUMENTS

    @property
    def problem(self) -> str:
        """The first sentence of the reason: those that follow quote values of the document."""
        if self.error is None:
            return f"status {self.status}"
        reason = (self.error.reason or "").partition(". ")[0][:_SHOWN]
        return f"status {self.status}: {self.error.type}: {reason}"


class _Answer(msgspec.Struct):
    errors: bool
    items: list[dict[str, _Item]]


class ElasticsearchSink:
    """`url` is the address of the cluster; `authorization` the value of that header."""

    def __init__(self, url: str, index: str, caller: SinkCaller, *, authorization: Secret | None = None) -> None:
        self._url = f"{url.rstrip('/')}/{quote(index, safe='')}/_bulk"
        self._caller = caller
        self._authorization = authorization

    async def send(self, batch: SinkBatch) -> None:
        body = b"".join(
            b'{"create":{"_id":"%b-%d"}}\n%b\n' % (batch.spool.encode(), number, _document(line, batch.time))
            for number, line in zip(batch.sequence, batch.split(), strict=True)
        )
        headers = {"Content-Type": "application/x-ndjson"}
        if self._authorization is not None:
            headers["Authorization"] = self._authorization.reveal()
        answer = await self._caller.send("POST", f"{self._url}?{_WANTED}", body, headers, largest=_LARGEST_ANSWER)
        items = self._items(answer.body)
        if len(items) != batch.lines:
            raise SinkError(f"{self._url}: the answer is about {len(items)} documents of {batch.lines}")
        failed = {index: item for index, item in enumerate(items) if item.status not in _KEPT}
        if failed:
            raise self._failure(failed, batch.lines)

    async def close(self) -> None:
        await self._caller.close()

    def _items(self, body: bytes) -> list[_Item]:
        try:
            found = decode_json(body, _Answer)
        except msgspec.DecodeError:
            raise SinkError(f"{self._url}: the answer is not one of the bulk API") from None
        return [item for action in found.items for item in action.values()]

    def _failure(self, failed: Mapping[int, _Item], documents: int) -> SinkError:
        """The error of a batch; as long as one document may be taken later, none is refused."""
        later = next((item for item in failed.values() if not item.is_refused), None)
        shown = later or next(iter(failed.values()))
        text = f"{self._url}: {len(failed)} of {documents} documents: {shown.problem}"
        return SinkError(text) if later else SinkError(text, refused=True, refused_lines=tuple(failed))


def _document(line: bytes, otherwise: float) -> bytes:
    """The event with `@timestamp`, without which a data stream takes no document."""
    time = datetime.fromtimestamp(seconds_of(line, otherwise), UTC).isoformat(timespec="microseconds")
    rest = line[1:].lstrip()
    return b'{"@timestamp":"%b"%b%b' % (time.encode(), b"" if rest.startswith(b"}") else b",", rest)
