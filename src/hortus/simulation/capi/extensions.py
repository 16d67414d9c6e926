"""Runtime extensions: ExtensionConfigs are discovered, and their handlers called at each hook.

Wire: `POST <url>/hooks.runtime.cluster.x-k8s.io/v1alpha1/<hook>/<handler>` with JSON both ways, and HTTP 200 whatever
the outcome (Cluster API, docs/proposals/20220221-runtime-SDK.md). A handler has ten seconds unless it asks for others.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Protocol

import orjson
import structlog

from hortus.engine import Cache, Result
from hortus.kube import Client
from hortus.kube.access import Access
from hortus.kube.clock import Clock
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object, ObjectKey, format_time
from hortus.simulation.capi.definitions import MANAGER
from hortus.simulation.capi.kinds import EXTENSION_CONFIGS

HOOKS: Final = "hooks.runtime.cluster.x-k8s.io/v1alpha1"
TIMEOUT: Final = 10.0
"""Seconds for one call of a handler that names no other time."""
_AGAIN: Final = 0.2
"""Seconds until discovery is tried again; Cluster API backs off from 5 ms."""
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class HookError(Exception):
    """A hook that failed: no answer in time, no readable one, or one with status Failure."""


class Answer(NamedTuple):
    """The answers of all handlers of a hook, taken together."""

    retry_after: int
    """Seconds; 0 lets the operation go on."""
    message: str


class Hooks(Protocol):
    """The extensions of a Cluster API."""

    async def call(self, hook: str, cluster: Object, **fields: Any) -> Answer:
        """Call all handlers of a hook; the longest wait that one asks for counts. Raises HookError."""


class _Handler(NamedTuple):
    name: str
    hook: str
    timeout: float
    ignores_failure: bool


class ExtensionController:
    """Discovers the handlers of ExtensionConfigs, and calls them."""

    def __init__(self, client: Client, configs: Cache, *, clock: Clock) -> None:
        self._client = client
        self._configs = configs
        self._clock = clock

    async def reconcile(self, key: ObjectKey) -> Result | None:
        config = self._configs.get(key)
        if config is None:
            return None
        try:
            body = await _post(config, "discovery", "", _request("DiscoveryRequest"), timeout=TIMEOUT)
            handlers = [_described(key.name, one) for one in body.get("handlers") or ()]
        except HookError as error:
            await self._write(config, {"conditions": [self._condition(config, problem=str(error))]})
            return Result(requeue_after=_AGAIN)
        await self._write(config, {"handlers": handlers, "conditions": [self._condition(config)]})
        return None

    async def call(self, hook: str, cluster: Object, **fields: Any) -> Answer:
        """Call all handlers of a hook; the longest wait that one asks for counts. Raises HookError."""
        answers = []
        for config in self._configs.values():
            for handler in _handlers(config, hook):
                request = {**_request(f"{hook}Request"), "settings": {}, "cluster": cluster, **fields}
                name = handler.name.removesuffix(f".{config['metadata']['name']}")
                try:
                    body = await _post(config, hook.lower(), name, request, timeout=handler.timeout)
                except HookError as error:
                    if not handler.ignores_failure:
                        raise
                    _log.info("a failure of a hook is ignored", hook=hook, handler=handler.name, error=str(error))
                else:
                    answers.append(Answer(int(body.get("retryAfterSeconds") or 0), str(body.get("message") or "")))
        return max(answers, default=Answer(0, ""), key=lambda one: one.retry_after)

    def _condition(self, config: Object, *, problem: str = "") -> Object:
        found: Object = next(iter((config.get("status") or {}).get("conditions") or ()), {})
        status = "False" if problem else "True"
        same = found.get("status") == status
        return {
            "type": "Discovered",
            "status": status,
            "reason": "DiscoveryFailed" if problem else "Discovered",
            "message": problem,
            "lastTransitionTime": found["lastTransitionTime"] if same else format_time(self._clock.now()),
        }

    async def _write(self, config: Object, status: Object) -> None:
        found = config.get("status") or {}
        if all(found.get(name) == value for name, value in status.items()):
            return
        written = await self._client.patch(
            EXTENSION_CONFIGS,
            config["metadata"]["name"],
            {"status": status},
            subresource="status",
            field_manager=MANAGER,
        )
        self._configs.learn(written)


def _described(config: str, handler: Object) -> Object:
    """A handler of a discovery as the status lists it."""
    return {
        "name": f"{handler['name']}.{config}",
        "requestHook": handler["requestHook"],
        "timeoutSeconds": handler.get("timeoutSeconds") or int(TIMEOUT),
        "failurePolicy": handler.get("failurePolicy") or "Fail",
    }


def _handlers(config: Object, hook: str) -> Iterator[_Handler]:
    for one in (config.get("status") or {}).get("handlers") or ():
        if one["requestHook"]["hook"] == hook:
            yield _Handler(one["name"], hook, float(one["timeoutSeconds"]), one["failurePolicy"] == "Ignore")


def _request(kind: str) -> Object:
    return {"apiVersion": HOOKS, "kind": kind}


async def _post(config: Object, hook: str, handler: str, request: Object, *, timeout: float) -> Object:
    """The answer of one handler, whose status is Success. Raises HookError."""
    title = f"ExtensionConfig {config['metadata']['name']}, hook {hook}"
    target = "/".join(filter(None, (f"/{HOOKS}", hook, handler)))
    try:
        async with _connection(config, title) as client:
            answer = await client.request("POST", target, orjson.dumps(request), timeout=timeout)
            body = orjson.loads(answer.body)
    except (KubeError, OSError, orjson.JSONDecodeError) as error:
        raise HookError(f"{title}: {error}") from error
    if not isinstance(body, dict) or body.get("status") != "Success":
        said = body.get("message") if isinstance(body, dict) else "no JSON object"
        raise HookError(f"{title}: it answered Failure: {said}")
    return body


def _connection(config: Object, title: str) -> Client:
    chosen = (config.get("spec") or {}).get("clientConfig") or {}
    if not chosen.get("url"):
        raise HookError(f"{title}: spec.clientConfig.url is missing: the simulation has no Services to resolve")
    try:
        ca = base64.b64decode(chosen.get("caBundle") or "", validate=True)
    except binascii.Error:
        raise HookError(f"{title}: spec.clientConfig.caBundle is not base64") from None
    return Client(Access(server=chosen["url"].rstrip("/"), ca=ca))
