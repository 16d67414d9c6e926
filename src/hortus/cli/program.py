"""A process of controllers, put together from flags: what `hortus run` and the controllers of `hortus up` are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import Any

import structlog
from prometheus_client import Gauge

from hortus import __version__
from hortus.cli.flags import ELECTION_NAME, FLAGS, check_values
from hortus.cli.process import process_context
from hortus.domains import Domain, ProcessContext, Reload, all_domains
from hortus.engine import Manager
from hortus.engine.configuration import FlagValues
from hortus.engine.flags import FlagSet
from hortus.engine.hosting import Host, HostWorld, hosted, log_settings
from hortus.engine.logging import set_level
from hortus.engine.manager import DEFAULT_GRACE
from hortus.engine.reloading import Reloader
from hortus.engine.serving import webhook_settings

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@asynccontextmanager
async def program(
    values: Mapping[str, Any],
    configuration: FlagValues | None = None,
    *,
    grace: float = DEFAULT_GRACE,
    world: HostWorld | None = None,
) -> AsyncIterator[Manager]:
    """The manager with all controllers that `values` ask for, ready to run. Raises FlagError, KubeconfigError.

    With the `configuration` that the values come from, its file is followed. `grace` is that of the manager. With
    a `world` the controllers work in that one instead of the real one.
    """
    domains = all_domains()
    _check(values)
    async with (
        hosted(values, election=ELECTION_NAME, grace=grace, world=world) as host,
        process_context(host, values, domains, world) as (shared, reload_shared),
    ):
        hooks = [_reload_logs, reload_shared]
        hooks += [hook for domain in domains if (hook := _add(domain, shared, host)) is not None]
        manager = host.manager
        shared.webhooks.serve(manager, host.client, webhook_settings(values))
        _describe(manager, values)
        if configuration is not None and configuration.path is not None:
            take_over = partial(_take_over, hooks)
            reloader = Reloader(
                configuration, FlagSet(FLAGS), values, take_over, registry=manager.registry, clock=manager.clock
            )
            manager.add("configuration", reloader.run, leader_only=False)
        yield manager


def warn_of_rivals(values: Mapping[str, Any]) -> None:
    """Log the Leases of operators that are replaced, where a process with these values of flags holds none of them."""
    names = [name for domain in all_domains() for name in _leases_of_rivals(domain, values)]
    if names and not values["leader-elect"] and not values["sharding"]:
        _log.warning(
            "the leases of replaced operators are not held: they would work at the same time; "
            "set --leader-elect or --sharding, or see to it that none of them runs",
            leases=names,
        )


def _leases_of_rivals(domain: Domain, values: Mapping[str, Any]) -> list[str]:
    return [lease.name for lease in domain.rivals() if lease.concerns(values)]


def _add(domain: Domain, shared: ProcessContext, host: Host) -> Reload | None:
    """Add the domain's controllers, which work only while no operator does that the domain replaces."""
    rivals = host.rivals(_leases_of_rivals(domain, shared.values))
    with host.manager.excluding(rivals) if rivals is not None else nullcontext():
        return domain.add_controllers(shared)


def _describe(manager: Manager, values: Mapping[str, Any]) -> None:
    """Metrics that say what runs here: the version, and which kinds are served."""
    build = Gauge("hortus_build_info", "The version that runs; always 1.", ["version"], registry=manager.registry)
    build.labels(__version__).set(1)
    served = Gauge(
        "hortus_kind_served", "1 where this process reconciles the kind.", ["kind"], registry=manager.registry
    )
    for domain in all_domains():
        for resource in domain.kinds():
            served.labels(resource.kind).set(int(domain.served(values)))


def _check(values: Mapping[str, Any]) -> None:
    """Raises FlagError."""
    log_settings(values)
    check_values(values)


def _take_over(hooks: Sequence[Reload], values: Mapping[str, Any]) -> None:
    """Raises FlagError before it changes anything."""
    _check(values)
    for hook in hooks:
        hook(values)


def _reload_logs(values: Mapping[str, Any]) -> None:
    set_level(log_settings(values).level)
