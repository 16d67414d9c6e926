"""Credentials that are renewed: by age, and after a rotation of the authority in an update in place."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.nodeagent.cluster import approved_request, settings_text
from tests.nodeagent.world import FOLDER, World

from hortus.engine.events import EventRecorder
from hortus.kube import Access, Client, ConnectionSettings, Credentials, Resource, Secret, SystemClock
from hortus.kube.errors import KubeError
from hortus.kube.kubeconfig import load
from hortus.nodeagent.cluster import COMPONENT, NODES, NodeView
from hortus.nodeagent.identity import (
    GROUP,
    KUBELET_BOOTSTRAP,
    KUBELET_OWN,
    certificate_for,
    until_renewed,
    validity_of,
    write_kubeconfig,
)
from hortus.nodeagent.node import AgentRestart
from hortus.nodeagent.nodeupdates import NodeUpdates
from hortus.nodeagent.seams import NodeFault
from hortus.nodeagent.settings import read
from hortus.nodeagent.tokens import TokenSync
from hortus.nodeagent.wire import LeanTransport
from hortus.testing import FakeClock
from hortus.testing.apiserver import TestServer, running_apiserver

KUBECONFIG = f"{FOLDER}/credentials/kubeconfig"
CA_FILE = f"{FOLDER}/cluster-ca.crt"
_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)


@pytest.fixture
async def server() -> AsyncIterator[TestServer]:
    async with running_apiserver() as found:
        yield found


@pytest.fixture
async def admin(server: TestServer) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(server.kubeconfig) as found:
        await found.create(
            _BINDINGS,
            {
                "apiVersion": _BINDINGS.api_version,
                "kind": _BINDINGS.kind,
                "metadata": {"name": "node-agents"},
                "subjects": [{"kind": "Group", "name": GROUP, "apiGroup": "rbac.authorization.k8s.io"}],
                "roleRef": {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"},
            },
        )
        yield found


def over(access: Access) -> Client:
    return Client.over(LeanTransport(access, settings=ConnectionSettings(), clock=SystemClock()))


@pytest.fixture
async def agent(server: TestServer, admin: Client, tmp_path: Path) -> AsyncIterator[tuple[Client, World]]:
    """A client with a certificate of an agent, and the node with its kubeconfig."""
    world = World(tmp_path)
    address = Access(server=server.cluster_url(), ca=server.ca, credentials=Credentials(token=Secret(server.token)))
    async with over(address) as first:
        work = asyncio.create_task(certificate_for(first, "machine-1", SystemClock()))
        await approved_request(admin)
        certificate, key = await work
    write_kubeconfig(world.files, KUBECONFIG, address, certificate, key)
    world.files.write(CA_FILE, server.ca, mode=0o644)
    async with over(load(world.files.at(KUBECONFIG)).access()) as client:
        yield client, world


async def test_the_certificate_of_the_agent_is_renewed_in_time_and_works(
    agent: tuple[Client, World], admin: Client
) -> None:
    client, world = agent
    old = client.access.credentials.certificate
    validity = await validity_of(old)
    assert validity is not None
    first, last = validity
    clock = FakeClock(now=first)
    loop = asyncio.create_task(until_renewed(client, world.files, KUBECONFIG, clock, machine="machine-1"))
    while not clock.sleepers:
        # The validity is read by another process.
        await asyncio.sleep(0)
    await clock.advance(0.799 * (last - first))
    assert load(world.files.at(KUBECONFIG)).access().credentials.certificate == old
    assert not loop.done()
    await clock.advance(0.082 * (last - first))
    request = await approved_request(admin)
    assert request["spec"]["username"] == "gardener.cloud:node-agent:machine:machine-1", "the old one asks for it"
    with pytest.raises(AgentRestart, match="the own certificate was renewed"):
        while True:
            await clock.advance(2)
            await asyncio.wait([loop], timeout=0.05)
            if loop.done():
                await loop
    access = load(world.files.at(KUBECONFIG)).access()
    assert access.credentials.certificate != old
    assert world.files.mode(KUBECONFIG) == 0o600
    async with over(access) as renewed:
        await renewed.list(NODES)


@contextlib.asynccontextmanager
async def updates_of(agent: tuple[Client, World], server: TestServer, admin: Client) -> AsyncIterator[NodeUpdates]:
    client, world = agent
    clock = SystemClock()
    place = f"apiServer: {{server: '{server.cluster_url()}', caFile: {CA_FILE}}}\n"
    settings = read(settings_text() + place)
    events = EventRecorder(client, component=COMPONENT, instance="node-1", clock=clock)
    view = NodeView(client, clock, hostname="node-1", name="node-1", events=events)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}
    view.learn(await admin.create(NODES, node))
    tokens = TokenSync(client, world.files, clock, (), period=3600, event=view.event)
    yield NodeUpdates(client, view, world.files, clock, tokens, machine="machine-1", settings=lambda: settings)


async def test_a_rotated_authority_gives_the_agent_a_certificate_that_works(
    agent: tuple[Client, World], server: TestServer, admin: Client
) -> None:
    client, world = agent
    async with updates_of(agent, server, admin) as updates:
        work = asyncio.create_task(updates.renew_agent())
        await approved_request(admin)
        await work
    access = load(world.files.at(KUBECONFIG)).access()
    assert access.credentials.certificate not in ("", client.access.credentials.certificate)
    assert access.ca == server.ca
    async with over(access) as renewed:
        assert (await renewed.get(NODES, "node-1"))["metadata"]["name"] == "node-1"


async def test_an_authority_that_is_not_the_servers_leaves_all_credentials_as_they_are(
    agent: tuple[Client, World], server: TestServer, admin: Client
) -> None:
    client, world = agent
    certificate, key = client.access.credentials.certificate, client.access.credentials.key
    assert key is not None
    world.files.write(KUBELET_OWN[1], certificate + key.reveal().encode(), mode=0o600)
    async with running_apiserver() as other:
        world.files.write(CA_FILE, other.ca, mode=0o644)
    before = world.tree()
    async with updates_of(agent, server, admin) as updates:
        for attempt in (updates.renew_agent, updates.write_kubelet_bootstrap):
            with pytest.raises(KubeError, match="TLS failed"):
                await attempt()
    assert world.tree() == before


async def test_the_kubelet_gets_its_own_certificate_to_request_another_one_with(
    agent: tuple[Client, World], server: TestServer, admin: Client
) -> None:
    client, world = agent
    certificate, key = client.access.credentials.certificate, client.access.credentials.key
    assert key is not None
    async with updates_of(agent, server, admin) as updates:
        with pytest.raises(NodeFault, match=r"kubelet-client-current\.pem is missing"):
            await updates.write_kubelet_bootstrap()
        world.files.write(KUBELET_OWN[1], certificate + key.reveal().encode(), mode=0o600)
        await updates.write_kubelet_bootstrap()
    assert world.files.mode(KUBELET_BOOTSTRAP) == 0o600
    async with over(load(world.files.at(KUBELET_BOOTSTRAP)).access()) as kubelet:
        await kubelet.get(NODES, "node-1")
