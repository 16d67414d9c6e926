"""The condition `Available` of APIServices that lead to other servers.

Owns `status.conditions` of these APIServices and nothing else. An APIService is looked at when it changes, when its
Service or the endpoints of that change, and every half minute, so that a server which has died is noticed; discovery is
fetched after each look. Reasons and messages are kube-aggregator's (k8s.io/kube-aggregator,
pkg/controllers/status/remote). The look does not depend on the server's certificate: that is each request's own matter.
"""

from __future__ import annotations

import asyncio
import logging
import random
from functools import partial
from typing import Final, NamedTuple

from hortus.apiserver.aggregation.apiservices import AVAILABLE, RemoteApi, RemoteApis
from hortus.apiserver.aggregation.documents import AGGREGATOR, RemoteDocuments
from hortus.apiserver.aggregation.headers import identity
from hortus.apiserver.aggregation.resolving import ENDPOINTS, SERVICES, SLICES, RemoteAddress, Resolver
from hortus.apiserver.aggregation.servers import RemoteServers, Unreachable
from hortus.apiserver.crds.conditions import set_condition
from hortus.apiserver.keyqueue import KeyQueue
from hortus.apiserver.namespaces import SERVER
from hortus.apiserver.registrations import API_GROUP
from hortus.apiserver.resources.context import OperationContext
from hortus.apiserver.resources.patching import modify
from hortus.apiserver.resources.scope import RequestScope, WriteOptions
from hortus.apiserver.store.backend import Commit
from hortus.kube.clock import Timer
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, format_time

_AGAIN = 30.0
"""Seconds between two looks at one APIService."""
_FIRST_RETRY = 0.5
"""Seconds after the first failed look, doubling up to `_AGAIN`."""
_ATTEMPTS: Final = 5
"""Addresses that one look asks; an answer of any is enough."""
_SECONDS = 5.0
"""Seconds for one attempt."""

_Key = tuple[str, str]
"""Logical cluster, and name of the APIService."""

_log = logging.getLogger("hortus.apiserver.aggregation")


class Availability(NamedTuple):
    status: str
    reason: str
    message: str


_PASSED: Final = Availability("True", "Passed", "all checks passed")


class AvailabilityController:
    def __init__(
        self,
        ctx: OperationContext,
        apis: RemoteApis,
        servers: RemoteServers,
        resolver: Resolver,
        documents: RemoteDocuments,
    ) -> None:
        self._ctx = ctx
        self._apis = apis
        self._servers = servers
        self._resolver = resolver
        self._documents = documents
        self._timers: dict[_Key, Timer] = {}
        self._failures: dict[_Key, int] = {}
        self.queue: KeyQueue[_Key] = KeyQueue("apiservices", ctx.clock, self._look_at, lambda key: key[0])
        apis.on_change(self._changed)
        for suffix in (SERVICES, ENDPOINTS, SLICES):
            ctx.storage.listen(self._moved, suffix)

    async def start(self) -> None:
        await self.queue.start()

    async def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        await self.queue.stop()

    def _changed(self, cluster: str, name: str) -> None:
        self._servers.keep(cluster, self._apis.of(cluster))
        self.queue.add((cluster, name))

    def _moved(self, change: Commit) -> None:
        """Looks again at the APIServices of a namespace in which a Service or endpoints have changed."""
        cluster, namespace = change.key.cluster, change.key.name.partition("/")[0]
        for api in self._apis.of(cluster).values():
            if api.service.namespace == namespace:
                self.queue.add((cluster, api.name))

    def _found(self, key: _Key) -> RemoteApi | None:
        version, _, group = key[1].partition(".")
        return self._apis.find(key[0], group, version)

    async def _look_at(self, key: _Key) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        api = self._found(key)
        if api is None:
            self._failures.pop(key, None)
            return
        finding = await self._finding(key[0], api)
        await self._write(key, finding)
        api = self._found(key)
        if api is not None:
            await self._documents.refresh(key[0], api)
            self._later(key, failed=finding is not _PASSED)

    def _later(self, key: _Key, *, failed: bool) -> None:
        wait = _AGAIN
        if failed:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            wait = min(_FIRST_RETRY * 2 ** min(failures - 1, 16), _AGAIN)
        else:
            self._failures.pop(key, None)
        self._timers[key] = self._ctx.clock.call_later(wait, partial(self._due, key))

    def _due(self, key: _Key) -> None:
        self._timers.pop(key, None)
        self.queue.add(key)

    async def _finding(self, cluster: str, api: RemoteApi) -> Availability:
        target = await self._resolver.target(cluster, api.service)
        if target.problem:
            return Availability("False", target.problem, target.message)
        # In their order: with all of them away, the last one's problem is reported, the same at each look.
        asked = sorted(random.sample(target.addresses, min(_ATTEMPTS, len(target.addresses))))
        # None is cut off when another one has passed: servers log each request that its client leaves.
        problems = await asyncio.gather(*(self._attempt(cluster, api, address) for address in asked))
        return Availability("False", "FailedDiscoveryCheck", problems[-1]) if all(problems) else _PASSED

    async def _attempt(self, cluster: str, api: RemoteApi, address: RemoteAddress) -> str:
        """Asks at one address; the text is the problem."""
        url = f"{address.origin}{api.path}"
        try:
            async with asyncio.timeout(_SECONDS):
                server = self._servers.check(cluster, api)
                async with server.ask("GET", address, api.path, identity(AGGREGATOR)) as answer:
                    code = answer.status
        except ValueError as error:
            return str(error)
        except TimeoutError:
            return (
                f'failing or missing response from {url}: Get "{url}": '
                "net/http: request canceled (Client.Timeout exceeded while awaiting headers)"
            )
        except Unreachable as error:
            return f'failing or missing response from {url}: Get "{url}": {error}'
        if not 200 <= code < 300:
            return f"failing or missing response from {url}: bad status from {url}: {code}"
        return ""

    async def _write(self, key: _Key, finding: Availability) -> None:
        """Writes the condition where it has changed."""
        cluster, name = key
        kind = await self._ctx.registry.find(cluster, API_GROUP, "v1", "apiservices")
        if kind is None:
            return
        now = format_time(self._ctx.clock.now())
        scope = RequestScope(cluster, kind, SERVER, "", name, "status")
        try:
            await modify(
                self._ctx, scope, partial(_with_condition, finding, now), WriteOptions(manager="kube-apiserver")
            )
        except NotFound:
            return


def _with_condition(finding: Availability, now: str, obj: Object) -> Object:
    status = obj["status"] = dict(obj.get("status") or {})
    known = {each.get("type"): each.get("status") for each in status.get("conditions") or ()}
    if known.get(AVAILABLE, finding.status) != finding.status:
        _log.info("an APIService has changed its availability", extra={"object": obj["metadata"]["name"]})
    set_condition(status, AVAILABLE, finding, now)
    return obj
