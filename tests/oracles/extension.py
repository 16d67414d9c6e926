"""Aggregated API servers for tests: published programs built with k8s.io/apiserver, behind a server by aggregation.

    with running_extension(binary, folder, server, SAMPLE) as extension:
        ...  # kubectl get flunders, through `server`

`server` is an embedded API server or a real kube-apiserver. The program delegates authentication and authorization to
it, keeps its objects in an etcd of its own, and is registered by APIServices that lead to a Service of type
ExternalName, which both kinds of server follow to this machine without a cluster network.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from tests.apiserver.store.etcdserver import find_etcd, free_port, running_etcd
from tests.apiserver.wire import Wire, connected

from hortus.engine.serving import self_signed
from hortus.kube.objects import Object

_PATIENCE = 120.0
"""Seconds after which a program that does not become available fails the tests that wait for it."""


class Aggregator(Protocol):
    """A server that aggregates, as tests know it: TestServer and RealServer."""

    @property
    def url(self) -> str: ...

    @property
    def token(self) -> str: ...

    @property
    def kubeconfig(self) -> Path: ...

    def tls(self) -> ssl.SSLContext: ...


class Extension(NamedTuple):
    """A program that serves `versions` (pairs of group and version) behind the Service `namespace`/`service`."""

    namespace: str
    service: str
    versions: Sequence[tuple[str, str]]
    flags: Sequence[str] = ()
    priority: int = 2000
    version_priority: int = 10


SAMPLE = Extension(
    "wardle", "sample-apiserver", [("wardle.example.com", "v1alpha1"), ("wardle.example.com", "v1beta1")]
)
"""k8s.io/sample-apiserver: flunders and fischers."""


class RunningExtension(NamedTuple):
    pid: int
    port: int
    log: Path
    etcd: str
    """The address of its store."""


@contextmanager
def running_extension(
    binary: Path, folder: Path, server: Aggregator, extension: Extension
) -> Iterator[RunningExtension]:
    """Starts etcd and the program, registers it, and waits until its APIServices are available."""
    etcd = find_etcd()
    assert etcd is not None, "no etcd here: run `make oracles`"
    store, port = free_port(), free_port()
    folder.mkdir(parents=True, exist_ok=True)
    pair = self_signed([f"{extension.service}.{extension.namespace}.svc", "localhost"], now=time.time())
    certificate, key, log = folder / "serving.crt", folder / "serving.key", folder / "extension.log"
    certificate.write_bytes(pair.certificate)
    key.touch(0o600)
    key.write_text(pair.key.reveal())
    kubeconfig = str(server.kubeconfig)
    command = [
        str(binary),
        f"--etcd-servers=http://127.0.0.1:{store}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--tls-cert-file={certificate}",
        f"--tls-private-key-file={key}",
        *(f"--{role}-kubeconfig={kubeconfig}" for role in ("authentication", "authorization")),
        f"--kubeconfig={kubeconfig}",
        *extension.flags,
    ]
    with ExitStack() as stack:
        stack.enter_context(running_etcd(etcd, folder / "etcd", store))
        asyncio.run(_with_wire(server, lambda wire: _register(wire, extension, pair.bundle, port)))
        process = stack.enter_context(_running(command, log))
        try:
            asyncio.run(_with_wire(server, lambda wire: _until_available(wire, extension, process, log)))
            yield RunningExtension(process.pid, port, log, f"http://127.0.0.1:{store}")
        finally:
            asyncio.run(_with_wire(server, lambda wire: _unregister(wire, extension)))


def registrations(extension: Extension, ca: bytes, port: int) -> Iterator[tuple[str, Object]]:
    """The objects that lead a server to the program at `port` of this machine, with the paths of their collections."""
    yield "/api/v1/namespaces", {"metadata": {"name": extension.namespace}}
    yield (
        f"/api/v1/namespaces/{extension.namespace}/services",
        {"metadata": {"name": extension.service}, "spec": {"type": "ExternalName", "externalName": "localhost"}},
    )
    for group, version in extension.versions:
        yield "/apis/apiregistration.k8s.io/v1/apiservices", apiservice(extension, group, version, ca, port)


def apiservice(extension: Extension, group: str, version: str, ca: bytes, port: int) -> Object:
    return {
        "metadata": {"name": f"{version}.{group}"},
        "spec": {
            "group": group,
            "version": version,
            "service": {"namespace": extension.namespace, "name": extension.service, "port": port},
            "caBundle": base64.b64encode(ca).decode(),
            "groupPriorityMinimum": extension.priority,
            "versionPriority": extension.version_priority,
        },
    }


async def _with_wire(server: Aggregator, step: Callable[[Wire], Awaitable[None]]) -> None:
    async with connected(server.url, server.token, server.tls()) as wire:
        await step(wire)


async def _register(wire: Wire, extension: Extension, ca: bytes, port: int) -> None:
    for collection, obj in registrations(extension, ca, port):
        made = await wire.post(collection, obj)
        assert made.code in (201, 409), made


async def _unregister(wire: Wire, extension: Extension) -> None:
    for group, version in extension.versions:
        await wire.delete(f"/apis/apiregistration.k8s.io/v1/apiservices/{version}.{group}")
    await wire.delete(f"/api/v1/namespaces/{extension.namespace}")


async def _until_available(wire: Wire, extension: Extension, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    for group, version in extension.versions:
        while True:
            found = await wire.get(f"/apis/apiregistration.k8s.io/v1/apiservices/{version}.{group}")
            conditions = found.body.get("status", {}).get("conditions") or ()
            available = any(each["type"] == "Available" and each["status"] == "True" for each in conditions)
            # kube-apiserver lets requests pass a moment after it has written the condition.
            if available and (await wire.get(f"/apis/{group}/{version}")).code == 200:
                break
            tail = log.read_text()[-3000:]
            assert process.poll() is None, f"the program has ended:\n{tail}"
            assert time.monotonic() < deadline, f"{version}.{group} is not available: {conditions}\n{tail}"
            await asyncio.sleep(0.1)


@contextmanager
def _running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as written, subprocess.Popen(command, stdout=written, stderr=written) as process:
        try:
            yield process
        finally:
            process.kill()
