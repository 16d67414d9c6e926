"""A server in the place of Elasticsearch: the bulk API over one index that a test holds in its hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web
from tests.domains.garden.audit.sinks.servers import Seen

Refusal = Callable[[Any], dict[str, Any] | None]
PARSING = {"type": "mapper_parsing_exception", "reason": "failed to parse field [a]. Preview of value: 'c4n4ry'"}


class Cluster:
    """Documents by id, in the order in which they were created. `refusal` gives the item of a refused document."""

    def __init__(self, refusal: Refusal = lambda document: None) -> None:
        self.refusal = refusal
        self.documents: dict[str, Any] = {}
        self.conflicts = 0

    def answer(self, seen: Seen) -> web.Response:
        lines = seen.body.splitlines()
        decoded = list(map(msgspec.json.decode, lines))
        items = [self._created(action, one) for action, one in zip(decoded[::2], decoded[1::2], strict=True)]
        failed = any(item["status"] >= 300 for item in items)
        return web.json_response({"errors": failed, "items": [{"create": item} for item in items]})

    def _created(self, action: Any, document: Any) -> dict[str, Any]:
        id_ = action["create"]["_id"]
        if (refused := self.refusal(document)) is not None:
            return refused
        if id_ in self.documents:
            self.conflicts += 1
            return {"status": 409, "error": {"type": "version_conflict_engine_exception", "reason": "exists"}}
        self.documents[id_] = document
        return {"status": 201}
