"""The processor time of thousands of watches at rest, which is that of the bookmarks by which they show that they live.

Alone: `python -m tests.benchmarks.bookmarks [watches] [--every S] [--rest S]`. Each cluster is a logical one of an API
server in another process, with a kubeconfig of its own, and has two watches through a `RemotePool`, as one with modules
has. Nothing changes in any of them. The API server sends a bookmark every 60 s, as kube-apiserver does; `--every` makes
it send more, so that a short run measures many. The same watches are measured in turn: as `hortus.kube.streams` takes
bookmarks, and as it was before, when each was an event for its reader. So is one watch without a socket.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from multiprocessing.queues import Queue
from pathlib import Path
from random import uniform
from typing import Any

import uvloop
from aiohttp.client_proto import ResponseHandler
from tests.benchmarks.remote import CONFIGMAPS, NAMESPACES, Figures, _place, _secret, _thin, resident
from tests.kube.feeding import FedTransport, bookmark, chunk

from hortus.apiserver.limits import ServerLimits
from hortus.apiserver.resources import watching
from hortus.apiserver.settings import ApiServerSettings
from hortus.engine import Manager, Selection
from hortus.engine.kubeconfigs import sealed
from hortus.engine.remote import SECRETS, RemotePool, RemoteSettings, RemoteWatch, SecretCredentials
from hortus.kube import Client, SystemClock, yaml
from hortus.kube.errors import KubeError
from hortus.kube.objects import ObjectKey
from hortus.kube.streams import StreamHandler
from hortus.kube.watch import Watch
from hortus.testing.apiserver import started_apiserver

WATCHES = 10_000
REST = 45.0
EVERY = 60.0
_LINES = 100_000
_SELECTIONS = (Selection(CONFIGMAPS, labels="watched=yes"), Selection(NAMESPACES, labels="watched=yes"))


def _serve(clusters: int, every: float, answers: Queue[str]) -> None:
    watching._BOOKMARK_EVERY = _Spread(every)
    names = [f"bench-{number}" for number in range(clusters)]
    limits = ServerLimits(connections=19_000, watches=18_500)
    with started_apiserver(clusters=names, settings=ApiServerSettings(limits=limits)) as server:
        root = server.server.local("root")
        for name in names:
            server.run(root.create(SECRETS, _secret(name, yaml.dump(server.kubeconfig_dict(name)))))
        answers.put(server.kubeconfig.read_text())
        threading.Event().wait()  # until killed


class _Spread(float):
    """A period as that of many servers, none of which keeps step with another."""

    def __radd__(self, since: float) -> float:
        return since + float(self) * uniform(0.8, 1.2)


def _set_again(handler: StreamHandler) -> None:
    """Set the timer as aiohttp does."""
    handler._heard = handler._loop.time()
    handler._drop_timeout()
    handler._read_timeout_handle = handler._loop.call_later(handler._read_timeout or 0.0, handler._on_read_timeout)


@contextlib.contextmanager
def _usual_way() -> Iterator[None]:
    """Every bookmark wakes its reader, and sets the timer again."""
    usual = {"data_received": ResponseHandler.data_received, "_reschedule_timeout": _set_again}
    own = {name: getattr(StreamHandler, name) for name in usual}
    for name, method in usual.items():
        setattr(StreamHandler, name, method)
    try:
        yield
    finally:
        for name, method in own.items():
            setattr(StreamHandler, name, method)


def _used() -> tuple[float, float]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime, usage.ru_stime


async def _measure(kubeconfig: Path, clusters: int, every: float, rest: float) -> Figures:
    async with Client.from_kubeconfig(kubeconfig) as client:
        manager = Manager(client)
        secrets = manager.cache(SECRETS, namespace="default", labels="bench=yes", transform=sealed)
        pool = RemotePool(
            SecretCredentials(client, secrets), settings=RemoteSettings(deny=()), registry=manager.registry
        )
        watches = [
            RemoteWatch(pool, secrets, place=_place, selection=selection, transform=_thin) for selection in _SELECTIONS
        ]
        manager.on_stop(pool.close)
        async with manager.running():
            await secrets.synced()
            began, cpu = time.perf_counter(), sum(_used())
            detaches = [watch.attach(lambda key, priority: None, SystemClock()) for watch in watches]
            for watch in watches:
                for key in list(secrets):
                    cache = watch.cache(key)
                    assert cache is not None
                    await cache.synced()
            figures = {
                "seconds_to_watch_all": time.perf_counter() - began,
                "cpu_ms_per_cluster": (sum(_used()) - cpu) / clusters * 1e3,
                "rss_mib": resident(),
            }
            print(json.dumps(figures), file=sys.stderr, flush=True)
            rate = len(watches) * clusters / every
            await asyncio.sleep(every)
            for turn in (1, 2):
                figures |= {f"{name}_absorbed_{turn}": found for name, found in (await _rested(rest, rate)).items()}
                with _usual_way():
                    figures |= {f"{name}_events_{turn}": found for name, found in (await _rested(rest, rate)).items()}
            keys = list(secrets)
            figures["watches_with_problems"] = float(sum(_problems(watch, keys) for watch in watches))
            for detach in detaches:
                detach()
            for watch in watches:
                await watch.closed()
        return figures


def _problems(watch: RemoteWatch, keys: list[ObjectKey]) -> int:
    return sum(watch.problem(key) is not None for key in keys)


async def _rested(rest: float, rate: float) -> Figures:
    """The processor time of this process."""
    began, (user, system) = time.perf_counter(), _used()
    await asyncio.sleep(rest)
    seconds, (user_after, system_after) = time.perf_counter() - began, _used()
    user, system = user_after - user, system_after - system
    return {
        "percent_of_a_core": (user + system) / seconds * 100,
        "of_it_system": system / seconds * 100,
        "us_for_a_bookmark": (user + system) / seconds / rate * 1e6,
    }


def _watcher(kubeconfig: str, clusters: int, every: float, rest: float, answers: Queue[Any]) -> None:
    answers.put(uvloop.run(_measure(Path(kubeconfig), clusters, every, rest)))


def run(watches: int = WATCHES, *, every: float = EVERY, rest: float = REST) -> dict[str, Figures]:
    """Percent of a core, and microseconds for each bookmark."""
    context = multiprocessing.get_context("spawn")
    answers: Queue[Any] = context.Queue()
    clusters = watches // 2
    serving = context.Process(target=_serve, args=(clusters, every, answers))
    serving.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "kubeconfig")
            path.touch(mode=0o600)
            path.write_text(answers.get(timeout=600))
            measuring = context.Process(target=_watcher, args=(str(path), clusters, every, rest, answers))
            measuring.start()
            figures = answers.get(timeout=1200 + rest)
            measuring.join()
    finally:
        serving.kill()  # it holds nothing worth a farewell
        serving.join()
    return {
        f"{watches} watches, a bookmark every {every:g} s": figures,
        "one watch, without a socket": uvloop.run(_without_a_socket()),
    }


async def _without_a_socket() -> Figures:
    """Microseconds from the bytes of a bookmark to its version, where nothing else is in the processor's caches."""
    with _usual_way():
        events = await _fed(read_each=True)
    return {"us_for_a_bookmark_absorbed": await _fed(read_each=False), "us_for_a_bookmark_events": events}


async def _fed(*, read_each: bool) -> float:
    transport = FedTransport()
    watch = Client.over(transport).watch(CONFIGMAPS, resource_version="1", on_bookmark=lambda _: None)
    reading = asyncio.ensure_future(_read(watch))
    await _let_read()
    transport.handler.data_received(chunk(bookmark("1")))
    await _let_read()
    began = time.process_time()
    for version in range(_LINES):
        transport.handler.data_received(chunk(bookmark(str(version))))
        if read_each:
            await _let_read()
    spent = time.process_time() - began
    assert watch.resource_version == str(_LINES - 1)
    await transport.close()
    await reading
    return spent / _LINES * 1e6


async def _read(watch: Watch) -> None:
    with contextlib.suppress(KubeError):
        async for _ in watch:
            pass


async def _let_read() -> None:
    for _ in range(2):
        await asyncio.sleep(0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="tests.benchmarks.bookmarks")
    parser.add_argument("watches", nargs="?", type=int, default=WATCHES)
    parser.add_argument("--every", type=float, default=EVERY, help="seconds between two bookmarks of a watch")
    parser.add_argument("--rest", type=float, default=REST, help="seconds that are measured")
    given = parser.parse_args()
    print(json.dumps(run(given.watches, every=given.every, rest=given.rest), indent=2))
