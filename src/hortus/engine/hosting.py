"""A process of controllers from its flags: connection, logs, metrics, health, leader election or shards, signals.

    sys.exit(serve(Greeter))

is a whole program: it reads its flags from the command line, the environment and a file, runs in a pod with the pod's
own account and elsewhere with a kubeconfig. `hosted` is the same for programs that put more together by themselves.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR, CollectorRegistry

from hortus.engine import process
from hortus.engine.configuration import FlagValues
from hortus.engine.events import EventRecorder
from hortus.engine.files import KubeconfigFile
from hortus.engine.flags import FlagError, FlagSet
from hortus.engine.health import Address, HealthServer, HttpServer, parse_address, serve_metrics
from hortus.engine.hostflags import HOST_FLAGS
from hortus.engine.kinds import KindController, add_kind
from hortus.engine.leases import Elector, LeaseTimes
from hortus.engine.logging import LogSettings, configure_by_default, configure_logging
from hortus.engine.manager import DEFAULT_GRACE, Manager
from hortus.engine.observing.page import DebugServer
from hortus.engine.rivals import RivalLeases
from hortus.engine.shards import Shards
from hortus.engine.tracing import TracedCalls, Tracing, TracingUnavailable
from hortus.kube import Access, Client, ConnectionSettings, RequestMetrics, RequestObserver, SystemClock
from hortus.kube.clock import Clock
from hortus.kube.errors import KubeError
from hortus.kube.kubeconfig import KubeconfigError, in_cluster, load

SHARD_GROUP = "hortus"
"""The group of replicas that share one namespace for their leases."""
_LEASE_CALLS = ConnectionSettings(connections=4)
"""Leases have connections of their own: they are renewed in time also while every other call hangs."""
_SHORTEST_LEASE = 3.0
"""Seconds. Leases count whole seconds, and their last third is what requests on the way may take."""
_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class HostWorld(NamedTuple):
    """The world of a process that is not the real one: its time, its chances, its clusters (`hortus plan`)."""

    clock: Clock
    random: Random
    management: Access
    garden: Access | None = None


class Host(NamedTuple):
    """A manager with what it runs on."""

    manager: Manager
    client: Client
    """The management cluster."""
    observer: RequestObserver
    """For every further client of the process."""
    rivals: Callable[[Sequence[str]], RivalLeases | None]
    """Makes the exclusion of operators by the names of their Leases; None where this process is the only one."""


def serve(
    *controllers: type[KindController[Any]],
    arguments: Sequence[str] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> int:
    """Run controllers until SIGTERM or Ctrl-C and return the exit code of the process.

    `arguments` are those of the command line; --help lists the flags. The first controller's field manager names the
    lease of --leader-elect.
    """
    words, flags = list(sys.argv[1:] if arguments is None else arguments), FlagSet(HOST_FLAGS)
    if any(word.lstrip("-") in ("help", "h") for word in words):
        program = Path(sys.argv[0])
        name = program.parent.name if program.name == "__main__.py" else program.name
        sys.stdout.write(f"Usage: {name} [flags]\n\n{flags.usage()}\n")
        return 0
    try:
        values = FlagValues(flags, words, environment).load()
        configure_logging(log_settings(values))
        return process.run(lambda: _serve(controllers, values))
    except (FlagError, KubeconfigError, KubeError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1 if isinstance(error, KubeError) else 2


async def _serve(controllers: Sequence[type[KindController[Any]]], values: Mapping[str, Any]) -> int:
    name = controllers[0].field_manager
    async with hosted(values, election=name) as host:
        events = EventRecorder(host.client, component=name, clock=host.manager.clock)
        host.manager.add_server(events)
        for controller in controllers:
            add_kind(host.manager, controller, client=host.client, events=events)
        return await process.run_manager(host.manager)


@asynccontextmanager
async def hosted(
    values: Mapping[str, Any],
    *,
    election: str,
    grace: float = DEFAULT_GRACE,
    world: HostWorld | None = None,
) -> AsyncIterator[Host]:
    """A manager as `values` of `HOST_FLAGS` ask for, with its servers, ready to be given controllers.

    `election` is the name of the lease of --leader-elect, `grace` is the manager's. Logs are configured as the values
    ask, unless the program has done so. `world` takes the place of the clock and of the files that
    name clusters. Raises FlagError, KubeconfigError.
    """
    registry = CollectorRegistry()
    for collector in (GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR):
        registry.register(collector)
    clock: Clock = SystemClock() if world is None else world.clock
    tracing = _tracing(values)
    observer: RequestObserver = RequestMetrics(registry)
    if tracing is not None:
        observer = TracedCalls(tracing, clock, observer)
    async with AsyncExitStack() as stack:
        access = _access(values["kubeconfig"]) if world is None else world.management
        client = await stack.enter_async_context(
            Client(access, settings=ConnectionSettings(connections=64), observer=observer)
        )
        leases = await stack.enter_async_context(Client(access, settings=_LEASE_CALLS, observer=observer))
        manager = _manager(
            client,
            leases,
            registry,
            values,
            election=election,
            grace=grace,
            clock=clock,
            tracing=tracing,
            random=None if world is None else world.random,
        )
        for one in (client, leases):
            manager.on_resume(one.cut)
            if values["kubeconfig"] and world is None:
                follow(manager, one, values["kubeconfig"])
        _add_servers(manager, values)
        configure_by_default(log_settings(values))
        yield Host(manager, client, observer, partial(_rivals, leases, values, clock))


def follow(manager: Manager, client: Client, path: str) -> None:
    """Use what the kubeconfig file says, also when it changes; another server means another start."""
    file = KubeconfigFile(client, Path(path), moved=manager.stop)
    manager.add(f"kubeconfig {path}", file.run, leader_only=False)


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


def _manager(
    client: Client,
    leases: Client,
    registry: CollectorRegistry,
    values: Mapping[str, Any],
    *,
    election: str,
    grace: float,
    clock: Clock,
    tracing: Tracing | None,
    random: Random | None,
) -> Manager:
    elector, shards = None, None
    if values["sharding"]:
        shards = _shards(leases, values, namespace=_lease_namespace(values, "sharding"), clock=clock)
    elif values["leader-elect"]:
        namespace = _lease_namespace(values, "leader-elect")
        elector = Elector(leases, name=election, namespace=namespace, clock=clock, times=_lease_times(values))
    return Manager(
        client,
        clock=clock,
        registry=registry,
        election=elector,
        shards=shards,
        grace=grace,
        tracing=tracing,
        random=random,
    )


def _rivals(client: Client, values: Mapping[str, Any], clock: Clock, names: Sequence[str]) -> RivalLeases | None:
    """The Leases of `names`, where replicas exclude each other by Leases as well. Raises FlagError."""
    flag = next((flag for flag in ("sharding", "leader-elect") if values[flag]), "")
    if not flag or not names:
        return None
    namespace = _lease_namespace(values, flag)
    return RivalLeases(client, names=names, namespace=namespace, clock=clock, times=_lease_times(values))


def _lease_times(values: Mapping[str, Any]) -> LeaseTimes:
    """Raises FlagError."""
    names = ("leader-election-lease-duration", "leader-election-renew-deadline", "leader-election-retry-period")
    duration, renew_deadline, retry_period = (values[name] for name in names)
    if not duration > renew_deadline > retry_period > 0:
        raise FlagError(
            f"invalid value {duration:g}s for flag --{names[0]}: must be longer than the {renew_deadline:g}s of "
            f"--{names[1]}, which must be longer than the {retry_period:g}s of --{names[2]}"
        )
    return LeaseTimes(duration=duration, renew_deadline=renew_deadline, retry_period=retry_period)


def _shards(client: Client, values: Mapping[str, Any], *, namespace: str, clock: Clock) -> Shards:
    """The membership that `values` ask for. Raises FlagError."""
    duration = values["shard-lease-duration"]
    if duration < _SHORTEST_LEASE:
        raise FlagError(
            f"invalid value {duration:g}s for flag --shard-lease-duration: must be {_SHORTEST_LEASE:g}s or more"
        )
    # The proportions of client-go's leader election: 15, 10 and 2 seconds.
    times = LeaseTimes(duration=duration, renew_deadline=duration * 2 / 3, retry_period=duration * 2 / 15)
    return Shards(client, group=SHARD_GROUP, namespace=namespace, clock=clock, times=times)


def _tracing(values: Mapping[str, Any]) -> Tracing | None:
    endpoint = values["tracing-endpoint"]
    try:
        return Tracing.to(endpoint) if endpoint else None
    except TracingUnavailable as error:
        raise FlagError(f"--tracing-endpoint {endpoint}: {error}") from None


def _add_servers(manager: Manager, values: Mapping[str, Any]) -> None:
    for flag, make in _SERVERS.items():
        try:
            address = parse_address(values[flag])
        except ValueError as error:
            raise FlagError(f"invalid value {values[flag]!r} for flag --{flag}: {error}") from None
        if address is not None:
            manager.add_server(make(address, manager))


def _health(address: Address, manager: Manager) -> HttpServer:
    health = HealthServer(address, readiness=manager.readiness)
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
    if not _OWN_NAMESPACE.exists():
        raise FlagError(f"--{flag} outside of a pod needs --leader-election-namespace")
    return _OWN_NAMESPACE.read_text().strip()
