"""Charts rendered by a real helm: `helm template`, a process each, a bounded number at once.

The chart is packed into a temporary folder (in an archive no .helmignore takes files away again), values go in over
standard input, and helm gets an environment of its own, so that no repository, plugin, registry login or kubeconfig of
the machine takes part.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import shutil
import tarfile
import tempfile
from collections import OrderedDict
from pathlib import Path

import orjson

from hortus.render.helm.builtin import check_release
from hortus.render.helm.cache import RenderCache
from hortus.render.helm.errors import ChartError, RenderTimeout
from hortus.render.helm.manifests import Rendered, from_text
from hortus.render.helm.pool import PoolSettings, Reader
from hortus.render.helm.renderer import RenderRequest
from hortus.render.helm.source import ChartSource

_MOST_CHARTS = 64
_LARGEST_OUTPUT = 256 << 20


class HelmBinaryRenderer:
    """`settings.workers` processes at once, each with `settings.seconds`; memory is bounded by helm itself."""

    def __init__(
        self,
        program: str,
        settings: PoolSettings = PoolSettings(),  # noqa: B008 - frozen
        *,
        cache: RenderCache | None = None,
    ) -> None:
        self._program = program
        self._settings = settings
        self._slots = asyncio.Semaphore(settings.workers)
        self._cache = cache if cache is not None else RenderCache()
        self._folder: Path | None = None
        self._charts: OrderedDict[str, Path] = OrderedDict()

    async def __aenter__(self) -> HelmBinaryRenderer:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._folder is not None:
            await asyncio.to_thread(shutil.rmtree, self._folder, True)
            self._folder = None
            self._charts.clear()

    async def render(self, request: RenderRequest, *, lookup: Reader | None = None) -> Rendered:
        if lookup is not None:
            raise ChartError("helm template cannot look up through a reader; choose the built-in renderer")
        if request.options.strict:
            raise ChartError("helm template has no strict mode; choose the built-in renderer")
        check_release(request.release)
        key = request.key()
        known = self._cache.get(key)
        if known is None:
            async with self._slots:
                known = await self._rendered(request)
            self._cache.put(key, known)
        return known

    async def _rendered(self, request: RenderRequest) -> Rendered:
        chart = await asyncio.to_thread(self._written, request.chart)
        text = await self._run(self._arguments(request, chart), orjson.dumps(request.values))
        return await asyncio.to_thread(from_text, text)

    def _written(self, source: ChartSource) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="hortus-helm-"))
        known = self._charts.get(source.digest)
        if known is not None:
            self._charts.move_to_end(source.digest)
            return known
        target = self._folder / f"{source.digest}.tgz"
        with tarfile.open(target, "w:gz", compresslevel=1) as archive:
            for name, data in source.files:
                entry = tarfile.TarInfo(f"chart/{name}")
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        self._charts[source.digest] = target
        while len(self._charts) > _MOST_CHARTS:
            _, old = self._charts.popitem(last=False)
            old.unlink(missing_ok=True)
        return target

    def _arguments(self, request: RenderRequest, chart: Path) -> list[str]:
        release, options = request.release, request.options
        found = ["template", release.name, str(chart), "--namespace", release.namespace, "--values", "-"]
        found += ["--kube-version", request.capabilities.parsed()[0]]
        for version in request.capabilities.api_versions:
            found += ["--api-versions", version]
        if options.include_crds:
            found.append("--include-crds")
        if options.skip_tests:
            found.append("--skip-tests")
        if options.skip_schema:
            found.append("--skip-schema-validation")
        if release.is_upgrade:
            found.append("--is-upgrade")
        return found

    async def _run(self, arguments: list[str], values: bytes) -> str:
        assert self._folder is not None
        home = str(self._folder / "home")
        environment = {"HOME": home, "PATH": os.defpath, "HELM_CACHE_HOME": home, "HELM_CONFIG_HOME": home}
        environment |= {"HELM_DATA_HOME": home, "KUBECONFIG": os.devnull}
        if "TZ" in os.environ:
            environment["TZ"] = os.environ["TZ"]
        try:
            process = await asyncio.create_subprocess_exec(
                self._program,
                *arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment,
            )
        except OSError as error:
            raise ChartError(f"cannot run {self._program}: {error.strerror}; use the built-in renderer") from None
        try:
            async with asyncio.timeout(self._settings.seconds):
                output, problem = await process.communicate(values)
        except TimeoutError:
            raise RenderTimeout(f"helm template took longer than {self._settings.seconds:g} s") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode:
            text = problem.decode("utf-8", "replace").strip()
            raise ChartError(text.removeprefix("Error: ") or f"helm ended with code {process.returncode}")
        if len(output) > _LARGEST_OUTPUT:
            raise ChartError(f"helm wrote more than {_LARGEST_OUTPUT} bytes")
        return output.decode("utf-8", "surrogateescape")
