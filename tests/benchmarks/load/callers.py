"""Load on an API server, described by a JSON document on standard input, figures as one on standard output.

{"kubeconfig": …, "work": "create", "count": 5000, "callers": 16, "prefix": "a"}
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import uvloop
from tests.benchmarks.load.wire import Caller, Target, target_of

NAMESPACE = "bench"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
CLUSTERS = "/apis/infrastructuremanager.kyma-project.io/v1/namespaces/bench/gardenerclusters"
LOGICAL = "/apis/tenancy.hortus.dev/v1alpha1/logicalclusters"
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"

Request = tuple[str, str, bytes, str]
Figures = dict[str, float]


def config_map(name: str, value: str = "x", namespace: str = NAMESPACE) -> bytes:
    metadata = {"name": name, "namespace": namespace, "labels": {"app": "bench", "part": "load"}}
    data = {"key": value, "other": "a value that is somewhat longer than the first one"}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}).encode()


def _gardener_cluster(name: str) -> bytes:
    spec = {"shoot": {"name": name}, "kubeconfig": {"secret": {"name": name, "namespace": NAMESPACE, "key": "config"}}}
    head = {"apiVersion": "infrastructuremanager.kyma-project.io/v1", "kind": "GardenerCluster"}
    labels = {"kyma-project.io/shoot-name": name}
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labels}
    return json.dumps({**head, "metadata": metadata, "spec": spec}).encode()


def _status(number: int) -> bytes:
    condition = {"type": "Ready", "status": "True", "reason": f"Round{number}", "message": "the credentials are fresh"}
    condition["lastTransitionTime"] = "2025-01-01T00:00:00Z"
    return json.dumps({"status": {"state": "Ready", "conditions": [condition]}}).encode()


def _logical(number: int, prefix: str) -> bytes:
    head = {"apiVersion": "tenancy.hortus.dev/v1alpha1", "kind": "LogicalCluster"}
    return json.dumps({**head, "metadata": {"name": f"{prefix}{number}"}}).encode()


def _create(number: int, prefix: str) -> Request:
    return "POST", CONFIG_MAPS, config_map(f"{prefix}{number}"), "application/json"


def _get(number: int, prefix: str) -> Request:
    return "GET", f"{CONFIG_MAPS}/{prefix}{number % 1000}", b"", ""


def _apply(number: int, prefix: str) -> Request:
    name = f"{prefix}{number % 1000}"
    return "PATCH", f"{CONFIG_MAPS}/{name}?fieldManager=bench", config_map(name, f"value {number}"), _APPLY


def _create_custom(number: int, prefix: str) -> Request:
    return "POST", CLUSTERS, _gardener_cluster(f"{prefix}{number}"), "application/json"


def _patch_status(number: int, prefix: str) -> Request:
    return "PATCH", f"{CLUSTERS}/{prefix}{number % 500}/status", _status(number), _MERGE


def _create_cluster(number: int, prefix: str) -> Request:
    return "POST", LOGICAL, _logical(number, prefix), "application/json"


def _fill_cluster(number: int, prefix: str) -> Request:
    cluster, index = divmod(number, 20)
    body = config_map(f"object-{index}", namespace="default")
    return "POST", f"/clusters/{prefix}{cluster}/api/v1/namespaces/default/configmaps", body, "application/json"


def _create_namespace(number: int, prefix: str) -> Request:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    return "POST", "/api/v1/namespaces", json.dumps(body).encode(), "application/json"


REQUESTS: dict[str, Callable[[int, str], Request]] = {
    "create_namespace": _create_namespace,
    "create": _create,
    "get": _get,
    "apply": _apply,
    "create_custom": _create_custom,
    "status": _patch_status,
    "create_cluster": _create_cluster,
    "fill_cluster": _fill_cluster,
}


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


class Calling(Protocol):
    """A client with one connection."""

    async def call(self, method: str, path: str, body: bytes = b"", content_type: str = "") -> tuple[int, bytes]:
        """Code and body of the answer."""

    async def close(self) -> None: ...


Connect = Callable[[Target], Awaitable[Calling]]


async def throughput(
    target: Target, request: Callable[[int], Request], count: int, callers: int, *, connect: Connect = Caller.open
) -> Figures:
    """`count` requests by `callers`, each on a connection of its own; latencies in milliseconds."""
    latencies: list[float] = []
    connections = [await connect(target) for _ in range(callers)]

    async def call(caller: Calling, numbers: Iterator[int]) -> None:
        for number in numbers:
            sent = request(number)
            began = time.perf_counter()
            code, answer = await caller.call(*sent)
            latencies.append((time.perf_counter() - began) * 1000)
            if code >= 300:
                raise RuntimeError(f"{sent[0]} {sent[1]}: {answer[:1000]!r}")

    began, numbers = time.perf_counter(), iter(range(count))
    await asyncio.gather(*(call(caller, numbers) for caller in connections))
    wall = time.perf_counter() - began
    for caller in connections:
        await caller.close()
    return {"per_s": count / wall, "p50_ms": percentile(latencies, 0.5), "p99_ms": percentile(latencies, 0.99)}


async def listing(target: Target, count: int, path: str, *, connect: Connect = Caller.open) -> Figures:
    """A whole collection, `count` times, as one caller."""
    caller = await connect(target)
    times, size = [], 0
    for _ in range(count):
        began = time.perf_counter()
        _, answer = await caller.call("GET", path)
        times.append((time.perf_counter() - began) * 1000)
        size = len(answer)
    await caller.close()
    rate = 1000 * count / sum(times)
    return {"per_s": rate, "p50_ms": percentile(times, 0.5), "p99_ms": percentile(times, 0.99), "bytes": size}


async def fan_out(target: Target, count: int, watchers: int) -> Figures:
    """Milliseconds from sending a create to its event at each watcher."""
    version = json.loads((await _once(target, "GET", f"{CONFIG_MAPS}?limit=1")).partition(b"\r\n\r\n")[2])
    path = f"{CONFIG_MAPS}?watch=1&resourceVersion={version['metadata']['resourceVersion']}"
    began, left, latencies = 0.0, 0, []
    done = asyncio.Event()

    def on_data(data: bytes, at: float) -> None:
        nonlocal left
        if b'"ADDED"' in data:
            latencies.append((at - began) * 1000)
            left -= 1
            if not left:
                done.set()

    connections = [await Caller.open(target) for _ in range(watchers)]
    for caller in connections:
        caller.watch(path, on_data)
    writer = await Caller.open(target)
    for number in range(count):
        left = watchers
        done.clear()
        sent = _create(number, "fan")
        began = time.perf_counter()
        await writer.call(*sent)
        await done.wait()
    for caller in [*connections, writer]:
        await caller.close()
    return {"p50_ms": percentile(latencies, 0.5), "p99_ms": percentile(latencies, 0.99)}


async def _once(target: Target, *request: str) -> bytes:
    caller = await Caller.open(target)
    _, answer = await caller.call(*request)
    await caller.close()
    return answer


async def hold_watches(target: Target, count: int, prefix: str) -> None:
    """Open `count` watches on as many logical clusters, say so, and keep them until standard input ends."""
    opened = asyncio.Semaphore(0)
    connections = []
    for number in range(count):
        caller = await Caller.open(target)
        path = f"/clusters/{prefix}{number}/api/v1/configmaps?watch=1&resourceVersion=0"
        caller.watch(path, lambda data, at: opened.release())
        connections.append(caller)
        await opened.acquire()
    print(json.dumps({"open": count}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for caller in connections:
        await caller.close()


async def main(asked: dict[str, Any]) -> None:
    target = target_of(Path(asked["kubeconfig"]))
    work, count, prefix = asked["work"], asked["count"], asked.get("prefix", "a")
    if work == "hold_watches":
        await hold_watches(target, count, prefix)
        return
    if work == "list":
        figures = await listing(target, count, CONFIG_MAPS)
    elif work == "fan_out":
        figures = await fan_out(target, count, asked["watchers"])
    else:
        request = partial(REQUESTS[work], prefix=prefix)
        figures = await throughput(target, request, count, asked.get("callers", 16))
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    uvloop.run(main(json.loads(sys.stdin.readline())))
