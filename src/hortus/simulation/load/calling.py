"""Calls as the load makes them: bytes in and out, timed and counted, tried again for as long as a fault may last.

Answers are not decoded unless somebody looks into them: the load should measure the API server, not itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

import orjson

from hortus.engine.backoff import Backoff
from hortus.kube import Client, PatchKind
from hortus.kube.clock import Clock
from hortus.kube.errors import AlreadyExists, ApiError, KubeError, NotFound, TransportError
from hortus.kube.objects import Object, Resource
from hortus.simulation.load.measuring import Recorder

T = TypeVar("T")

AGENT = "hortus-simulate"
_MANAGER = {"fieldManager": AGENT}
PATIENCE = 120.0
"""Seconds for which a call that a fault may have struck is tried again."""
_RETRY = Backoff(first=0.2, cap=5.0, jitter=0.5)


class Caller:
    """The verbs that a load needs, on one cluster."""

    def __init__(self, client: Client, recorder: Recorder, clock: Clock, random: Random) -> None:
        self.client = client
        self._recorder = recorder
        self._clock = clock
        self._random = random

    async def create(self, resource: Resource, obj: Object) -> None:
        """Create it. One that is there already is ours, from an attempt whose answer was lost."""
        body = orjson.dumps(obj)
        path = resource.path(obj["metadata"].get("namespace", ""))
        try:
            await self._call("create", resource, "POST", path, body)
        except AlreadyExists:
            self._recorder.called("create", resource.plural, 0.0, len(body), 0)

    async def merge(self, resource: Resource, namespace: str, name: str, patch: Object) -> Object:
        """Merge `patch` in; returns the object as it is then."""
        path = resource.path(namespace, name)
        content = PatchKind.MERGE.value
        answer = await self._call("patch", resource, "PATCH", path, orjson.dumps(patch), content_type=content)
        found: Object = orjson.loads(answer)
        return found

    async def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """Raises NotFound."""
        found: Object = orjson.loads(await self._call("get", resource, "GET", resource.path(namespace, name)))
        return found

    async def delete(self, resource: Resource, namespace: str, name: str) -> None:
        """Delete it; one that is gone already is as good."""
        try:
            await self._call("delete", resource, "DELETE", resource.path(namespace, name))
        except NotFound:
            return

    async def _call(
        self,
        verb: str,
        resource: Resource,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        content_type: str = "application/json",
    ) -> bytes:
        began = self._clock.monotonic()
        query = _MANAGER if body is not None else None
        try:
            answer = await self._persistently(
                lambda: self.client.request(method, path, body, query=query, content_type=content_type)
            )
        except KubeError as error:
            if not isinstance(error, AlreadyExists):
                self._recorder.refused(verb, resource.plural, error)
            raise
        seconds = self._clock.monotonic() - began
        self._recorder.called(verb, resource.plural, seconds, len(body or b""), len(answer.body))
        return answer.body

    async def _persistently(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Try until it works, fails for good, or `PATIENCE` is over. Raises KubeError."""
        failures, ends = 0, self._clock.monotonic() + PATIENCE
        while True:
            try:
                return await attempt()
            except (ApiError, TransportError) as error:
                delay = _RETRY.delay(failures, random=self._random)
                if not _passes(error) or self._clock.monotonic() + delay > ends:
                    raise
            failures += 1
            await self._clock.sleep(delay)


def _passes(error: KubeError) -> bool:
    """True when a later attempt may succeed."""
    if isinstance(error, ApiError):
        # 401: while the server's clock is wrong, certificates are not valid yet or no longer.
        return error.http_code in (401, 429) or error.http_code >= 500
    return not getattr(error, "permanent", False)
