"""Puts the watcher together for a process that has a `Manager`: listener, authority, Watchers, and the installer.

watcher = add_watcher(manager, client=client, kymas=kymas, settings=settings)
watcher.installer                        # for the steps of the Kyma controller
sources=[*watcher.sources, ...]          # events of clusters reconcile their Kymas
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import NamedTuple

from hortus.domains.modules.names import GATEWAY_SECRET, ROOT_SECRET, FieldOwner, Label
from hortus.domains.modules.types import WATCHERS, Kyma, Watcher
from hortus.domains.modules.watching.certificates import (
    CertificateIssuer,
    OrderedCertificates,
    SelfIssuedCertificates,
    resource_of_api,
)
from hortus.domains.modules.watching.controller import DirectWatcherController, WatcherController
from hortus.domains.modules.watching.gateways import GATEWAYS, DirectAddress, GatewayAddress, ListenerAddress
from hortus.domains.modules.watching.health import WatcherHealth
from hortus.domains.modules.watching.installation import WebhookInstaller
from hortus.domains.modules.watching.listener import EventListener
from hortus.domains.modules.watching.metrics import WatcherMetrics
from hortus.domains.modules.watching.receiving import EventReceiver
from hortus.domains.modules.watching.rotation import NAME as ROTATION
from hortus.domains.modules.watching.rotation import GatewaySecretController
from hortus.domains.modules.watching.routing import EventRouter
from hortus.domains.modules.watching.secrets import (
    PURPOSE,
    CertificateSecret,
    outline,
    outline_with_bundle,
    read_outline,
)
from hortus.domains.modules.watching.serving import DirectListenerRun, ListenerRun
from hortus.domains.modules.watching.settings import SELF, WatcherSettings
from hortus.engine import (
    Cache,
    EventRecorder,
    Every,
    Manager,
    Source,
    Trigger,
    TypedCache,
    Watch,
    by_label,
    managed_fields_of,
    read,
    sources_of,
    wire,
    without_managed_fields,
)
from hortus.engine.deputies import Deputies
from hortus.engine.health import parse_address
from hortus.engine.remote import SECRETS
from hortus.kube import Client
from hortus.kube.objects import Object, ObjectKey

NAME = "watcher"
"""The controller's name in metrics, logs and events."""
_BY_RUNTIME = "runtime-id"


class WatcherParts(NamedTuple):
    """The parts that the Kyma controller uses."""

    installer: WebhookInstaller
    sources: Sequence[Source]
    """Events of clusters, as keys of Kymas."""
    listener: ListenerRun | None
    """The listener; None where --kyma-skr-listener-bind-address is 0."""


class CachedSecrets:
    """The gateway's Secret and those of agents, by their caches."""

    def __init__(self, gateway: Cache, agents: Cache, namespace: str) -> None:
        self._gateway = gateway
        self._agents = agents
        self._namespace = namespace

    def outline(self) -> CertificateSecret | None:
        found = self._gateway.get(ObjectKey(self._namespace, GATEWAY_SECRET))
        return None if found is None else read_outline(found)

    def agent(self, name: str) -> CertificateSecret | None:
        found = self._agents.get(ObjectKey(self._namespace, name))
        return None if found is None else read_outline(found)

    def bundle(self) -> str:
        """The authorities that are trusted, PEM; empty before there are any."""
        found = self.outline()
        return "" if found is None else found.bundle


def add_watcher(
    manager: Manager, *, client: Client, kymas: Cache, deputies: Deputies, settings: WatcherSettings
) -> WatcherParts:
    """Add all of it. `client` is the control plane, `kymas` the cache of its Kymas."""
    metrics = WatcherMetrics(manager.registry)
    health = WatcherHealth(every=settings.probe_every, namespace=settings.namespace, clock=manager.clock)
    metrics.watch(health.counts)
    events = EventRecorder(client, component=FieldOwner.LIFECYCLE, clock=manager.clock)
    manager.add_server(events)
    trigger = Trigger()
    watchers = manager.cache(WATCHERS, namespace=settings.control_namespace, transform=without_managed_fields)
    gateways = None if settings.direct_address else manager.cache(GATEWAYS, namespace=settings.gateway_namespace)
    secrets = _secrets(manager, settings)
    installer = WebhookInstaller(
        client,
        deputies=deputies,
        settings=settings,
        watchers=lambda: [read(Watcher, one) for one in watchers.values()],
        issuer=_issuer(manager, client, settings),
        authority=secrets,
        address=_address(gateways, settings),
        health=health,
        metrics=metrics,
        events=events,
        clock=manager.clock,
    )
    manager.on_handover(installer.shed)
    listener = None
    if settings.enabled:
        _add_rotation(manager, client, settings, metrics)
        _add_controller(manager, client, deputies, settings, gateways, events)
        listener = _add_listener(manager, client, settings, secrets, kymas, health, trigger, metrics)
    return WatcherParts(installer, (trigger,), listener)


def _secrets(manager: Manager, settings: WatcherSettings) -> CachedSecrets:
    namespace = settings.certificates.namespace
    return CachedSecrets(
        _gateway_cache(manager, settings),
        manager.cache(SECRETS, namespace=namespace, labels=f"{Label.PURPOSE}={PURPOSE}", transform=outline),
        namespace,
    )


def _gateway_cache(manager: Manager, settings: WatcherSettings) -> Cache:
    return manager.cache(
        SECRETS,
        namespace=settings.certificates.namespace,
        fields=f"metadata.name={GATEWAY_SECRET}",
        transform=outline_with_bundle,
    )


def _issuer(manager: Manager, client: Client, settings: WatcherSettings) -> CertificateIssuer:
    certificates = settings.certificates
    if certificates.api == SELF or not settings.enabled:
        agents = manager.cache(
            SECRETS, namespace=certificates.namespace, labels=f"{Label.PURPOSE}={PURPOSE}", transform=outline
        )
        return SelfIssuedCertificates(client, agents, certificates, clock=manager.clock)
    cache = manager.cache(
        resource_of_api(certificates.api),
        namespace=certificates.namespace,
        transform=managed_fields_of(FieldOwner.UNMANAGED),
    )
    return OrderedCertificates(client, cache, certificates, clock=manager.clock)


def _address(gateways: Cache | None, settings: WatcherSettings) -> ListenerAddress:
    return DirectAddress(settings.direct_address) if gateways is None else GatewayAddress(gateways, settings)


def _add_rotation(manager: Manager, client: Client, settings: WatcherSettings, metrics: WatcherMetrics) -> None:
    controller = GatewaySecretController(client, settings=settings, metrics=metrics, clock=manager.clock)
    namespace = settings.certificates.namespace
    root = manager.cache(SECRETS, namespace=namespace, fields=f"metadata.name={ROOT_SECRET}", transform=outline)

    def to_key(secret: Object) -> list[ObjectKey]:
        return [controller.key]

    manager.controller(
        ROTATION,
        controller,
        sources=[
            Watch(root, to=to_key),
            Watch(_gateway_cache(manager, settings), to=to_key),
            # Before the first run there is no Secret that a watch could show.
            Every(settings.certificates.look_every, lambda: [controller.key]),
        ],
    )


def _add_controller(
    manager: Manager,
    client: Client,
    deputies: Deputies,
    settings: WatcherSettings,
    gateways: Cache | None,
    events: EventRecorder,
) -> None:
    kind = WatcherController if gateways is not None else DirectWatcherController
    wiring = wire(manager, kind, client=client, events=events, namespace=settings.control_namespace)
    controller = kind(wiring, gateways=gateways, deputies=deputies, settings=settings)
    sources: list[Source] = [*sources_of(wiring)]
    if gateways is not None:
        sources.insert(0, Watch(gateways, to=controller.keys))
    manager.controller(NAME, controller, sources=sources, workers=settings.workers)


def _add_listener(
    manager: Manager,
    client: Client,
    settings: WatcherSettings,
    secrets: CachedSecrets,
    kymas: Cache,
    health: WatcherHealth,
    trigger: Trigger,
    metrics: WatcherMetrics,
) -> ListenerRun | None:
    address = parse_address(settings.bind_address)
    if address is None:
        return None
    kymas.add_index(_BY_RUNTIME, by_label(Label.RUNTIME_ID))
    router = EventRouter(client, health=health, trigger=trigger, holds=manager.holds, clock=manager.clock)
    router.follow(kymas)
    typed = TypedCache(Kyma, kymas)
    receiver = EventReceiver(
        kymas=lambda runtime: typed.by(_BY_RUNTIME, runtime),
        bundle=secrets.bundle,
        accept=router.accept,
        metrics=metrics,
        clock=manager.clock,
    )

    def make(tls: ssl.SSLContext | None) -> EventListener:
        return EventListener(address, receiver, metrics, clock=manager.clock, tls=tls)

    run = ListenerRun(make)
    if settings.direct_address:
        run = DirectListenerRun(
            make,
            client=client,
            gateway=_gateway_cache(manager, settings),
            namespace=settings.certificates.namespace,
            clock=manager.clock,
        )
    # With shards each replica serves, and hands events to the owner; otherwise the leader alone does.
    manager.add("watcher listener", run.run, leader_only=manager.shards is None)
    return run
