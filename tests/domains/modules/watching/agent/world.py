"""An agent with a control plane that records events, both on loopback with TLS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from aiohttp import web
from prometheus_client import CollectorRegistry
from tests.domains.modules.watching.certificates import authority, client, write_files

from hortus.domains.modules.watching.agent.buffer import EventBuffer
from hortus.domains.modules.watching.agent.metrics import AgentMetrics
from hortus.domains.modules.watching.agent.server import Agent, running
from hortus.domains.modules.watching.agent.settings import from_environment
from hortus.domains.modules.watching.authorities import IssuedPair
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.secret import Secret
from hortus.kube.tls import client_context, server_context

PATIENCE = 60.0


class ControlPlane:
    """A listener that asks for certificates of `ca`, and answers as the test wants."""

    def __init__(self, ca: IssuedPair) -> None:
        self.ca = ca
        self.events: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()
        self.refusals: list[web.Response] = []
        """Answers to give instead of the next ones."""
        self.attempts = 0
        self.subjects: list[str] = []
        self.port = 0
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen, at the port of before if there was one."""
        app = web.Application()
        app.router.add_post("/{contract}/{manager}/event", self._receive)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        context = server_context(
            certificate=self.ca.certificate, key=Secret(self.ca.key.decode()), client_ca=self.ca.certificate
        )
        await web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=context, reuse_address=True).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _receive(self, request: web.Request) -> web.Response:
        self.attempts += 1
        tls = request.transport.get_extra_info("ssl_object") if request.transport else None
        self.subjects.append(dict(pair[0] for pair in tls.getpeercert()["subject"])["commonName"])
        if self.refusals:
            return self.refusals.pop(0)
        self.events.put_nowait((request.path, orjson.loads(await request.read())))
        return web.Response()

    async def next(self) -> tuple[str, dict[str, Any]]:
        return await asyncio.wait_for(self.events.get(), PATIENCE)


class World:
    """An agent, its files, and the control plane that it reports to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca = authority()
        self.control = ControlPlane(self.ca)
        self.registry = CollectorRegistry()
        self.buffer_dir: Path | None = folder / "buffer"

    @property
    def environment(self) -> dict[str, str]:
        files = write_files(self.folder / "ssl", client(self.ca), ca=self.ca.certificate)
        more = {"BUFFER_DIR": str(self.buffer_dir)} if self.buffer_dir else {}
        return {
            **files,
            **more,
            "KCP_ADDR": f"127.0.0.1:{self.control.port}",
            "KCP_CONTRACT": "v2",
            "WEBHOOK_PORT": "0",
            "METRICS_PORT": "0",
            "BIND_HOST": "127.0.0.1",
        }

    @asynccontextmanager
    async def agent(self, *, clock: Clock | None = None, **more: str) -> AsyncIterator[Agent]:
        settings = from_environment({**self.environment, **more})
        buffer = EventBuffer(settings.buffer_dir, limit=settings.buffer_limit)
        self.registry = CollectorRegistry()
        metrics = AgentMetrics(buffer, self.registry)
        try:
            async with running(settings, metrics, buffer, clock=clock or SystemClock()) as agent:
                yield agent
        finally:
            buffer.close()

    def trusting(self) -> ssl.SSLContext:
        """The context of the API server that calls the webhook."""
        return client_context(ca=self.ca.certificate)

    async def review(self, port: int, body: bytes, *, manager: str = "lifecycle-manager") -> tuple[int, Any]:
        """Calls the webhook; returns status and answer."""
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"https://127.0.0.1:{port}/validate/{manager}", data=body, ssl=self.trusting()) as answer,
        ):
            text = await answer.read()
            return answer.status, orjson.loads(text) if answer.status == 200 else text.decode()

    def metric(self, name: str, labels: Mapping[str, str] | None = None) -> float:
        return self.registry.get_sample_value(name, dict(labels or {})) or 0.0


def review(operation: str = "CREATE", name: str = "default", **more: Any) -> bytes:
    """An AdmissionReview of a Kyma."""

    def kyma(spec: object = None) -> dict[str, Any]:
        return {
            "metadata": {"namespace": "kyma-system", "name": name},
            "spec": {"channel": "regular"} if spec is None else spec,
        }

    request: dict[str, Any] = {
        "uid": "u-1",
        "kind": {"group": "operator.kyma-project.io", "version": "v1beta2", "kind": "Kyma"},
        "operation": operation,
        "name": name,
        "object": None if operation == "DELETE" else kyma(),
        "oldObject": kyma() if operation in ("UPDATE", "DELETE") else None,
        **more,
    }
    return orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
