"""Puts the hook server together for a process that has a `Manager`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hortus.domains.stacks.addons.rendering import AddonReleases
from hortus.domains.stacks.flux.registry import ChartRegistry
from hortus.domains.stacks.hooks.handling import HookHandler
from hortus.domains.stacks.hooks.registration import MANAGER, extension_trust
from hortus.domains.stacks.hooks.settings import HookSettings
from hortus.engine import Manager
from hortus.engine.health import Address, parse_address
from hortus.engine.serving import CertificateKeeper, HttpsServer, KnownClients, ServingEndpoint, add_served
from hortus.kube import Client
from hortus.kube.objects import ObjectKey

NAME: Final = "clusterstack-hooks"
"""The controller's name in metrics and logs."""
SECRET: Final = "hortus-stacks-hooks"  # noqa: S105 - the name of an object


def add_hooks(
    manager: Manager,
    *,
    client: Client,
    releases: AddonReleases,
    address: Address,
    folder: Path,
    endpoint: ServingEndpoint,
    config: str,
    namespace: str,
    charts: ChartRegistry | None = None,
    clients: KnownClients | None = None,
) -> HttpsServer:
    """Add the server, and the controller of its certificate unless `folder` holds one."""
    server = hook_server(address, HookHandler(client, releases=releases, clock=manager.clock), charts, clients)
    keeper = CertificateKeeper(
        client,
        key=ObjectKey(namespace, SECRET),
        names=endpoint.names(),
        trust=extension_trust(client, config=config, endpoint=endpoint),
        field_manager=MANAGER,
        clock=manager.clock,
    )
    add_served(manager, server, name=NAME, folder=folder, keeper=keeper)
    return server


def hook_server(
    address: Address,
    handler: HookHandler,
    charts: ChartRegistry | None = None,
    clients: KnownClients | None = None,
) -> HttpsServer:
    """The server of the hooks for `clients`, and of `charts` for Flux."""
    if charts is None:
        return HttpsServer("runtime-hooks", address, handler.routes, clients=clients)
    reads = {"/v2{rest:.*}": charts.answer}
    return HttpsServer("runtime-hooks", address, handler.routes, reads=reads, shown=charts.identify, clients=clients)


def add_configured(
    manager: Manager,
    *,
    client: Client,
    releases: AddonReleases,
    settings: HookSettings,
    charts: ChartRegistry | None = None,
) -> None:
    """Add the server that flags ask for. It serves `charts` to Flux as well."""
    address = parse_address(settings.address)
    if address is not None:
        add_hooks(
            manager,
            client=client,
            releases=releases,
            address=address,
            folder=settings.folder,
            endpoint=endpoint_of(settings),
            config=settings.extension_config,
            namespace=settings.namespace,
            charts=charts,
            clients=KnownClients.named(settings.client_ca_file, settings.client_names),
        )


def endpoint_of(settings: HookSettings) -> ServingEndpoint:
    """The place at which the server is reached."""
    return ServingEndpoint(settings.url, settings.service, settings.namespace)
