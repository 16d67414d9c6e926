"""GET of `pods/proxy`: a page that a pod serves, handed on.

There are no kubelets and no pod network behind this server, and it opens no connection for such a request. A
`PodNetwork`, such as that of the simulation, answers for pods; without one the answer is that of kube-apiserver for a
pod that cannot be reached. Pods are named as there: `name`, `name:port` or `scheme:name:port`
(kubernetes/kubernetes, pkg/registry/core/pod/strategy.go), with the port as a number.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

import msgspec
import orjson

from hortus.apiserver.http import Reply
from hortus.apiserver.resources.context import OperationContext
from hortus.apiserver.resources.failures import not_found
from hortus.apiserver.resources.scope import RequestScope
from hortus.apiserver.resources.versions import read
from hortus.kube.errors import BadRequest
from hortus.kube.objects import Object, shaped

PROXY: Final = "proxy"
_SCHEMES: Final = frozenset({"", "http", "https"})
_LARGEST: Final = 1024 * 1024
"""Bytes of a page that are handed on."""


class PodPage(NamedTuple):
    """The answer of a pod's server."""

    code: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


class PodNetwork(Protocol):
    """Answers for pods. Raises ConnectionError where nothing listens."""

    async def get(self, cluster: str, pod: Object, port: int, path: str) -> PodPage:
        """The page at `path`, which begins with a slash and may have a query."""


class _Port(msgspec.Struct, rename="camel"):
    container_port: int = 0


class _Container(msgspec.Struct):
    ports: tuple[_Port, ...] = ()


class _PodSpec(msgspec.Struct):
    containers: tuple[_Container, ...] = ()


class _PodStatus(msgspec.Struct, rename="camel"):
    pod_ip: str = msgspec.field(default="", name="podIP")


class _Pod(msgspec.Struct):
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


async def proxied(ctx: OperationContext, scope: RequestScope, network: PodNetwork | None, path: str) -> Reply:
    """The answer to a GET below `pods/<name>/proxy`. Raises ApiError."""
    scheme, name, port = _parts(scope.name)
    record = await read(ctx, scope._replace(name=name, subresource=""))
    if record is None:
        raise not_found(scope.kind, name)
    obj: Object = orjson.loads(record.value)
    pod = shaped(obj, _Pod) or _Pod()
    if not pod.status.pod_ip:
        raise BadRequest("address not allowed")
    number = int(port) if port else _first_port(pod)
    where = f"{scheme or 'http'}://{pod.status.pod_ip}:{number}{path}"
    if network is None:
        return _unreachable(f"{where}: this API server has no network to pods")
    try:
        page = await network.get(scope.cluster, obj, number, path)
    except ConnectionError as error:
        return _unreachable(f"{where}: {error}")
    if len(page.body) > _LARGEST:
        return _unreachable(f"{where}: the page has more than {_LARGEST} bytes")
    return Reply(page.body, code=page.code, content_type=page.content_type)


def _parts(name: str) -> tuple[str, str, str]:
    """Scheme, name and port of a pod as a path names it. Raises BadRequest."""
    parts = name.split(":")
    scheme, pod, port = {1: ("", *parts, ""), 2: ("", *parts), 3: tuple(parts)}.get(len(parts), ("", "", ""))
    valid = not port or (port.isascii() and port.isdecimal() and 0 < int(port) < 65536)
    if not pod or scheme not in _SCHEMES or not valid:
        raise BadRequest(f'invalid pod request "{name}"')
    return scheme, pod, port


def _first_port(pod: _Pod) -> int:
    """The first port that a container names, or that of the scheme http."""
    return next((one.ports[0].container_port for one in pod.spec.containers if one.ports), 80)


def _unreachable(problem: str) -> Reply:
    text = f"error trying to reach service: {problem}"
    return Reply(text.encode(), code=503, content_type="text/plain; charset=utf-8")
