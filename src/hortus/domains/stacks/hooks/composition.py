"""Puts the hook server together for a process that has a `Manager`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hortus.domains.stacks.addons.rendering import AddonReleases
from hortus.domains.stacks.flux.registry import ChartRegistry
from hortus.domains.stacks.hooks.certificates import SECRET
from hortus.domains.stacks.hooks.handling import HookHandler
from hortus.domains.stacks.hooks.registration import HookEndpoint, HookRegistration, following
from hortus.domains.stacks.hooks.settings import HookSettings
from hortus.domains.stacks.serving import HttpsServer, add_mounted, is_mounted
from hortus.engine import Change, Every, Manager, Watch
from hortus.engine.health import Address, parse_address
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube import Client
from hortus.kube.objects import Object, ObjectKey

NAME: Final = "clusterstack-hooks"
"""The controller's name in metrics and logs."""
_LOOK: Final = 3600.0
"""Seconds between two looks at the certificate: before the first there is no Secret that a watch could show."""


def add_hooks(
    manager: Manager,
    *,
    client: Client,
    releases: AddonReleases,
    address: Address,
    folder: Path,
    endpoint: HookEndpoint,
    config: str,
    namespace: str,
    charts: ChartRegistry | None = None,
) -> HttpsServer:
    """Add the server, and the controller of its certificate unless `folder` holds one."""
    server = hook_server(address, HookHandler(client, releases=releases, clock=manager.clock), charts)
    if is_mounted(folder):
        add_mounted(manager, "runtime hooks", server, folder)
        return server
    manager.add("runtime hooks", server.run, leader_only=False)
    secret = manager.cache(SECRETS, namespace=namespace, fields=f"metadata.name={SECRET}")
    registration = HookRegistration(client, endpoint=endpoint, config=config, namespace=namespace, clock=manager.clock)
    show = following(server.identify)

    def changed(change: Change) -> None:
        show(change.new)

    def to_key(found: Object) -> list[ObjectKey]:
        return [registration.key]

    secret.subscribe(changed)
    manager.controller(NAME, registration, sources=[Watch(secret, to=to_key), Every(_LOOK, lambda: [registration.key])])
    return server


def hook_server(address: Address, handler: HookHandler, charts: ChartRegistry | None = None) -> HttpsServer:
    """The server of the hooks, and of `charts` for Flux."""
    if charts is None:
        return HttpsServer("runtime hooks", address, handler.routes)
    reads = {"/v2{rest:.*}": charts.answer}
    return HttpsServer("runtime hooks", address, handler.routes, reads=reads, shown=charts.identify)


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
        )


def endpoint_of(settings: HookSettings) -> HookEndpoint:
    """The place at which the server is reached."""
    return HookEndpoint(settings.url, settings.service, settings.namespace)
