"""Runtime hooks over HTTP, and the work behind one call: read the ClusterAddon, decide, note the hook."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final

import msgspec
import orjson
import structlog
from aiohttp import web

from hortus.domains.stacks.addons.config import AddonConfigError, RuntimeHook, parse_config
from hortus.domains.stacks.addons.creation import addon_key
from hortus.domains.stacks.addons.rendering import AddonReleases
from hortus.domains.stacks.capi import CapiCluster, read_cluster
from hortus.domains.stacks.hooks.answers import HookDecision, after_initialized, after_upgrade, before_upgrade
from hortus.domains.stacks.names import parse_either
from hortus.domains.stacks.releases.errors import ReleaseError
from hortus.domains.stacks.types import CLUSTER_ADDONS, ClusterAddon
from hortus.engine.typed import NotReadable, read
from hortus.engine.within import within
from hortus.kube import Client, Clock
from hortus.kube.errors import KubeError, NotFound
from hortus.kube.objects import Object

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

DEADLINE: Final = 8.0
"""Seconds for one call; Cluster API gives up after ten."""
CONTRACT: Final = "hooks.runtime.cluster.x-k8s.io/v1alpha1"
HANDLERS: Final = {
    "before-cluster-upgrade": RuntimeHook.BEFORE_UPGRADE,
    "after-cluster-upgrade": RuntimeHook.AFTER_UPGRADE,
    "after-control-plane-initialized": RuntimeHook.INITIALIZED,
}
"""Handlers by the name that discovery lists."""
DISCOVERY: Final = f"/{CONTRACT}/discovery"
_SUCCESS: Final = "Success"
_FAILURE: Final = "Failure"
Decide = Callable[[ClusterAddon, CapiCluster], Awaitable[HookDecision]]


class HookHandler:
    """Answers the calls of Cluster API. An answer is always a document, also after a failure."""

    def __init__(self, client: Client, *, releases: AddonReleases, clock: Clock) -> None:
        self._client = client
        self._releases = releases
        self._clock = clock

    @property
    def routes(self) -> Mapping[str, Callable[[web.Request], Awaitable[web.Response]]]:
        """The paths of the hooks. Every answer has code 200 and says in its status whether the hook succeeded.

        kubernetes-sigs/cluster-api, docs/proposals/20220221-runtime-SDK.md.
        """
        paths = {f"/{CONTRACT}/{hook.lower()}/{name}": self._handler(hook) for name, hook in HANDLERS.items()}
        return {DISCOVERY: self._discovered, **paths}

    async def _discovered(self, request: web.Request) -> web.Response:
        return _response(self.discovery())

    def _handler(self, hook: RuntimeHook) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            try:
                body: Any = orjson.loads(await request.read())
            except orjson.JSONDecodeError:
                body = None
            return _response(await self.call(hook, body if isinstance(body, dict) else {}))

        return answer

    def discovery(self) -> Object:
        """The handlers, for Cluster API's first call."""
        handlers = [
            {"name": name, "requestHook": {"apiVersion": CONTRACT, "hook": hook.value}}
            for name, hook in HANDLERS.items()
        ]
        return {**_answer("Discovery", _SUCCESS), "handlers": handlers}

    async def call(self, hook: RuntimeHook, request: Object) -> Object:
        """The answer to a call of a hook."""
        try:
            decision = await within(self._clock, DEADLINE, self._decided(hook, request))
        except (NotReadable, KubeError, ReleaseError, OSError) as error:
            _log.warning("a runtime hook failed", hook=hook, error=str(error))
            return _answer(hook, _FAILURE, message=str(error))
        answer = _answer(hook, _SUCCESS, message=decision.message)
        if hook is RuntimeHook.BEFORE_UPGRADE:
            answer["retryAfterSeconds"] = decision.retry_after
        return answer

    async def _decided(self, hook: RuntimeHook, request: Object) -> HookDecision:
        cluster = _cluster_of(request)
        key = addon_key(cluster.key)
        if parse_either(cluster.class_name) is None:
            # A class of no cluster stack: the Cluster is not ours, and must not wait for us.
            return HookDecision()
        try:
            addon = read(ClusterAddon, await self._client.get(CLUSTER_ADDONS, key.name, key.namespace))
        except NotFound:
            raise NotReadable(f"ClusterAddon {key} does not exist yet: it is created with its Cluster") from None
        decision = await self._decide(hook, addon, cluster)
        if decision.note:
            _log.info("runtime hook", hook=hook, addon=str(key))
            await self._client.patch(CLUSTER_ADDONS, key.name, {"spec": {"hook": decision.note}}, key.namespace)
        return decision

    async def _decide(self, hook: RuntimeHook, addon: ClusterAddon, cluster: CapiCluster) -> HookDecision:
        match hook:
            case RuntimeHook.INITIALIZED:
                return after_initialized(addon, cluster.class_name)
            case RuntimeHook.BEFORE_UPGRADE:
                return before_upgrade(addon, cluster.class_name)
            case RuntimeHook.AFTER_UPGRADE:
                return after_upgrade(addon, has_stages=await self._has_stages(cluster.class_name, hook))

    async def _has_stages(self, class_name: str, hook: RuntimeHook) -> bool:
        name = parse_either(class_name)
        if name is None:
            return False
        config = await (await self._releases.fetch(name)).addon_config()
        try:
            return config is not None and bool(parse_config(config).of(hook))
        except AddonConfigError:
            return False  # the ClusterAddon reports it


class _Named(msgspec.Struct):
    name: Annotated[str, msgspec.Meta(min_length=1)]


class _ClusterDocument(msgspec.Struct):
    metadata: _Named


class _HookRequest(msgspec.Struct):
    cluster: _ClusterDocument


class _WholeRequest(msgspec.Struct):
    cluster: dict[str, Any]


def _cluster_of(request: Object) -> CapiCluster:
    """The Cluster in a request. Raises NotReadable."""
    try:
        msgspec.convert(request, _HookRequest)
    except msgspec.ValidationError as error:
        raise NotReadable(f"the request holds no Cluster: {error}") from None
    return read_cluster(msgspec.convert(request, _WholeRequest).cluster)


def _answer(hook: str, status: str, *, message: str = "") -> Object:
    answer: Object = {"apiVersion": CONTRACT, "kind": f"{hook}Response", "status": status}
    return {**answer, "message": message} if message else answer


def _response(answer: Object) -> web.Response:
    return web.Response(body=orjson.dumps(answer), content_type="application/json")
