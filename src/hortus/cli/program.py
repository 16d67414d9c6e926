"""A process of controllers, put together from flags: what `hortus run` and the controllers of `hortus up` are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple

import structlog

from hortus.cli import sharding
from hortus.domains.access import composition as access
from hortus.domains.access import settings as access_settings
from hortus.domains.canary import composition as canaries
from hortus.domains.canary import settings as canary
from hortus.domains.clusters import composition as runtimes
from hortus.domains.clusters import settings as clusters
from hortus.domains.clusters.garden import SHOOTS
from hortus.domains.clusters.inside import PoolWorkloads
from hortus.domains.clusters.outline import outline as runtime_outline
from hortus.domains.credentials import settings as credentials
from hortus.domains.credentials.composition import add_controller
from hortus.domains.credentials.composition import outline as credential_outline
from hortus.domains.credentials.types import SECRET_SELECTOR
from hortus.engine import (
    Cache,
    EventRecorder,
    Manager,
)
from hortus.engine.configuration import Configuration, Reloader
from hortus.engine.flags import Flag, FlagError, FlagSet
from hortus.engine.hosting import HOST_FLAGS, follow, hosted, log_settings
from hortus.engine.kubeconfigs import SECRETS, sealed
from hortus.engine.logging import set_level
from hortus.engine.remote import RemotePool, RemoteSettings, SecretCredentials
from hortus.kube import (
    LOCAL_NETWORKS,
    Client,
    ConnectionSettings,
    RateLimiter,
    RequestObserver,
)
from hortus.kube.kubeconfig import Trust, load, through_proxy
from hortus.kube.objects import Object

ELECTION_NAME = "f1c68560.kyma-project.io"
"""The Go system's lease, so that both never work at the same time while one replaces the other."""
COMPONENT = "infrastructure-manager"

FLAGS: tuple[Flag, ...] = (
    *HOST_FLAGS,
    *sharding.FLAGS,
    *credentials.FLAGS,
    *clusters.FLAGS,
    *access_settings.FLAGS,
    *canary.FLAGS,
)

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@asynccontextmanager
async def program(values: Mapping[str, Any], configuration: Configuration | None = None) -> AsyncIterator[Manager]:
    """The manager with all controllers that `values` ask for, ready to run. Raises FlagError, KubeconfigError.

    With the `configuration` that the values come from, its file is followed.
    """
    settings = credentials.Settings.from_flags(values)
    async with AsyncExitStack() as stack:
        host = await stack.enter_async_context(hosted(values, election=ELECTION_NAME))
        manager, client, observer = host
        limiter = RateLimiter(settings.garden_qps, settings.garden_burst, clock=manager.clock)
        garden = await stack.enter_async_context(
            Client(
                through_proxy(load(settings.garden_kubeconfig).access()),
                settings=ConnectionSettings(timeout=settings.garden_timeout),
                observer=observer,
                limiter=limiter,
            )
        )
        manager.on_resume(garden.cut)
        follow(manager, garden, settings.garden_kubeconfig)
        events = EventRecorder(client, component=COMPONENT, clock=manager.clock)
        manager.add_server(events)
        shoots = manager.caches_of(garden).get(SHOOTS, namespace=settings.garden_namespace, transform=_outline)
        ways_in = _ways_in(manager, client, values, observer)
        controller = add_controller(
            manager,
            client=client,
            garden=garden,
            shoots=shoots,
            settings=settings,
            events=events,
            deny=ways_in.pool.settings.deny,
        )
        _add_runtimes(manager, client=client, garden=garden, shoots=shoots, values=values, ways_in=ways_in)
        if access_settings.served(values):
            access.add_controller(
                manager,
                client=client,
                pool=ways_in.pool,
                kubeconfigs=ways_in.kubeconfigs,
                settings=access_settings.from_flags(values),
            )

        def take_over(values: Mapping[str, Any]) -> None:
            chosen, level = credentials.Settings.from_flags(values), log_settings(values).level
            set_level(level)
            limiter.allow(chosen.garden_qps, chosen.garden_burst)
            controller.become(chosen)

        if configuration is not None and configuration.path is not None:
            reloader = Reloader(
                configuration, FlagSet(FLAGS), values, take_over, registry=manager.registry, clock=manager.clock
            )
            manager.add("configuration", reloader.run, leader_only=False)
        yield manager


def _outline(shoot: Object) -> Object:
    """What both domains keep of a Shoot: one watch serves them."""
    return {**credential_outline(shoot), **runtime_outline(shoot)}


def _add_runtimes(
    manager: Manager,
    *,
    client: Client,
    garden: Client,
    shoots: Cache,
    values: Mapping[str, Any],
    ways_in: _WaysIn,
) -> None:
    if not clusters.served(values):
        path = values["converter-config-filepath"]
        if canary.wanted(values):
            raise FlagError(f"flag --canary-template needs Runtimes, and there is no converter configuration at {path}")
        _log.warning("Runtimes are not served: there is no converter configuration", path=path)
        return
    settings = clusters.from_flags(values)
    for remark in settings.configuration.remarks:
        _log.warning("converter configuration", remark=remark)
    runtimes.add_controllers(
        manager,
        client=client,
        garden=garden,
        shoots=shoots,
        secrets=ways_in.kubeconfigs,
        workloads=PoolWorkloads(ways_in.pool, client, ways_in.kubeconfigs),
        settings=settings,
    )
    if canary.wanted(values):
        canaries.add_controller(
            manager,
            client=client,
            garden=garden,
            garden_namespace=settings.garden_namespace,
            shoots=shoots,
            secrets=ways_in.kubeconfigs,
            clusters=ways_in.pool.at,
            watched=settings.namespace,
            settings=canary.from_flags(values),
        )


class _WaysIn(NamedTuple):
    """The way into all clusters, for every part that needs one."""

    pool: RemotePool
    kubeconfigs: Cache


def _ways_in(manager: Manager, client: Client, values: Mapping[str, Any], observer: RequestObserver) -> _WaysIn:
    chosen = credentials.Settings.from_flags(values)
    kubeconfigs = manager.cache(SECRETS, namespace=chosen.namespace, labels=SECRET_SELECTOR, transform=sealed)
    limits = RemoteSettings(
        timeout=chosen.cluster_timeout,
        connect_timeout=chosen.cluster_timeout,
        trust=Trust(plain_http=chosen.plain_http),
        deny=() if values["allow-local-clusters"] else LOCAL_NETWORKS,
    )
    pool = RemotePool(
        SecretCredentials(client, kubeconfigs),
        settings=limits,
        clock=manager.clock,
        registry=manager.registry,
        observer=observer,
    )
    manager.on_stop(pool.close)
    return _WaysIn(pool, kubeconfigs)
