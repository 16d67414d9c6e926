"""Builds what all domains of a process share: the garden and its Shoots, and the way into every cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec

from hortus.domains import Domain, ProcessContext, Reload
from hortus.engine import Cache, Manager, without_managed_fields
from hortus.engine.deputies import Deputies, trusted_namespaces
from hortus.engine.hosting import Host, HostWorld, follow
from hortus.engine.kubeconfigs import SECRETS, sealed
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.process import files_within
from hortus.engine.remote import RemotePool, RemoteSettings, SecretCredentials
from hortus.engine.rollouts import RolloutGate
from hortus.engine.serving import AdmissionWebhooks
from hortus.kube import LOCAL_NETWORKS, METADATA_NETWORKS, Access, Client, ConnectionSettings, RateLimiter
from hortus.kube.kubeconfig import Trust, load, through_proxy
from hortus.kube.objects import Object, Resource

_SHOOTS = Resource("core.gardener.cloud", "v1beta1", "shoots", "Shoot")
_NO_GARDEN = Access(server="https://no-garden.invalid")
"""The garden of a process without one: no domain that reads it is served, so nothing is sent there."""
_NEVER = 1e9
"""Seconds between two probes of a cluster that cannot fall silent, as it is in a world of this process."""


@asynccontextmanager
async def process_context(
    host: Host, values: Mapping[str, Any], domains: Sequence[Domain], world: HostWorld | None = None
) -> AsyncIterator[tuple[ProcessContext, Reload]]:
    """The context of a process with these values of flags, and its hook for changed ones.

    Raises FlagError, KubeconfigError.
    """
    manager, client, observer = host.manager, host.client, host.observer
    limiter = RateLimiter(values["gardener-ratelimiter-qps"], values["gardener-ratelimiter-burst"], clock=manager.clock)
    file, namespace = values["gardener-kubeconfig-path"], values["watch-namespace"]
    garden_namespace = f"garden-{values['gardener-project-name']}"
    if world is not None:
        access = world.garden or _NO_GARDEN
    else:
        access = through_proxy(load(file).access()) if file else _NO_GARDEN
    calls = ConnectionSettings(timeout=values["gardener-request-timeout"])

    def reload(values: Mapping[str, Any]) -> None:
        limiter.allow(values["gardener-ratelimiter-qps"], values["gardener-ratelimiter-burst"])

    async with Client(access, settings=calls, observer=observer, limiter=limiter) as garden:
        manager.on_resume(garden.cut)
        if file and world is None:
            follow(manager, garden, file)
        kubeconfigs = manager.cache(SECRETS, namespace=namespace, labels=_selector(domains), transform=sealed)
        pool = _pool(host, kubeconfigs, values, world)
        manager.on_stop(pool.close)
        yield (
            ProcessContext(
                manager=manager,
                values=values,
                served=frozenset(kind for domain in domains if domain.served(values) for kind in domain.kinds()),
                client=client,
                namespace=namespace,
                garden=garden,
                garden_namespace=garden_namespace,
                shoots=_shoots(manager, garden, garden_namespace, domains) if file else Cache("shoots of no garden"),
                pool=pool,
                kubeconfigs=kubeconfigs,
                deputies=Deputies(client, trusted_namespaces(values), clock=manager.clock),
                gate=_gate(manager, values),
                change_kinds=[kind for domain in domains if domain.served(values) for kind in domain.change_kinds()],
                leftovers=LeftoverRecorder(
                    client if values["leftovers"] else None, values["fleet-namespace"], registry=manager.registry
                ),
                webhooks=AdmissionWebhooks(),
            ),
            reload,
        )


def _shoots(manager: Manager, garden: Client, namespace: str, domains: Sequence[Domain]) -> Cache:
    return manager.caches_of(garden).get(_SHOOTS, namespace=namespace, transform=_outlines(domains))


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


def _selector(domains: Sequence[Domain]) -> str:
    """The selector of the one domain that makes the Secrets by which all connect."""
    (selector,) = filter(None, (domain.kubeconfig_selector() for domain in domains))
    return selector


def _pool(host: Host, kubeconfigs: Cache, values: Mapping[str, Any], world: HostWorld | None) -> RemotePool:
    timeout = values["cluster-request-timeout"]
    limits = RemoteSettings(
        qps=values["k8s-skr-client-qps"],
        burst=values["k8s-skr-client-burst"],
        timeout=timeout,
        connect_timeout=timeout,
        sockets=files_within(values["cluster-connections"]),
        trust=Trust(plain_http=values["allow-plain-http"]),
        deny=METADATA_NETWORKS if values["allow-local-clusters"] else LOCAL_NETWORKS,
    )
    if world is not None:
        limits = msgspec.structs.replace(limits, probe_every=_NEVER)
    return RemotePool(
        SecretCredentials(host.client, kubeconfigs),
        settings=limits,
        clock=host.manager.clock,
        registry=host.manager.registry,
        observer=host.observer,
        random=world.random if world is not None else None,
    )
