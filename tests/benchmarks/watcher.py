"""The watcher under a storm: each of 5,000 clusters reports a change at the same time.

Time is from the begin of a sender's request to the begin of its Kyma's reconcile: header, certificate and its chain,
body, the Kyma by its runtime id, queue, worker. Sender and listener share one process and one core. The agent is
measured as a process, with its memory and the time of one review.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from asyncio.subprocess import PIPE
from pathlib import Path
from urllib.parse import quote

import aiohttp
from prometheus_client import CollectorRegistry
from tests.domains.modules.watching.agent.test_program import agent
from tests.domains.modules.watching.agent.world import World, review
from tests.domains.modules.watching.certificates import authority, client

from hortus.domains.modules.types import KYMAS, Kyma
from hortus.domains.modules.watching.events import WatchedEvent, encode
from hortus.domains.modules.watching.health import WatcherHealth
from hortus.domains.modules.watching.listener import EventListener
from hortus.domains.modules.watching.metrics import WatcherMetrics
from hortus.domains.modules.watching.receiving import EventReceiver
from hortus.domains.modules.watching.routing import EventRouter
from hortus.engine import Cache, Manager, Result, Trigger, TypedCache, by_label
from hortus.engine.health import Address
from hortus.kube import Access, Client
from hortus.kube.clock import SystemClock
from hortus.kube.objects import Object, ObjectKey

CLUSTERS = 5_000
AT_ONCE = 64
REVIEWS = 300
PATH = "/v2/lifecycle-manager/event"
RUNTIME_ID = "kyma-project.io/runtime-id"

Figures = dict[str, dict[str, float]]


class _Reconciler:
    def __init__(self) -> None:
        self.began: dict[str, float] = {}
        self.all = asyncio.Event()

    async def reconcile(self, key: ObjectKey) -> Result | None:
        self.began.setdefault(key.name, time.perf_counter())
        if len(self.began) == CLUSTERS:
            self.all.set()
        return None


def _kyma(number: int) -> Object:
    return {
        "apiVersion": KYMAS.api_version,
        "kind": "Kyma",
        "metadata": {
            "name": f"kyma-{number}",
            "namespace": "kcp-system",
            "uid": str(number),
            "resourceVersion": str(number + 1),
            "labels": {RUNTIME_ID: f"runtime-{number}"},
            "annotations": {"skr-domain": f"c-{number}.example.org"},
        },
        "spec": {"channel": "regular"},
    }


async def _storm() -> Figures:
    ca, clock, registry = authority(), SystemClock(), CollectorRegistry()
    headers = [
        f'Hash=x;Cert="{quote(client(ca, name=f"runtime-{number}", domain=f"c-{number}.example.org").certificate)}"'
        for number in range(CLUSTERS)
    ]
    control = Client(Access(server="https://127.0.0.1:1"))
    manager, reconciler, trigger = Manager(control, registry=registry, grace=0.0), _Reconciler(), Trigger()
    manager.controller("kyma", reconciler, sources=[trigger], workers=1)
    kymas = Cache("kymas")
    kymas.add_index("runtime", by_label(RUNTIME_ID))
    for number in range(CLUSTERS):
        kymas.learn(_kyma(number))
    typed = TypedCache(Kyma, kymas)
    health = WatcherHealth(every=3600.0, namespace="kyma-system", clock=clock)
    router = EventRouter(control, health=health, trigger=trigger, holds=manager.holds, clock=clock)
    metrics = WatcherMetrics(registry)
    receiver = EventReceiver(
        kymas=lambda runtime: typed.by("runtime", runtime),
        bundle=ca.certificate.decode,
        accept=router.accept,
        metrics=metrics,
        clock=clock,
    )
    listener = EventListener(Address("127.0.0.1", 0), receiver, metrics, clock=clock)
    await listener.start()
    sent: dict[str, float] = {}
    places = asyncio.Semaphore(AT_ONCE)
    body = encode(WatchedEvent("kyma-system", "default", KYMAS.group, KYMAS.version, KYMAS.kind))
    url = f"http://127.0.0.1:{listener.port}{PATH}"

    async with control, manager.running(), aiohttp.ClientSession() as session:

        async def send(number: int) -> None:
            async with places:
                sent[f"kyma-{number}"] = time.perf_counter()
                given = {"X-Forwarded-Client-Cert": headers[number]}
                async with session.post(url, data=body, headers=given) as answer:
                    assert answer.status == 200, await answer.text()

        began = time.perf_counter()
        await asyncio.gather(*(send(number) for number in range(CLUSTERS)))
        await reconciler.all.wait()
        whole = time.perf_counter() - began
    await listener.stop()
    took = sorted(reconciler.began[name] - sent[name] for name in sent)
    return {
        f"events of {CLUSTERS} clusters, {AT_ONCE} at once": {
            "whole, s": whole,
            "event to reconcile p50, ms": statistics.median(took) * 1e3,
            "p99, ms": took[int(len(took) * 0.99)] * 1e3,
        }
    }


async def _agent() -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        await world.control.start()
        try:
            async with agent(world.environment) as (process, port):
                times = []
                for number in range(REVIEWS):
                    began = time.perf_counter()
                    await world.review(port, review(name=f"n{number}"))
                    times.append((time.perf_counter() - began) * 1e3)
                status = Path(f"/proc/{process.pid}/status").read_text()
            memory = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
        finally:
            await world.control.stop()
    return {
        "agent": {
            "memory, MiB": int(memory) / 1024,
            "import, s": await _import(),
            "review with handshake p50, ms": statistics.median(times),
        }
    }


async def _import() -> float:
    module = "hortus.domains.modules.watching.agent.main"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    times = []
    for _ in range(3):
        began = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", f"import {module}", env=environment, stderr=PIPE
        )
        await process.communicate()
        times.append(time.perf_counter() - began)
    return min(times)


def run() -> Figures:
    return {**asyncio.run(_storm()), **asyncio.run(_agent())}
