"""The places where metrics of replicas are read, and the permission that a viewer needs to see them.

An address is read by the dashboard's process, for viewers who may `get` the path /metrics of the API server: the rule
of controller-runtime's own metrics server. Pods are read through the API server's proxy with the viewer's credential.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol
from urllib.parse import quote

import aiohttp
from yarl import URL

from hortus.dashboard.health.readings import FAMILIES
from hortus.dashboard.viewers import Viewer
from hortus.engine.pages import AccessNeed
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object, Resource, key_of
from hortus.kube.selectors import LabelSelector, SelectorError

PODS: Final = Resource("", "v1", "pods", "Pod")
_LARGEST: Final = 8 << 20
"""Bytes of the metrics of one replica."""
_PATIENCE: Final = 5.0
"""Seconds for the metrics of one replica."""
_MOST: Final = 64
"""Replicas that are read; `hortus run --sharding` is made for fewer."""
_QUERY: Final = URL.build(query=[("name[]", family) for family in FAMILIES]).raw_query_string
_PATH: Final = "/metrics"

Texts = Mapping[str, str | Exception]
"""By the name of the replica: its metrics, or why they could not be read."""


class SourceRefused(Exception):
    """A viewer may not read a source; the message names the permission that lacks."""


class MetricsSource(Protocol):
    """A place where metrics are read."""

    @property
    def needs_viewer(self) -> bool:
        """True where it is read with the credential of a viewer."""

    async def check(self, viewer: Viewer) -> None:
        """Raises SourceRefused, KubeError."""

    async def read(self, viewer: Viewer | None) -> Texts:
        """The metrics of each replica. Raises KubeError."""


class AddressSource:
    """Replicas whose addresses are known: http and https URLs, and sockets as unix:PATH."""

    needs_viewer = False

    def __init__(self, addresses: Sequence[str]) -> None:
        """Raises ValueError for what is no address."""
        self._places = {_name(text, number): _place(text) for number, text in enumerate(addresses[:_MOST])}

    async def check(self, viewer: Viewer) -> None:
        if not await viewer.reviews.allowed_path(_PATH):
            raise SourceRefused(
                "you may not get the path /metrics; a ClusterRole with nonResourceURLs: [/metrics] and verbs: [get] "
                "allows it"
            )

    async def read(self, viewer: Viewer | None) -> Texts:
        found = await asyncio.gather(*map(_fetched, self._places.values()))
        return dict(zip(self._places, found, strict=True))


class PodSource:
    """The pods of a namespace that have some labels, by `pods/proxy`."""

    needs_viewer = True

    def __init__(self, namespace: str, selector: str, port: int) -> None:
        self._namespace = namespace
        self._selector = selector
        self._port = port

    async def check(self, viewer: Viewer) -> None:
        lacking = [
            f"{need.verb} {need.resource.plural}{'/' if need.subresource else ''}{need.subresource}"
            for need in (
                AccessNeed("list", PODS, self._namespace),
                AccessNeed("get", PODS, self._namespace, subresource="proxy"),
            )
            if not await viewer.reviews.allowed(need)
        ]
        if lacking:
            raise SourceRefused(f"you may not {' nor '.join(lacking)} in namespace {self._namespace}")

    async def read(self, viewer: Viewer | None) -> Texts:
        assert viewer is not None, "pods are read with the credential of a viewer"
        pods = (await viewer.client.list(PODS, self._namespace, labels=self._selector)).items
        running = sorted(key_of(pod).name for pod in pods if _is_running(pod))[:_MOST]
        found = await asyncio.gather(*(self._page(viewer, name) for name in running))
        return dict(zip(running, found, strict=True))

    async def _page(self, viewer: Viewer, name: str) -> str | Exception:
        path = f"/api/v1/namespaces/{quote(self._namespace)}/pods/{quote(name)}:{self._port}/proxy{_PATH}?{_QUERY}"
        try:
            answer = await viewer.client.request("GET", path, accept="text/plain", timeout=_PATIENCE, most=_LARGEST)
        except KubeError as error:
            return error
        return answer.body.decode(errors="replace")


def pod_source(text: str) -> PodSource:
    """The pods that NAMESPACE/SELECTOR:PORT names. Raises ValueError."""
    namespace, _, rest = text.partition("/")
    selector, _, port = rest.rpartition(":")
    if not namespace or not selector or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{text} is not NAMESPACE/SELECTOR:PORT, such as hortus/app.kubernetes.io/name=hortus:8080")
    try:
        LabelSelector.parse(selector)
    except SelectorError as error:
        raise ValueError(f"{text}: {error}") from None
    return PodSource(namespace, selector, int(port))


class _Place(NamedTuple):
    url: URL
    socket: str = ""


def _place(text: str) -> _Place:
    if text.startswith("unix:/"):
        return _Place(URL(f"http://localhost{_PATH}?{_QUERY}", encoded=True), text.removeprefix("unix:"))
    url = URL(text)
    if url.scheme not in ("http", "https") or not url.host or url.query_string or url.user:
        raise ValueError(f"{text} is no address of metrics: give http://HOST:PORT, or unix:/PATH of a socket")
    path = url.raw_path if url.raw_path != "/" else _PATH
    return _Place(URL(f"{url.origin()}{path}?{_QUERY}", encoded=True))


def _name(text: str, number: int) -> str:
    """A name that people know: the socket's file, or host and port."""
    if text.startswith("unix:"):
        return text.rpartition("/")[2].removesuffix(".sock")
    return str(URL(text).authority) or str(number)


async def _fetched(place: _Place) -> str | Exception:
    connector = aiohttp.UnixConnector(path=place.socket) if place.socket else None
    timeout = aiohttp.ClientTimeout(total=_PATIENCE)
    try:
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
            session.get(place.url, headers={"Accept": "text/plain"}, allow_redirects=False) as answer,
        ):
            if answer.status != 200:
                return ValueError(f"it answers {answer.status}")
            body = b""
            async for piece in answer.content.iter_chunked(1 << 16):
                body += piece
                if len(body) > _LARGEST:
                    return ValueError(f"its metrics are larger than {_LARGEST >> 20} MiB")
            return body.decode(errors="replace")
    except (OSError, aiohttp.ClientError, TimeoutError) as error:
        return error


def _is_running(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") == "Running"
