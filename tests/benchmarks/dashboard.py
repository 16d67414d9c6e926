"""The dashboard before thousands of clusters: `python -m tests.benchmarks.dashboard [CLUSTERS]`.

An API server in one process, `hortus-dashboard` in another, and this one as the browsers: the first page of a new
viewer, the same page again, filters, the time from a change to its event on an open page, and processor time and memory
with 200 open pages of one viewer, and with some of several viewers.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import uvloop

from hortus.apiserver import Local
from hortus.domains import all_domains, free_port
from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.credentials.types import GARDENER_CLUSTERS, Label
from hortus.kube import Client, Resource
from hortus.kube.objects import Object
from hortus.schema import crd
from hortus.testing.apiserver import started_apiserver

CLUSTERS = 5000
PAGES = 200
VIEWERS = 5
REST = 10.0
"""Seconds."""
CHANGES = 40
COOKIE = "__Host-hortus"
HOME = "kcp-system"
REGIONS = ("eu-central-1", "westeurope", "europe-west3", "us-east-1")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
SECRETS = Resource("", "v1", "secrets", "Secret")
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
Figures = dict[str, float]


def _serve(clusters: int, answers: Queue[tuple[str, str]]) -> None:
    with started_apiserver() as server:
        root = server.server.local("root")
        for kind in (kind for domain in all_domains() for kind in domain.kinds().values()):
            server.run(root.create(CRDS, crd(kind)))
        server.run(root.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}))
        for first in range(0, clusters, 100):
            server.run(_fill(root, range(first, min(first + 100, clusters))))
        answers.put((server.kubeconfig.read_text(), server.token))
        threading.Event().wait()  # until killed


async def _fill(root: Local, numbers: Iterable[int]) -> None:
    await asyncio.gather(*(root.create(*one) for number in numbers for one in _objects(number)))


def _objects(number: int) -> list[tuple[Resource, Object]]:
    name = f"cluster-{number:05}"
    labels = {Label.RUNTIME_ID: name, Label.SHOOT_NAME: name, "ring": str(number % 10)}
    shoot = {
        "name": name,
        "purpose": "production",
        "platformRegion": "cf-eu10",
        "region": REGIONS[number % len(REGIONS)],
        "secretBindingName": "all",
        "kubernetes": {"version": f"1.{33 + number % 3}.1"},
        "networking": {"nodes": "10.0.0.0/16", "pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
        "provider": {"type": "aws", "workers": []},
    }
    security = {"administrators": ["admin@example.org"], "networking": {"filter": {"egress": {"enabled": False}}}}
    stamp = {"credentials.hortus.dev/expiration": "2027-01-01T00:00:00Z"}
    return [
        (RUNTIMES, _named(RUNTIMES, name, labels, {"spec": {"shoot": shoot, "security": security}})),
        (
            GARDENER_CLUSTERS,
            _named(
                GARDENER_CLUSTERS, name, labels,
                {"spec": {
                    "shoot": {"name": name},
                    "kubeconfig": {"secret": {"name": f"kubeconfig-{name}", "namespace": HOME, "key": "config"}},
                }},
            ),
        ),
        (SECRETS, _named(SECRETS, f"kubeconfig-{name}", labels, {}, stamp)),
    ]  # fmt: skip


def _named(
    resource: Resource, name: str, labels: dict[str, str], more: Object, annotations: dict[str, str] | None = None
) -> Object:
    metadata = {"name": name, "namespace": HOME, "labels": labels, "annotations": annotations or {}}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **more}


class Viewer:
    """A browser with a session."""

    def __init__(self, session: aiohttp.ClientSession, base: str) -> None:
        self._session = session
        self._base = base
        self._headers: dict[str, str] = {}

    async def sign_in(self, token: str) -> None:
        form = {"token": token, "next": "/clusters"}
        headers = {"Origin": self._base}
        async with self._session.post(
            self._base + "/login", data=form, headers=headers, allow_redirects=False
        ) as answer:
            assert answer.status == 303, await answer.text()
            self._headers = {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}

    async def get(self, path: str) -> tuple[float, str]:
        """Seconds, and the page."""
        began = time.perf_counter()
        async with self._session.get(self._base + path, headers=self._headers) as answer:
            text = await answer.text()
            assert answer.status == 200, text
        return time.perf_counter() - began, text

    @asynccontextmanager
    async def open(self, path: str = "/clusters") -> AsyncIterator[aiohttp.ClientResponse]:
        url = f"{self._base}/stream?at={path}&have="
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.get(url, headers=self._headers, timeout=timeout) as answer:
            yield answer


async def _until(answer: aiohttp.ClientResponse, text: bytes) -> None:
    # A line with a window of rows is longer than the reader's limit for lines.
    seen = b""
    async for piece in answer.content.iter_any():
        seen = seen[-len(text) :] + piece
        if text in seen:
            return


def _used(pid: int) -> tuple[float, float]:
    """Processor seconds and resident MiB of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return (int(fields[11]) + int(fields[12])) / ticks, pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def _measure(clusters: int, kubeconfig: Path, token: str, base: str, pid: int) -> dict[str, Figures]:
    found: dict[str, Figures] = {}
    connector = aiohttp.TCPConnector(limit=0)
    async with (
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), connector=connector) as session,
        Client.from_kubeconfig(kubeconfig) as admin,
    ):
        found["idle"] = {"MiB": _used(pid)[1]}
        viewer = Viewer(session, base)
        began = time.perf_counter()
        await viewer.sign_in(token)
        first, _ = await viewer.get("/clusters")
        painted = time.perf_counter()
        while orjson.loads((await viewer.get("/clusters?output=json"))[1])["rows"]["total"] < clusters:
            await asyncio.sleep(0.05)
        found["a new viewer"] = {
            "first page s": first,
            "sign-in and first page s": painted - began,
            "all rows s": time.perf_counter() - began,
            "MiB": _used(pid)[1],
        }
        found["pages again, ms"] = {
            name: 1000 * statistics.median([(await viewer.get(path))[0] for _ in range(10)])
            for name, path in {
                "all": "/clusters",
                "word": "/clusters?q=0042",
                "region and label": "/clusters?region=us-east-1&labels=ring%3D3",
                "order by version": "/clusters?sort=-version",
                "last window": f"/clusters?start={clusters - 100}",
                "one cluster": f"/clusters/runtime/{HOME}/cluster-00042",
            }.items()
        }
        found["a change seen, ms"] = await _changes(admin, viewer)
        found[f"{PAGES} pages of one viewer"] = await _many(admin, [viewer] * PAGES, pid)
        viewers = [Viewer(session, base) for _ in range(VIEWERS)]
        for number, one in enumerate(viewers):
            await one.sign_in(await _account(admin, f"viewer-{number}"))
            await one.get("/clusters")
        found[f"{PAGES} pages of {VIEWERS} more viewers"] = await _many(
            admin, [viewers[number % VIEWERS] for number in range(PAGES)], pid
        )
    return found


async def _account(admin: Client, name: str) -> str:
    await admin.create(ACCOUNTS, {"metadata": {"name": name, "namespace": HOME}})
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": HOME}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    await admin.create(BINDINGS, {"metadata": {"name": name}, "subjects": subjects, "roleRef": role})
    issued = await admin.create_subresource(ACCOUNTS, name, "token", {"spec": {}}, HOME)
    return str(issued["status"]["token"])


async def _touch(admin: Client, number: int, text: str) -> None:
    condition = {
        "type": "RuntimeProvisioned", "status": "False", "reason": "GardenerError", "message": text,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    status = {"status": {"state": "Failed", "conditions": [condition]}}
    await admin.patch(RUNTIMES, f"cluster-{number:05}", status, HOME, subresource="status")


async def _changes(admin: Client, viewer: Viewer) -> Figures:
    times = []
    async with viewer.open("/clusters%3Fq%3Dcluster-000") as answer:
        await _until(answer, b"cluster-00000")
        for number in range(CHANGES):
            began = time.perf_counter()
            await _touch(admin, number, f"change-{number:03}")
            await _until(answer, f"change-{number:03}".encode())
            times.append(1000 * (time.perf_counter() - began))
    return {"median": statistics.median(times), "worst": max(times)}


async def _many(admin: Client, viewers: list[Viewer], pid: int) -> Figures:
    async def read(viewer: Viewer, text: asyncio.Queue[bytes]) -> None:
        async with viewer.open() as answer:
            while True:
                await _until(answer, await text.get())
                seen.append(time.perf_counter())

    seen: list[float] = []
    wanted = [asyncio.Queue[bytes]() for _ in viewers]
    tasks = [asyncio.create_task(read(viewer, queue)) for viewer, queue in zip(viewers, wanted, strict=True)]
    await _seen_by_all(wanted, seen, b"cluster-")
    used, began = _used(pid)[0], time.perf_counter()
    await asyncio.sleep(REST)
    rest = (_used(pid)[0] - used) / (time.perf_counter() - began)
    used, began = _used(pid)[0], time.perf_counter()
    await _touch(admin, 99, f"for-all-{began:.6f}")
    last = await _seen_by_all(wanted, seen, f"for-all-{began:.6f}".encode()) - began
    memory = _used(pid)[1]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return {"CPU at rest": rest, "a change seen by all s": last, "CPU s for it": _used(pid)[0] - used, "MiB": memory}


async def _seen_by_all(wanted: list[asyncio.Queue[bytes]], seen: list[float], text: bytes) -> float:
    seen.clear()
    for queue in wanted:
        queue.put_nowait(text)
    while len(seen) < len(wanted):
        await asyncio.sleep(0.05)
    return max(seen)


def run(clusters: int = CLUSTERS) -> dict[str, Any]:
    answers: Queue[tuple[str, str]] = multiprocessing.get_context("spawn").Queue()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(clusters, answers))
    server.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            kubeconfig = Path(folder) / "kubeconfig"
            text, token = answers.get(timeout=300)
            kubeconfig.write_text(text)
            port = free_port()
            command = [sys.executable, "-m", "hortus.dashboard.main", "serve", "--kubeconfig", str(kubeconfig)]
            dashboard = subprocess.Popen(
                [*command, "--port", str(port), "--supervised"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            assert dashboard.stdout is not None and dashboard.stdin is not None
            orjson.loads(dashboard.stdout.readline())
            try:
                base = f"http://127.0.0.1:{port}"
                return uvloop.run(_measure(clusters, kubeconfig, token, base, dashboard.pid))
            finally:
                dashboard.stdin.close()
                dashboard.wait(timeout=20)
    finally:
        server.kill()
        server.join()


if __name__ == "__main__":
    print(orjson.dumps(run(int(sys.argv[1]) if len(sys.argv) > 1 else CLUSTERS), option=orjson.OPT_INDENT_2).decode())
