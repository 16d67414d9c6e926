"""A simulated garden at work: API server and controllers, each in a thread and loop of its own, over real sockets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hortus.apiserver import ApiServerSettings
from hortus.apiserver.authn import UserInfo
from hortus.apiserver.authz import Attributes
from hortus.domains.credentials.types import GardenerCluster
from hortus.engine import Manager
from hortus.kube import Client, ConnectionSettings, Resource
from hortus.kube.access import Access, Credentials, Secret
from hortus.kube.clock import SystemClock
from hortus.schema import crd
from hortus.simulation.faults import Faults
from hortus.simulation.garden.admission import ShootAdmission
from hortus.simulation.garden.composition import add_controllers
from hortus.simulation.garden.content import ensure_content
from hortus.simulation.garden.definitions import definitions
from hortus.simulation.garden.hibernation import AGENT, Hibernation
from hortus.simulation.garden.issuing import ClusterIssuer
from hortus.simulation.garden.kubeconfigs import Issued, Kubeconfigs
from hortus.simulation.settings import GardenSettings
from hortus.testing.apiserver import TestServer, started_apiserver

CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NAMESPACE = "garden-demo"
PATIENCE = 60.0


class _Bound:
    """The server that the kubeconfig handlers use; it is created after them."""

    server: TestServer

    async def issue(self, cluster: str, *, username: str, group: str, seconds: int) -> Issued:
        issuer = ClusterIssuer(self.server.server.clusters)
        return await issuer.issue(cluster, username=username, group=group, seconds=seconds)

    async def allowed(self, user: UserInfo, verb: str, group: str, resource: str) -> bool:
        asked = Attributes("garden", user, verb, group=group, resource=resource)
        return (await self.server.server.authorizer.authorize(asked)).allowed


@contextmanager
def started_garden(
    settings: GardenSettings, folder: Path | None = None, *, served: ApiServerSettings | None = None
) -> Iterator[TestServer]:
    """The API server alone: management cluster, and the garden's kinds in the logical cluster `garden`."""
    bound = _Bound()
    kubeconfigs = Kubeconfigs(bound, bound.allowed, Faults(settings.faults), settings, SystemClock())
    admission = ShootAdmission("garden", settings, SystemClock())
    kinds = {"garden": definitions(kubeconfigs.handlers(), mutate=admission.mutate)}
    with started_apiserver(extensions=kinds, folder=folder, settings=served, admission=[admission]) as server:
        bound.server = server
        admission.read_from(server.server.context.storage)
        hibernation = Hibernation(server.server, "garden")
        server.run(hibernation.start())
        server.server.intercept(hibernation)
        yield server


@contextmanager
def simulated(server: TestServer, settings: GardenSettings, *, url: str = "") -> Iterator[None]:
    """Scheduler, gardenlet, care and fleet at work on it. `url` is where clusters are said to be."""
    garden, management = server.kubeconfig_for("garden"), server.kubeconfig_for("root")
    credentials = Credentials(token=Secret(server.token_everywhere))
    access = Access(server=server.url, ca=server.ca, credentials=credentials)
    ready, stop = threading.Event(), asyncio.Event()
    failed: list[BaseException] = []
    loop = asyncio.new_event_loop()

    async def work() -> None:
        async with Client.from_kubeconfig(garden) as client, Client.from_kubeconfig(management) as other:
            await other.apply(CRDS, crd(GardenerCluster), field_manager="tests")
            await ensure_content(client, settings.project, SystemClock().now(), seed_capacity=settings.seed_capacity)
            everywhere = Client(access, settings=ConnectionSettings(user_agent=AGENT))
            manager = Manager(client, grace=1.0)
            add_controllers(
                manager, garden=client, management=everywhere, server_url=url or server.url, settings=settings
            )
            async with everywhere, manager.running():
                ready.set()
                await stop.wait()

    def run() -> None:
        try:
            loop.run_until_complete(work())
        except BaseException as error:
            failed.append(error)
        finally:
            ready.set()
            loop.close()

    thread = threading.Thread(target=run, name="garden", daemon=True)
    thread.start()
    assert ready.wait(PATIENCE)
    try:
        if not failed:
            yield
    finally:
        if not loop.is_closed():
            loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE)
    if failed:
        raise failed[0]
