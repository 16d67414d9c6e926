"""The dashboard before thousands of clusters: `python -m tests.benchmarks.dashboard --help`.

An API server in one process, `hortus-dashboard` in another, and this one as the browsers: the first page of a new
viewer, the same page again, filters, the time from a change to its event on an open page, and processor time and memory
with open pages of one viewer, and with a page of each of many viewers that have four different sets of permissions.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
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
from typing import Any, NamedTuple

import aiohttp
import orjson
import uvloop
from tests.dashboard.conftest import browsers

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
VIEWERS = 200
REST = 60.0
"""Seconds."""
CHANGES = 40
CHANGES_FOR_ALL = 10
SIGNING_IN = 4
"""Viewers that sign in at the same time."""
ROLES = 4
COOKIE = "__Host-hortus"
KEEP_ALIVE = b": keep-alive\n\n"
_DRAINED = 3.0
"""Seconds in which pages read what is left of their first pictures, before the rest is measured."""
HOME = "kcp-system"
REGIONS = ("eu-central-1", "westeurope", "europe-west3", "us-east-1")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
SECRETS = Resource("", "v1", "secrets", "Secret")
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
GROUP = "rbac.authorization.k8s.io"
ROLES_KIND = Resource(GROUP, "v1", "clusterroles", "ClusterRole", namespaced=False)
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


class Size(NamedTuple):
    """The size of a run."""

    clusters: int = CLUSTERS
    pages: int = PAGES
    viewers: int = VIEWERS
    rest: float = REST


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


async def _measure(size: Size, kubeconfig: Path, token: str, base: str, pid: int) -> dict[str, Figures]:
    found: dict[str, Figures] = {}
    async with (
        browsers(limit=0) as session,
        Client.from_kubeconfig(kubeconfig) as admin,
    ):
        found["idle"] = {"MiB": _used(pid)[1]}
        viewer = Viewer(session, base)
        began = time.perf_counter()
        await viewer.sign_in(token)
        first, _ = await viewer.get("/clusters")
        painted = time.perf_counter()
        while not await _is_complete(viewer, size.clusters):
            await asyncio.sleep(0.05)  # the grain of what is measured; no event says that a picture is complete
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
                "last window": f"/clusters?start={max(0, size.clusters - 100)}",
                "one cluster": f"/clusters/runtime/{HOME}/cluster-00042",
            }.items()
        }
        # Each filter is a new one: what was filtered once is kept until an object changes.
        found["filters, ms"] = {
            name: 1000 * statistics.median([(await viewer.get(path.format(number)))[0] for number in range(10)])
            for name, path in {
                "word": "/clusters?q=004{}",
                "region and label": "/clusters?region=us-east-1&labels=ring%3D{}",
                "order by version": "/clusters?sort=-version&start={}00",
            }.items()
        }
        found["a change seen, ms"] = await _changes(admin, viewer)
        found[f"{size.pages} pages of one viewer"] = await _many(admin, [viewer] * size.pages, pid, size.rest)
        await _make_roles(admin)
        viewers = [Viewer(session, base) for _ in range(size.viewers)]
        used, began, free = _used(pid)[0], time.perf_counter(), asyncio.Semaphore(SIGNING_IN)

        async def enter(number: int, one: Viewer) -> float:
            issued = await _account(admin, f"viewer-{number}", f"role-{number % ROLES}")
            async with free:
                began = time.perf_counter()
                await one.sign_in(issued)
                await one.get("/clusters")
                first = time.perf_counter() - began
                while not await _is_complete(one, size.clusters):
                    await asyncio.sleep(0.05)
            return first

        firsts = await asyncio.gather(*(enter(number, one) for number, one in enumerate(viewers)))
        found[f"{size.viewers} further viewers sign in"] = {
            "first page s, median": statistics.median(firsts),
            "first page s, worst": max(firsts),
            "all have all rows s": time.perf_counter() - began,
            "CPU s for each": (_used(pid)[0] - used) / size.viewers,
            "MiB": _used(pid)[1],
        }
        found[f"{size.pages} pages of {size.viewers} viewers"] = await _many(
            admin, [viewers[number % size.viewers] for number in range(size.pages)], pid, size.rest
        )
    return found


async def _is_complete(viewer: Viewer, clusters: int) -> bool:
    """Reports whether all kinds were read."""
    found = orjson.loads((await viewer.get("/clusters?output=json&size=1"))[1])
    return found["rows"]["total"] == clusters and not any("being read" in note for note in found["notes"])


async def _make_roles(admin: Client) -> None:
    """Roles with and without the Secrets, with and without the GardenerClusters."""
    everything = [kind for domain in all_domains() for view in domain.fleet_views() for kind in view.kinds]
    for number in range(ROLES):
        hidden = [kind for bit, kind in ((1, SECRETS), (2, GARDENER_CLUSTERS)) if number & bit]
        read = dict.fromkeys((kind.resource.group, kind.resource.plural) for kind in everything)
        rules = [
            {"apiGroups": [group], "resources": [plural], "verbs": ["get", "list", "watch"]}
            for group, plural in read
            if plural not in [kind.plural for kind in hidden]
        ]
        await admin.create(ROLES_KIND, {"metadata": {"name": f"role-{number}"}, "rules": rules})


async def _account(admin: Client, name: str, role: str) -> str:
    await admin.create(ACCOUNTS, {"metadata": {"name": name, "namespace": HOME}})
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": HOME}]
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
    await admin.create(BINDINGS, {"metadata": {"name": name}, "subjects": subjects, "roleRef": reference})
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


async def _many(admin: Client, viewers: list[Viewer], pid: int, rest: float) -> Figures:
    """Open pages at rest, then changes of one cluster that all of them show."""
    heard: list[bytes] = []

    async def read(viewer: Viewer, text: asyncio.Queue[bytes]) -> None:
        async with viewer.open() as answer:
            while True:
                wanted = await text.get()
                if wanted:
                    await _until(answer, wanted)
                    seen.append(time.perf_counter())
                else:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(_DRAINED + rest):
                            await _listen(answer, heard)

    seen: list[float] = []
    wanted = [asyncio.Queue[bytes]() for _ in viewers]
    tasks = [asyncio.create_task(read(viewer, queue)) for viewer, queue in zip(viewers, wanted, strict=True)]
    await _seen_by_all(wanted, seen, b"cluster-")
    for queue in wanted:
        queue.put_nowait(b"")
    await asyncio.sleep(_DRAINED)
    heard.clear()
    used, began = _used(pid)[0], time.perf_counter()
    await asyncio.sleep(rest)
    found = {"CPU at rest": (_used(pid)[0] - used) / (time.perf_counter() - began)}
    found["keep-alives for each page at rest"] = b"".join(heard).count(KEEP_ALIVE) / len(viewers)
    found["other bytes at rest"] = len(b"".join(heard).replace(KEEP_ALIVE, b""))
    used, lasts = _used(pid)[0], []
    for number in range(CHANGES_FOR_ALL):
        began = time.perf_counter()
        text = f"for-all-{number}-{began:.6f}"
        await _touch(admin, 99, text)
        lasts.append(await _seen_by_all(wanted, seen, text.encode()) - began)
    found["a change seen by all s, median"] = statistics.median(lasts)
    found["a change seen by all s, worst"] = max(lasts)
    found["CPU s for it"] = (_used(pid)[0] - used) / CHANGES_FOR_ALL
    found["MiB"] = _used(pid)[1]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return found


async def _listen(answer: aiohttp.ClientResponse, heard: list[bytes]) -> None:
    while piece := await answer.content.readany():
        heard.append(piece)


async def _seen_by_all(wanted: list[asyncio.Queue[bytes]], seen: list[float], text: bytes) -> float:
    seen.clear()
    for queue in wanted:
        queue.put_nowait(text)
    while len(seen) < len(wanted):
        await asyncio.sleep(0.05)
    return max(seen)


def run(size: Size) -> dict[str, Any]:
    answers: Queue[tuple[str, str]] = multiprocessing.get_context("spawn").Queue()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(size.clusters, answers))
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
            base = orjson.loads(dashboard.stdout.readline())["facts"]["dashboard"]
            try:
                return uvloop.run(_measure(size, kubeconfig, token, base, dashboard.pid))
            finally:
                dashboard.stdin.close()
                dashboard.wait(timeout=20)
    finally:
        server.kill()
        server.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=CLUSTERS)
    parser.add_argument("--pages", type=int, default=PAGES, help="open pages")
    parser.add_argument("--viewers", type=int, default=VIEWERS, help="viewers with a credential each")
    parser.add_argument("--rest", type=float, default=REST, help="seconds at rest")
    given = parser.parse_args()
    found = run(Size(given.clusters, given.pages, given.viewers, given.rest))
    print(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())


if __name__ == "__main__":
    main()
