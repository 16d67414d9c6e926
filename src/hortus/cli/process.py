"""Builds what all domains of a process share: the garden and its Shoots, and the way into every cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from hortus.domains import Domain, ProcessContext, Reload
from hortus.domains.credentials.settings import Settings
from hortus.domains.credentials.types import SECRET_SELECTOR
from hortus.engine import Cache, Manager, without_managed_fields
from hortus.engine.hosting import Host, follow
from hortus.engine.kubeconfigs import SECRETS, sealed
from hortus.engine.remote import RemotePool, RemoteSettings, SecretCredentials
from hortus.engine.rollouts import RolloutGate
from hortus.kube import LOCAL_NETWORKS, Client, ConnectionSettings, RateLimiter
from hortus.kube.kubeconfig import Trust, load, through_proxy
from hortus.kube.objects import Object, Resource

_SHOOTS = Resource("core.gardener.cloud", "v1beta1", "shoots", "Shoot")


@asynccontextmanager
async def process_context(
    host: Host, values: Mapping[str, Any], domains: Sequence[Domain]
) -> AsyncIterator[tuple[ProcessContext, Reload]]:
    """The context of a process with these values of flags, and its hook for changed ones.

    Raises FlagError, KubeconfigError.
    """
    manager, client, observer = host
    settings = Settings.from_flags(values)
    limiter = RateLimiter(settings.garden_qps, settings.garden_burst, clock=manager.clock)
    access = through_proxy(load(settings.garden_kubeconfig).access())
    calls = ConnectionSettings(timeout=settings.garden_timeout)

    def reload(values: Mapping[str, Any]) -> None:
        limiter.allow(values["gardener-ratelimiter-qps"], values["gardener-ratelimiter-burst"])

    async with Client(access, settings=calls, observer=observer, limiter=limiter) as garden:
        manager.on_resume(garden.cut)
        follow(manager, garden, settings.garden_kubeconfig)
        kubeconfigs = manager.cache(SECRETS, namespace=settings.namespace, labels=SECRET_SELECTOR, transform=sealed)
        pool = _pool(host, kubeconfigs, settings, local_clusters=values["allow-local-clusters"])
        manager.on_stop(pool.close)
        yield (
            ProcessContext(
                manager=manager,
                values=values,
                served=frozenset(kind for domain in domains if domain.served(values) for kind in domain.kinds()),
                client=client,
                namespace=settings.namespace,
                garden=garden,
                garden_namespace=settings.garden_namespace,
                shoots=manager.caches_of(garden).get(
                    _SHOOTS, namespace=settings.garden_namespace, transform=_outlines(domains)
                ),
                pool=pool,
                kubeconfigs=kubeconfigs,
                gate=_gate(manager, values),
                change_kinds=[kind for domain in domains for kind in domain.change_kinds()],
            ),
            reload,
        )


def _gate(manager: Manager, values: Mapping[str, Any]) -> RolloutGate:
    """The gate, open for everything where rollouts are not served."""
    if not values["rollouts"]:
        return RolloutGate(None)
    return RolloutGate(partial(manager.cache, namespace=values["fleet-namespace"], transform=without_managed_fields))


def _outlines(domains: Sequence[Domain]) -> Callable[[Object], Object]:
    """Returns a transform that keeps the fields of a Shoot that any domain reads: one watch serves all domains."""

    def outlines(shoot: Object) -> Object:
        kept: Object = {}
        for domain in domains:
            kept |= domain.shoot_outline(shoot)
        return kept

    return outlines


def _pool(host: Host, kubeconfigs: Cache, settings: Settings, *, local_clusters: bool) -> RemotePool:
    limits = RemoteSettings(
        timeout=settings.cluster_timeout,
        connect_timeout=settings.cluster_timeout,
        trust=Trust(plain_http=settings.plain_http),
        deny=() if local_clusters else LOCAL_NETWORKS,
    )
    return RemotePool(
        SecretCredentials(host.client, kubeconfigs),
        settings=limits,
        clock=host.manager.clock,
        registry=host.manager.registry,
        observer=host.observer,
    )
