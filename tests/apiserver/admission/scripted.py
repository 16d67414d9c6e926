"""A webhook server on loopback with an authority of its own, whose answers the test scripts."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web
from tests.kube.certificates import issue, server_context

from hortus.apiserver.accepting import Acceptor
from hortus.apiserver.connection import Listener
from hortus.apiserver.limits import ServerLimits

Answer = Callable[[dict[str, Any]], Any]
"""From the `request` of a review to the `response` without its uid, or a whole web.Response."""


class Webhook:
    """`asked` are the requests it was sent, as (path, review) in order."""

    def __init__(self, ca: bytes) -> None:
        self.ca = base64.b64encode(ca).decode()
        self.port = 0
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, Answer] = {}
        self.queries: list[str] = []
        self.released = asyncio.Event()

    def client(self, path: str, answer: Answer) -> dict[str, Any]:
        """The clientConfig of a webhook that answers so."""
        self.answers[path] = answer
        return {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": self.ca}

    def requests(self, path: str) -> list[dict[str, Any]]:
        return [review["request"] for asked, review in self.asked if asked == path]

    async def hang(self) -> dict[str, Any]:
        """Until the test is over."""
        await self.released.wait()
        return {"allowed": False}

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        review = orjson.loads(await request.read())
        self.asked.append((request.path, review))
        self.queries.append(request.query_string)
        answer = self.answers[request.path](review["request"])
        if asyncio.iscoroutine(answer):
            answer = await answer
        if isinstance(answer, web.StreamResponse):
            return answer
        body = {**review, "response": {"uid": review["request"]["uid"], **answer}}
        del body["request"]
        return web.json_response(body)


@contextlib.asynccontextmanager
async def scripted_webhook(
    folder: Path, *, serving: tuple[ssl.SSLContext, bytes] | None = None
) -> AsyncIterator[Webhook]:
    """`serving` is the server's TLS and the bundle to verify it with, where the certificates matter."""
    if serving is None:
        authority = issue("webhook authority", ca=True)
        pair = issue("127.0.0.1", authority, addresses=("127.0.0.1",))
        serving = server_context(folder, pair), authority.pem
    hook = Webhook(serving[1])
    listener = Listener(hook.handle, ServerLimits())
    listening = socket.create_server(("127.0.0.1", 0))
    hook.port = listening.getsockname()[1]
    # asyncio's own server forgets connections that are still at their handshake when it is closed.
    acceptor = Acceptor(listening, serving[0], listener, 1_000)
    acceptor.open()
    try:
        yield hook
    finally:
        await acceptor.close()
        # Nobody is there any more to answer TLS's farewell, and the test's loop ends before its time is up.
        for transport in list(listener.transports):
            transport.abort()
        hook.released.set()
        await listener.end(0.5)
        await asyncio.sleep(0)


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    """A response that allows and patches."""
    return {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(orjson.dumps(list(operations))).decode(),
    }


def rule(**changes: Any) -> dict[str, Any]:
    """Config maps and secrets being created or updated, unless said otherwise."""
    found = {
        "operations": ["CREATE", "UPDATE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["configmaps", "secrets"],
    }
    return found | changes


def webhook(name: str, client: dict[str, Any], namespace: str, **more: Any) -> dict[str, Any]:
    """One webhook for one namespace."""
    return {
        "name": name,
        "clientConfig": client,
        "rules": [rule()],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        **more,
    }


def configuration(kind: str, name: str, *hooks: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": list(hooks),
    }
