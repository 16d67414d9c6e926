"""A process that renders: charts come in over standard input, objects go out over standard output.

Started by `pool` as `python -m hortus.render.helm.worker <bytes of memory>`. It holds itself to that much address
space, has no environment but the time zone, and keeps the charts it has loaded. Its parent ends it when a rendering
takes too long.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from hortus.render.bounded import Bounded
from hortus.render.gotemplate.errors import FunctionError
from hortus.render.helm import protocol
from hortus.render.helm.builtin import render_chart
from hortus.render.helm.chart import Chart
from hortus.render.helm.errors import ChartError
from hortus.render.helm.loading import load_files

_CHART_SHARE = 8
"""Charts may take this part of a worker's memory, and about three times their files in it."""
_MOST_RENDERINGS = 20_000
"""Renderings after which a worker makes room for a fresh one."""
_GROWN_SHARE = 2
"""A worker makes room for a fresh one as soon as it has taken this part of what it had left when it started."""
_COLLECTED_AFTER = 20_000
"""Objects made and kept between two looks of the garbage collector."""
_STACK = 192 << 20
"""Bytes; more than 8 kB for each of the frames below."""
_DEEPEST_STACK = 20_000
"""Python frames; templates within templates need about eight each."""


class _Loaded(NamedTuple):
    chart: Chart
    size: int


class _Worker:
    def __init__(self, source: BinaryIO, target: BinaryIO, memory: int) -> None:
        self._source = source
        self._target = target
        self._charts: Bounded[str, _Loaded] = Bounded(memory // _CHART_SHARE, lambda _, loaded: 3 * loaded.size)
        self._looked_up = False
        taken = _address_space()
        self._grown = taken + (memory - taken) // _GROWN_SHARE

    def serve(self) -> None:
        for number in range(1, _MOST_RENDERINGS + 1):
            message = self._receive()
            if not isinstance(message, protocol.Render):
                return
            answer = self._answer(message)
            if not isinstance(answer, protocol.Unknown):
                # Freed memory seldom goes back to the system: what a large chart took is missing to the next one.
                is_last = answer.is_last or number == _MOST_RENDERINGS or _address_space() > self._grown
                answer = msgspec.structs.replace(answer, is_last=is_last)
            self._send(answer)
            if not isinstance(answer, protocol.Unknown) and answer.is_last:
                return

    def _receive(self) -> Any:
        header = self._source.read(protocol.HEADER)
        if len(header) < protocol.HEADER:
            return protocol.Stop()
        return protocol.to_worker.decode(self._source.read(int.from_bytes(header, "big")))

    def _send(self, message: Any) -> None:
        self._target.write(protocol.framed(message))
        self._target.flush()

    def _answer(self, message: protocol.Render) -> protocol.Done | protocol.Failed | protocol.Unknown:
        try:
            return self._rendered(message)
        except ChartError as error:
            return protocol.Failed(str(error))
        except MemoryError:
            text = "rendering needs more memory than its worker is given"
            return protocol.Failed(text, is_last=True, wants_memory=True)
        except RecursionError:
            return protocol.Failed("the chart or its values are nested too deeply")
        except Exception as error:
            # A mistake of ours must not take the worker's other charts with it; the type is enough to find it.
            return protocol.Failed(f"internal error while rendering: {type(error).__name__}: {error}")

    def _rendered(self, message: protocol.Render) -> protocol.Done | protocol.Unknown:
        chart = self._chart(message)
        if chart is None:
            return protocol.Unknown()
        self._looked_up = False
        found = render_chart(
            chart,
            message.values,
            release=message.release,
            capabilities=message.capabilities,
            options=message.options,
            lookup=self._lookup if message.looks_up else None,
            limits=message.limits,
        )
        return protocol.Done(found, self._looked_up)

    def _chart(self, message: protocol.Render) -> Chart | None:
        if message.files is None:
            known = self._charts.get(message.digest)
            return None if known is None else known.chart
        chart = load_files(message.files)
        self._charts.put(message.digest, _Loaded(chart, sum(len(data) for _, data in message.files)))
        return chart

    def _lookup(self, version: str, kind: str, namespace: str, name: str) -> dict[str, Any]:
        self._looked_up = True
        self._send(protocol.Lookup(version, kind, namespace, name))
        answer = self._receive()
        if not isinstance(answer, protocol.Found):
            raise FunctionError("the reader of lookups is gone")
        if answer.error:
            raise FunctionError(answer.error)
        return answer.value


def _address_space() -> int:
    """Bytes of address space that this process has, which its limit counts."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        # Elsewhere than on Linux this is the largest resident size so far, in KiB.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return pages * resource.getpagesize()


def main() -> None:
    """Serve until standard input ends."""
    memory = int(sys.argv[1])
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.setrecursionlimit(_DEEPEST_STACK)
    # The modules loaded by now stay. Trees of templates are many objects that stay too, so the collector need not
    # scan them again and again while they are built.
    gc.freeze()
    gc.set_threshold(_COLLECTED_AFTER, 10, 20)
    # A print by mistake must not break a frame.
    target = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=1 << 16)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with contextlib.suppress(BrokenPipeError):
        _Worker(sys.stdin.buffer, target, memory).serve()


if __name__ == "__main__":
    # Deep templates need a deep stack, in C too; the main thread's size is not ours to choose.
    threading.stack_size(_STACK)
    _thread = threading.Thread(target=main)
    _thread.start()
    _thread.join()
