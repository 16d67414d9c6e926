"""A process of controllers, put together from flags: what `hortus run` and the controllers of `hortus up` are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from prometheus_client import Gauge

from hortus import __version__
from hortus.cli.flags import ELECTION_NAME, FLAGS, check_values
from hortus.cli.process import process_context
from hortus.domains import Reload, all_domains
from hortus.engine import Manager
from hortus.engine.configuration import FlagValues
from hortus.engine.flags import FlagSet
from hortus.engine.hosting import hosted, log_settings
from hortus.engine.logging import set_level
from hortus.engine.manager import DEFAULT_GRACE
from hortus.engine.reloading import Reloader


@asynccontextmanager
async def program(
    values: Mapping[str, Any], configuration: FlagValues | None = None, *, grace: float = DEFAULT_GRACE
) -> AsyncIterator[Manager]:
    """The manager with all controllers that `values` ask for, ready to run. Raises FlagError, KubeconfigError.

    With the `configuration` that the values come from, its file is followed. `grace` is that of the manager.
    """
    domains = all_domains()
    _check(values)
    async with (
        hosted(values, election=ELECTION_NAME, grace=grace) as host,
        process_context(host, values, domains) as (shared, reload_shared),
    ):
        hooks = [_reload_logs, reload_shared]
        hooks += [hook for domain in domains if (hook := domain.add_controllers(shared)) is not None]
        manager = host.manager
        _describe(manager, values)
        if configuration is not None and configuration.path is not None:
            take_over = partial(_take_over, hooks)
            reloader = Reloader(
                configuration, FlagSet(FLAGS), values, take_over, registry=manager.registry, clock=manager.clock
            )
            manager.add("configuration", reloader.run, leader_only=False)
        yield manager


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
