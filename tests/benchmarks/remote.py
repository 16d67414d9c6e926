"""Thousands of remote clusters connected and watched by one process, and what a tenth of them hanging does to the rest.

Alone: `python -m tests.benchmarks.remote [clusters]`. The clusters are logical clusters of an API server in another
process, each with a kubeconfig of its own (client certificate, TLS). A tenth is reached through a relay that stops
passing bytes on demand: connections stay open and new ones are accepted, and nothing is ever answered. While all
watches begin, each cluster is called once, as after a restart. Then keys of all clusters become due at a steady rate;
each reconcile asks its cluster for one object. Latency is from due to done.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import re
import resource
import sys
import tempfile
import threading
import time
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path
from random import Random
from statistics import quantiles
from typing import Any
from urllib.parse import urlsplit

import uvloop

from hortus.engine import Controller, Manager, Selection, Trigger
from hortus.engine.kubeconfigs import sealed
from hortus.engine.lanes import Flows
from hortus.engine.remote import SECRETS, KubeconfigRef, RemotePool, RemoteSettings, RemoteWatch, SecretCredentials
from hortus.kube import Client, SystemClock, yaml
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object, ObjectKey, Resource
from hortus.testing.apiserver import started_apiserver

CLUSTERS = 5000
HANGING = 10
"""One cluster in so many can hang."""
RATE = 100
"""Reconciles a second."""
SECONDS = 20.0
WORKERS = 32
STARTING = 64
"""Workers while all watches begin: those of a controller, and those that stand in for them."""
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)

Figures = dict[str, float]


# The clusters, in a process of their own.


def _serve(clusters: int, answers: Queue[str], hang: Event) -> None:
    names = [f"bench-{number}" for number in range(clusters)]
    with started_apiserver(clusters=names) as server:
        target = urlsplit(server.url)
        assert target.hostname is not None
        assert target.port is not None
        port = server.run(_relay(target.hostname, target.port, hang))
        root = server.server.local("root")
        for number, name in enumerate(names):
            config = server.kubeconfig_dict(name)
            if number % HANGING == 0:
                cluster = config["clusters"][0]["cluster"]
                cluster["server"] = cluster["server"].replace(f":{target.port}/", f":{port}/")
            server.run(root.create(SECRETS, _secret(name, yaml.dump(config))))
        answers.put(server.kubeconfig.read_text())
        threading.Event().wait()  # until killed


def _secret(name: str, kubeconfig: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "default", "labels": {"bench": "yes"}},
        "stringData": {"config": kubeconfig},
    }


async def _relay(host: str, port: int, hang: Event) -> int:
    tasks: set[asyncio.Task[None]] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(65536):
                while hang.is_set():
                    await asyncio.sleep(0.5)
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        onward, back = await asyncio.open_connection(host, port)
        for pair in ((reader, back), (onward, writer)):
            task = asyncio.create_task(pump(*pair))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    made = await asyncio.start_server(accept, "127.0.0.1", 0, backlog=1024)
    found: int = made.sockets[0].getsockname()[1]
    return found


# The process that is measured.


class _Asking:
    """Asks the cluster of a key for one object; notes how long the well ones took from due to done."""

    def __init__(self, pool: RemotePool) -> None:
        self._pool = pool
        self.due: dict[ObjectKey, float] = {}
        self.took: list[float] = []
        self.failed = 0

    async def reconcile(self, key: ObjectKey) -> None:
        hangs = int(key.name.rpartition("-")[2]) % HANGING == 0
        since = self.due.pop(key, None)
        try:
            await self._pool.at(KubeconfigRef("default", key.name, "config")).get(NAMESPACES, "default")
        except KubeError:
            self.failed += 1
            if not hangs:
                raise
            return
        if not hangs and since is not None:
            self.took.append(time.perf_counter() - since)


def _place(secret: Object) -> KubeconfigRef:
    return KubeconfigRef("default", secret["metadata"]["name"], "config")


def _thin(obj: Object) -> Object:
    return {"metadata": {name: obj["metadata"].get(name, "") for name in ("name", "namespace", "resourceVersion")}}


def resident() -> float:
    """MiB of this process."""
    found = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found.group(1)) / 1024


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def _offer(asking: _Asking, trigger: Trigger, keys: list[ObjectKey], seconds: float) -> None:
    random, end = Random(7), time.perf_counter() + seconds
    step = 0.02
    while time.perf_counter() < end:
        for key in random.sample(keys, max(1, int(RATE * step))):
            asking.due.setdefault(key, time.perf_counter())
            trigger.fire(key)
        await asyncio.sleep(step)


async def _measure(kubeconfig: Path, clusters: int, hang: Event, seconds: float) -> Figures:
    async with Client.from_kubeconfig(kubeconfig) as client:
        manager = Manager(client)
        secrets = manager.cache(SECRETS, namespace="default", labels="bench=yes", transform=sealed)
        pool = RemotePool(
            SecretCredentials(client, secrets), settings=RemoteSettings(deny=()), registry=manager.registry
        )
        watch = RemoteWatch(
            pool, secrets, place=_place, selection=Selection(CONFIGMAPS, labels="watched=yes"), transform=_thin
        )
        manager.on_stop(pool.close)
        trigger = Trigger()
        asking = _Asking(pool)
        async with manager.running():
            await secrets.synced()
            figures = {"rss_before_mib": resident()}
            began, cpu = time.perf_counter(), _cpu()
            controller = Controller(
                "bench",
                asking,
                sources=[trigger],
                workers=WORKERS,
                flows=Flows(lambda key: key, limit=1),
                clock=SystemClock(),
            )
            detach = watch.attach(lambda key, priority: None, SystemClock())
            keys = list(secrets)
            figures |= await _at_start(pool, keys)
            for key in keys:
                cache = watch.cache(key)
                assert cache is not None
                await cache.synced()
            await asyncio.sleep(1)
            figures |= {
                "seconds_to_watch_all": time.perf_counter() - began - 1,
                "cpu_ms_per_cluster": (_cpu() - cpu) / clusters * 1e3,
                "rss_mib": resident(),
                "sockets": float(pool.budget.held),
            }
            figures["kib_per_watched_cluster"] = (figures["rss_mib"] - figures["rss_before_mib"]) / clusters * 1024
            await controller.start()
            figures |= await _latencies(asking, trigger, keys, hang, seconds)
            figures["rss_in_the_end_mib"] = resident()
            await controller.stop()
            detach()
            await watch.closed()
        return figures


async def _at_start(pool: RemotePool, keys: list[ObjectKey]) -> Figures:
    """Each cluster is called once by a few workers, while all watches begin, as after a restart of controllers."""
    due, took, late = Random(3).sample(keys, len(keys)), [], 0

    async def work() -> None:
        nonlocal late
        while due:
            key, began = due.pop(), time.perf_counter()
            try:
                await pool.at(KubeconfigRef("default", key.name, "config")).get(NAMESPACES, "default")
            except KubeError:
                late += 1
            took.append(time.perf_counter() - began)

    await asyncio.gather(*(work() for _ in range(STARTING)))
    cuts = quantiles(took, n=100)
    return {
        "calls_at_start": float(len(took)),
        "calls_at_start_not_done_in_time": float(late),
        "p50_ms_at_start": cuts[49] * 1e3,
        "p99_ms_at_start": cuts[98] * 1e3,
    }


async def _latencies(asking: _Asking, trigger: Trigger, keys: list[ObjectKey], hang: Event, seconds: float) -> Figures:
    await _offer(asking, trigger, keys, seconds / 4)  # so that the first phase does not pay for warming up
    asking.took.clear()
    found: Figures = {}
    for phase in ("well", "hanging"):
        if phase == "hanging":
            hang.set()
        await _offer(asking, trigger, keys, seconds)
        cuts = quantiles(asking.took, n=100)
        found |= {f"p50_ms_{phase}": cuts[49] * 1e3, f"p99_ms_{phase}": cuts[98] * 1e3}
        found[f"reconciles_{phase}"] = float(len(asking.took))
        asking.took.clear()
    found["refused_calls_to_hanging"] = float(asking.failed)
    found["p99_ratio"] = found["p99_ms_hanging"] / found["p99_ms_well"]
    return found


def _watcher(kubeconfig: str, clusters: int, hang: Event, seconds: float, answers: Queue[Any]) -> None:
    path = Path(kubeconfig)
    answers.put(uvloop.run(_measure(path, clusters, hang, seconds)))


def run(clusters: int = CLUSTERS, seconds: float = SECONDS) -> dict[str, Figures]:
    """MiB, KiB, seconds and milliseconds of one run."""
    context = multiprocessing.get_context("spawn")
    answers: Queue[Any] = context.Queue()
    hang = context.Event()
    serving = context.Process(target=_serve, args=(clusters, answers, hang))
    serving.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "kubeconfig")
            path.touch(mode=0o600)
            path.write_text(answers.get(timeout=300))
            watching = context.Process(target=_watcher, args=(str(path), clusters, hang, seconds, answers))
            watching.start()
            figures = answers.get(timeout=600)
            watching.join()
    finally:
        serving.kill()  # it holds nothing worth a farewell
        serving.join()
    return {f"{clusters} clusters": figures}


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]) if len(sys.argv) > 1 else CLUSTERS), indent=2))
