"""One way to render charts, two implementations: the built-in one and the helm binary."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import msgspec

from hortus.render.gotemplate.errors import Limits
from hortus.render.helm.builtin import ChartOptions, Release
from hortus.render.helm.cache import RenderCache, digest_of_values
from hortus.render.helm.capabilities import Capabilities
from hortus.render.helm.manifests import Rendered
from hortus.render.helm.pool import PoolSettings, Reader, WorkerPool
from hortus.render.helm.protocol import Render
from hortus.render.helm.source import ChartSource


class RenderRequest(msgspec.Struct, frozen=True):
    """One rendering. `values` are as from one values file: whole numbers become float64 as there."""

    chart: ChartSource
    values: dict[str, Any] = {}
    release: Release = Release()
    capabilities: Capabilities = Capabilities()
    options: ChartOptions = ChartOptions()

    def key(self) -> str:
        """The digest of chart, values, release, capabilities and options."""
        return digest_of_values(
            self.chart.digest,
            self.values,
            msgspec.to_builtins(self.release),
            msgspec.to_builtins(self.capabilities),
            msgspec.to_builtins(self.options),
        )


class ChartRenderer(Protocol):
    """Renders charts off the event loop."""

    async def render(self, request: RenderRequest, *, lookup: Reader | None = None) -> Rendered:
        """The chart's objects, hooks apart, in the order of installation. Raises ChartError.

        What comes back may be shared with other callers: do not change it. `lookup` answers the templates' function of
        that name; what was looked up is never taken from a cache.
        """
        ...

    async def close(self) -> None:
        """End whatever was started."""
        ...


class RenderCounts:
    """The renderings of a process so far, for metrics."""

    def __init__(self) -> None:
        self.rendered = 0
        """Charts that were rendered, or failed to."""
        self.reused = 0
        """Requests that got what another had rendered, from the cache or while it was in work."""


class BuiltinRenderer:
    """Charts rendered by Hortus itself, in worker processes.

    Equal requests at the same time share one rendering.
    """

    def __init__(
        self,
        settings: PoolSettings = PoolSettings(),  # noqa: B008 - frozen
        *,
        cache: RenderCache | None = None,
    ) -> None:
        self._pool = WorkerPool(settings)
        self._limits = Limits(seconds=settings.seconds)
        self._cache = cache if cache is not None else RenderCache()
        self._running: dict[str, asyncio.Future[Rendered | None]] = {}
        """By key; None is the result of a rendering whose caller was cancelled, so that another has to begin again."""
        self.counts = RenderCounts()

    async def __aenter__(self) -> BuiltinRenderer:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def render(self, request: RenderRequest, *, lookup: Reader | None = None) -> Rendered:
        if lookup is not None:
            return await self._rendered(request, lookup)
        key = request.key()
        while True:
            known = self._cache.get(key)
            if known is None and (running := self._running.get(key)) is not None:
                known = await asyncio.shield(running)
            elif known is None:
                return await self._leading(key, request)
            if known is not None:
                self.counts.reused += 1
                return known

    async def _leading(self, key: str, request: RenderRequest) -> Rendered:
        """Render for all who ask for the same meanwhile."""
        running = self._running[key] = asyncio.get_running_loop().create_future()
        try:
            found = await self._rendered(request, None)
        except Exception as error:
            running.set_exception(error)
            running.exception()  # nobody else may have asked
            raise
        else:
            self._cache.put(key, found)
            running.set_result(found)
            return found
        finally:
            del self._running[key]
            if not running.done():
                running.set_result(None)

    async def _rendered(self, request: RenderRequest, lookup: Reader | None) -> Rendered:
        self.counts.rendered += 1
        message = Render(
            request.chart.digest,
            request.values,
            request.release,
            request.capabilities,
            request.options,
            self._limits,
            looks_up=lookup is not None,
        )
        return (await self._pool.render(message, request.chart.files, lookup)).rendered

    async def close(self) -> None:
        await self._pool.close()
