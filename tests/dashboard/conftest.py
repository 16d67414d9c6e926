"""A management cluster without controllers, a dashboard before it, and browsers that speak through sockets."""

from __future__ import annotations

import asyncio
import html
import re
import socket
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
import aiohttp.abc
import orjson
import pytest
from yarl import URL

from hortus.dashboard.server import COOKIE, Dashboard
from hortus.dashboard.serving import listening, origins_of, own_origin, settings_for
from hortus.domains import all_domains, free_port
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine.rollouts.types import ROLLOUTS
from hortus.kube import Access, Client, Resource
from hortus.kube.clock import Clock
from hortus.kube.kubeconfig import load
from hortus.kube.objects import Object
from hortus.schema import crd
from hortus.testing.apiserver import TestServer, started_apiserver

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
HOME = "kcp-system"
FLEET = "fleet"
_CSRF = re.compile(r'name="csrf" value="([^"]+)"')
_HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')
PATIENCE = 20.0
"""Seconds after which an event that does not come fails a test."""


class Reply(NamedTuple):
    status: int
    text: str
    headers: Mapping[str, str]

    @property
    def json(self) -> Any:
        return orjson.loads(self.text)

    @property
    def csrf(self) -> str:
        found = _CSRF.search(self.text)
        assert found is not None, self.text
        return found[1]

    def form(self, action: str) -> dict[str, str]:
        """The fields of the button for an action, as a browser sends them."""
        found = re.search(rf'<form[^>]* action="[^"]*/{action}(\?[^"]*)?"[^>]*>(.*?)</form>', self.text, re.DOTALL)
        assert found is not None, self.text
        return {html.unescape(name): html.unescape(value) for name, value in _HIDDEN.findall(found[2])}


class Browser:
    """One person's browser: a cookie, and requests as a browser sends them."""

    def __init__(self, session: aiohttp.ClientSession, base: str) -> None:
        self.base = base
        self.cookie = ""
        self._session = session

    async def get(self, path: str, **headers: str) -> Reply:
        return await self._ask("GET", path, None, headers)

    async def post(self, path: str, form: Mapping[str, str], **headers: str) -> Reply:
        return await self._ask("POST", path, form, {"Origin": self.base, **headers})

    async def document(self, path: str) -> Any:
        reply = await self.get(path, Accept="application/json")
        assert reply.status == 200, reply.text
        return reply.json

    async def sign_in(self, token: str, next: str = "/clusters") -> Reply:
        reply = await self.post("/login", {"token": token, "next": next})
        cookie = reply.headers.get("Set-Cookie", "")
        self.cookie = cookie.partition(";")[0].partition("=")[2] if reply.status == 303 else ""
        return reply

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncIterator[AsyncIterator[tuple[str, Any]]]:
        """The events of a page."""
        url = URL(self.base).with_path("/stream").with_query(at=path, have="")
        async with self._session.get(url, headers=self._headers({})) as answer:
            assert answer.status == 200, await answer.text()
            yield _events(answer)

    async def _ask(self, method: str, path: str, form: Mapping[str, str] | None, headers: Mapping[str, str]) -> Reply:
        url = URL(self.base + path, encoded=True)
        sent = self._headers(headers)
        async with self._session.request(method, url, data=form, headers=sent, allow_redirects=False) as answer:
            return Reply(answer.status, await answer.text(), answer.headers)

    def _headers(self, given: Mapping[str, str]) -> dict[str, str]:
        return {**({"Cookie": f"{COOKIE}={self.cookie}"} if self.cookie else {}), **given}


async def _events(answer: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, Any]]:
    name = ""
    async for line in answer.content:
        text = line.decode().rstrip("\n")
        if text.startswith("event: "):
            name = text.removeprefix("event: ")
        elif text.startswith("data: "):
            yield name, orjson.loads(text.removeprefix("data: "))


class World(NamedTuple):
    server: TestServer
    admin: Client
    dashboard: Dashboard
    base: str
    session: aiohttp.ClientSession

    def browser(self) -> Browser:
        return Browser(self.session, self.base)

    async def signed_in(self, token: str = "") -> Browser:
        browser = self.browser()
        reply = await browser.sign_in(token or self.server.token)
        assert reply.status == 303, reply.text
        return browser

    async def account(self, name: str, rules: Sequence[Object] = (), *, namespace: str = "") -> str:
        """The token of an account with these rules, in one namespace or in all."""
        who = [{"kind": "ServiceAccount", "name": name, "namespace": HOME}]
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        await self.admin.create(ACCOUNTS, {"metadata": {"name": name, "namespace": HOME}})
        if rules:
            await self.admin.create(CLUSTER_ROLES, {"metadata": {"name": name}, "rules": list(rules)})
            kind = BINDINGS if namespace else CLUSTER_BINDINGS
            metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
            await self.admin.create(kind, {"metadata": metadata, "subjects": who, "roleRef": role})
        spec = {"spec": {"expirationSeconds": 3600}}
        issued = await self.admin.create_subresource(ACCOUNTS, name, "token", spec, HOME)
        return str(issued["status"]["token"])


@pytest.fixture(scope="session")
def apiserver() -> Iterator[TestServer]:
    with started_apiserver() as server:
        asyncio.run(_install(server))
        yield server


async def _install(server: TestServer) -> None:
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        for kind in (kind for domain in all_domains() for kind in domain.kinds().values()):
            await client.apply(CRDS, crd(kind), field_manager="tests")
        for namespace in (HOME, FLEET):
            await client.create(NAMESPACES, {"metadata": {"name": namespace}})


@asynccontextmanager
async def dashboard_of(access: Access, *, clock: Clock | None = None) -> AsyncIterator[tuple[Dashboard, str]]:
    """A dashboard on loopback, and its address."""
    port = free_port()
    own = own_origin(port)
    dashboard = Dashboard(settings_for(access, origins_of(own)), clock=clock)
    async with listening(dashboard, host="127.0.0.1", port=port):
        yield dashboard, own


class Loopback(aiohttp.abc.AbstractResolver):
    """Resolves names as browsers do: those under .localhost are loopback."""

    async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> list[Any]:
        assert host.endswith(".localhost"), host
        found = {"hostname": host, "host": "127.0.0.1", "port": port}
        return [{**found, "family": socket.AF_INET, "proto": 0, "flags": socket.AI_NUMERICHOST}]

    async def close(self) -> None:
        pass


def browsers(limit: int = 100) -> aiohttp.ClientSession:
    """The sockets of any number of browsers; 0 for as many as they like."""
    connector = aiohttp.TCPConnector(limit=limit, resolver=Loopback())
    return aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), connector=connector)


@pytest.fixture
async def world(apiserver: TestServer) -> AsyncIterator[World]:
    """All clusters, rollouts and accounts that a test makes are gone after it."""
    access = load(apiserver.kubeconfig).access()
    async with (
        Client(access) as admin,
        dashboard_of(access) as (dashboard, base),
        browsers() as session,
    ):
        yield World(apiserver, admin, dashboard, base, session)
        for resource in (GARDENER_CLUSTERS, ROLLOUTS, ACCOUNTS, BINDINGS):
            for place in (HOME, FLEET):
                await admin.delete_collection(resource, place)
        for one in (await admin.list(CLUSTER_BINDINGS)).items + (await admin.list(CLUSTER_ROLES)).items:
            if not one["metadata"]["name"].startswith(("system:", "cluster-admin", "admin", "edit", "view")):
                kind = CLUSTER_ROLES if "rules" in one else CLUSTER_BINDINGS
                await admin.delete(kind, one["metadata"]["name"])


def gardener_cluster(name: str, **labels: str) -> Object:
    return {
        "apiVersion": GARDENER_CLUSTERS.api_version,
        "kind": GARDENER_CLUSTERS.kind,
        "metadata": {"name": name, "namespace": HOME, "labels": labels},
        "spec": {
            "shoot": {"name": name},
            "kubeconfig": {"secret": {"name": f"kubeconfig-{name}", "namespace": HOME, "key": "config"}},
        },
    }


async def make_cluster(admin: Client, name: str, state: str = "Ready", message: str = "Fine.", **labels: str) -> None:
    await admin.create(GARDENER_CLUSTERS, gardener_cluster(name, **labels))
    await set_state(admin, name, state, message)


async def set_state(admin: Client, name: str, state: str, message: str) -> None:
    condition = {
        "type": "KubeconfigManagement",
        "status": "True" if state == "Ready" else "False",
        "reason": "KubeconfigSecretCreated" if state == "Ready" else "FailedToGetKubeconfig",
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {"status": {"state": state, "conditions": [condition]}}
    await admin.patch(GARDENER_CLUSTERS, name, status, HOME, subresource="status")


async def make_rollout(admin: Client, name: str, message: str = "stage one waits for approval") -> None:
    change = {"kind": "kubernetes", "subject": "kubernetes", "to": "1.35.0"}
    body = {"metadata": {"name": name, "namespace": FLEET}, "spec": {"change": change}}
    await admin.create(ROLLOUTS, {"apiVersion": ROLLOUTS.api_version, "kind": ROLLOUTS.kind, **body})
    condition = {
        "type": "Progressing",
        "status": "True",
        "reason": "Progressing",
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    stage = {"name": "one", "clusters": 10, "succeeded": 4, "running": 2, "failed": 1, "pending": 3}
    failure = {"cluster": "ill", "stage": "one", "message": "the version is <b>unknown</b>"}
    status = {"phase": "Progressing", "stage": "one", "stages": [stage], "failures": [failure]}
    await admin.patch(ROLLOUTS, name, {"status": {**status, "conditions": [condition]}}, FLEET, subresource="status")
