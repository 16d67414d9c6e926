"""A process of controllers, put together from flags: what `hortus run` and the controllers of `hortus up` are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import structlog
from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR, CollectorRegistry

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
from hortus.domains.credentials import secrets as kept
from hortus.domains.credentials import settings as credentials
from hortus.domains.credentials.composition import add_controller
from hortus.domains.credentials.composition import outline as credential_outline
from hortus.engine import (
    Address,
    Cache,
    Elector,
    EventRecorder,
    HealthServer,
    HttpServer,
    Manager,
    parse_address,
    serve_metrics,
)
from hortus.engine.configuration import CONFIG, Configuration, Reloader
from hortus.engine.files import KubeconfigFile
from hortus.engine.flags import Flag, FlagError, FlagSet
from hortus.engine.logging import LogSettings, set_level
from hortus.engine.observing.page import DebugServer
from hortus.engine.remote import SECRETS, RemotePool, RemoteSettings, SecretCredentials
from hortus.engine.tracing import TracedCalls, Tracing, TracingUnavailable
from hortus.kube import (
    LOCAL_NETWORKS,
    Access,
    Client,
    ConnectionSettings,
    RateLimiter,
    RequestMetrics,
    RequestObserver,
    SystemClock,
)
from hortus.kube.clock import Clock
from hortus.kube.kubeconfig import KubeconfigError, Trust, in_cluster, load, through_proxy
from hortus.kube.objects import Object

ELECTION_NAME = "f1c68560.kyma-project.io"
"""The Go system's lease, so that both never work at the same time while one replaces the other."""
COMPONENT = "infrastructure-manager"

_OWN: tuple[Flag, ...] = (
    CONFIG,
    Flag("kubeconfig", "string", "", "Kubeconfig file of the management cluster; the pod's own account without it."),
    Flag("metrics-bind-address", "string", ":8080", "Address of /metrics; 0 for none."),
    Flag("health-probe-bind-address", "string", ":8081", "Address of /healthz and /readyz; 0 for none."),
    Flag("debug-bind-address", "string", "0", "Address of /debug: queues, slow reconciles, caches; 0 for none."),
    Flag("leader-elect", "bool", False, "Work only while this process holds the lease."),
    Flag("leader-election-namespace", "string", "", "Namespace of the leases; the pod's own without it."),
    *sharding.FLAGS,
    Flag(
        "tracing-endpoint", "string", "", "OTLP receiver of traces over HTTP, as http://collector:4318; none without."
    ),
    Flag("zap-devel", "bool", False, "Logs for development: console, debug, stack traces from warnings on."),
    Flag("zap-encoder", "string", "", "Log encoding: json or console."),
    Flag("zap-log-level", "string", "", "Log level: debug, info, error, panic or a number.", reloadable=True),
    Flag("zap-stacktrace-level", "string", "", "Level from which stack traces are logged: info, error, panic."),
    Flag("zap-time-encoding", "string", "", "Time in logs: epoch, millis, nano, iso8601, rfc3339, rfc3339nano."),
)

FLAGS: tuple[Flag, ...] = (*_OWN, *credentials.FLAGS, *clusters.FLAGS, *access_settings.FLAGS, *canary.FLAGS)

_LEASE_CALLS = ConnectionSettings(connections=4)
"""Leases have connections of their own: they are renewed in time also while every other call hangs."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def log_settings(values: Mapping[str, Any]) -> LogSettings:
    """Raises FlagError."""
    try:
        return LogSettings.from_flags(
            zap_devel=values["zap-devel"],
            zap_encoder=values["zap-encoder"],
            zap_log_level=values["zap-log-level"],
            zap_stacktrace_level=values["zap-stacktrace-level"],
            zap_time_encoding=values["zap-time-encoding"],
        )
    except ValueError as error:
        raise FlagError(str(error)) from None


@asynccontextmanager
async def program(values: Mapping[str, Any], configuration: Configuration | None = None) -> AsyncIterator[Manager]:
    """The manager with all controllers that `values` ask for, ready to run. Raises FlagError, KubeconfigError.

    With the `configuration` that the values come from, its file is followed.
    """
    settings = credentials.Settings.from_flags(values)
    registry = CollectorRegistry()
    for collector in (GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR):
        registry.register(collector)
    clock, tracing = SystemClock(), _tracing(values)
    observer: RequestObserver = RequestMetrics(registry)
    if tracing is not None:
        observer = TracedCalls(tracing, clock, observer)
    async with AsyncExitStack() as stack:
        access_to = _access(values["kubeconfig"])
        client = await stack.enter_async_context(
            Client(access_to, settings=ConnectionSettings(connections=64), observer=observer)
        )
        leases = await stack.enter_async_context(Client(access_to, settings=_LEASE_CALLS, observer=observer))
        manager = _manager(client, leases, registry, values, clock=clock, tracing=tracing)
        limiter = RateLimiter(settings.garden_qps, settings.garden_burst, clock=manager.clock)
        garden = await stack.enter_async_context(
            Client(
                through_proxy(load(settings.garden_kubeconfig).access()),
                settings=ConnectionSettings(timeout=settings.garden_timeout),
                observer=observer,
                limiter=limiter,
            )
        )
        for one in (client, leases, garden):
            manager.on_resume(one.cut)
        _follow(manager, garden, settings.garden_kubeconfig)
        if values["kubeconfig"]:
            for one in (client, leases):
                _follow(manager, one, values["kubeconfig"])
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
                configuration, FlagSet(FLAGS), values, take_over, registry=registry, clock=manager.clock
            )
            manager.add("configuration", reloader.run, leader_only=False)
        _add_servers(manager, values)
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
    kubeconfigs = manager.cache(SECRETS, namespace=chosen.namespace, labels=kept.SELECTOR, transform=kept.sealed)
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


def _tracing(values: Mapping[str, Any]) -> Tracing | None:
    endpoint = values["tracing-endpoint"]
    try:
        return Tracing.to(endpoint) if endpoint else None
    except TracingUnavailable as error:
        raise FlagError(f"--tracing-endpoint {endpoint}: {error}") from None


def _follow(manager: Manager, client: Client, path: str) -> None:
    """Use what the kubeconfig file says, also when it changes; another server means another start."""
    file = KubeconfigFile(client, Path(path), moved=manager.stop)
    manager.add(f"kubeconfig {path}", file.run, leader_only=False)


def _manager(
    client: Client,
    leases: Client,
    registry: CollectorRegistry,
    values: Mapping[str, Any],
    *,
    clock: Clock,
    tracing: Tracing | None,
) -> Manager:
    election, shards = None, None
    if values["sharding"]:
        shards = sharding.shards(leases, values, namespace=_lease_namespace(values, "sharding"), clock=clock)
    elif values["leader-elect"]:
        namespace = _lease_namespace(values, "leader-elect")
        election = Elector(leases, name=ELECTION_NAME, namespace=namespace, clock=clock)
    return Manager(client, clock=clock, registry=registry, election=election, shards=shards, tracing=tracing)


def _add_servers(manager: Manager, values: Mapping[str, Any]) -> None:
    for flag, make in _SERVERS.items():
        try:
            address = parse_address(values[flag])
        except ValueError as error:
            raise FlagError(f"invalid value {values[flag]!r} for flag --{flag}: {error}") from None
        if address is not None:
            manager.add_server(make(address, manager))


def _health(address: Address, manager: Manager) -> HttpServer:
    health = HealthServer(address)
    health.readiness.add("cache-sync", lambda: _synced(manager))
    if manager.shards is not None:
        health.readiness.add("shard", manager.shards.check)
    return health


def _metrics(address: Address, manager: Manager) -> HttpServer:
    metrics = HttpServer(address)
    serve_metrics(metrics, manager.registry)
    return metrics


_SERVERS: Mapping[str, Callable[[Address, Manager], HttpServer]] = {
    "health-probe-bind-address": _health,
    "metrics-bind-address": _metrics,
    "debug-bind-address": DebugServer,
}
"""By the flag that says where each listens."""


def _synced(manager: Manager) -> None:
    """Raises RuntimeError while the management cluster's caches are not complete."""
    if waiting := manager.caches.waiting_for:
        raise RuntimeError("; ".join(waiting))


def _access(path: str) -> Access:
    if path:
        return load(path).access()
    try:
        return in_cluster()
    except KubeconfigError:
        return load().access()


def _lease_namespace(values: Mapping[str, Any], flag: str) -> str:
    if values["leader-election-namespace"]:
        return str(values["leader-election-namespace"])
    path = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
    if not path.exists():
        raise FlagError(f"--{flag} outside of a pod needs --leader-election-namespace")
    return path.read_text().strip()
