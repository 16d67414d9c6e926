"""The answer to `/metrics`, written in a thread while the work that it reports goes on.

Thousands of objects have tens of thousands of series, whose text takes a second to write. Families are collected at
once, in the event loop; their text is written in a thread, so that reconciles go on meanwhile. A `LazySeries` makes its
samples only there, from values that do not change.

`?name[]=FAMILY`, which may be repeated, asks for some families alone, as with Prometheus' own exporters: who looks at
queues need not read a series for each object.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence

from aiohttp import web
from prometheus_client import CollectorRegistry, Metric, exposition
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample


class LazySeries(GaugeMetricFamily):
    """A family of gauges whose samples are made when they are written, in a thread and perhaps more than once.

    `samples_of` may read immutable values only.
    """

    def __init__(
        self, name: str, documentation: str, samples_of: Callable[[], Iterable[Sample]], *, labels: Sequence[str]
    ) -> None:
        super().__init__(name, documentation, labels=labels)
        self.samples = _Lazy(samples_of)  # type: ignore[assignment]


class _Lazy(Sequence[Sample]):
    """Samples that are made for each reader."""

    def __init__(self, make: Callable[[], Iterable[Sample]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[Sample]:
        return iter(self._make())

    def __len__(self) -> int:
        return sum(1 for _ in self._make())

    def __getitem__(self, index: int | slice) -> Sample | Sequence[Sample]:  # type: ignore[override]
        return list(self._make())[index]


class _Collected(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families


async def exposed(request: web.Request, registry: CollectorRegistry) -> web.Response:
    """The metrics of `registry`, in the format that the scraper asks for."""
    encode, content_type = exposition.choose_encoder(request.headers.get("Accept", ""))
    asked = frozenset(request.query.getall("name[]", ()))
    families = [one for one in registry.collect() if not asked or asked & {one.name, f"{one.name}_total"}]
    body = await asyncio.to_thread(encode, _Collected(families))
    return web.Response(body=body, headers={"Content-Type": content_type})
