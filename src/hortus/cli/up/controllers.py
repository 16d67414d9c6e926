"""The controllers of `hortus up`: the same as `hortus run` starts, with the local clusters and roomy limits."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import orjson

from hortus.cli.flags import FLAGS
from hortus.cli.program import program
from hortus.cli.sharding import addresses
from hortus.cli.up.metrics import metrics_at
from hortus.cli.up.state import StateDirectory, metrics_socket, write_private
from hortus.cli.up.supervisor import STOP_GRACE, CannotRun, report, until_stopped
from hortus.domains import all_domains
from hortus.engine import cut_on_resume
from hortus.engine.flags import FlagError, FlagSet
from hortus.simulation.settings import SettingsError, from_config

_LOCAL_FLAGS = (
    "--watch-namespace=",
    "--trusted-namespaces=*",
    "--gardener-ratelimiter-qps=1000",
    "--gardener-ratelimiter-burst=1000",
    "--gardener-request-timeout=30s",
    "--metrics-bind-address=0",
    "--health-probe-bind-address=0",
    "--allow-local-clusters",
)
"""Flags that differ from the defaults: a simulated garden has no other users, and no port is opened unasked."""


_SHARED_FLAGS = ("--sharding", "--leader-election-namespace=kube-system", "--shard-lease-duration=6s")
"""Further flags of replicas. The lease is short since the supervisor restarts a dead replica at once."""

_GRACE = STOP_GRACE / 2
"""Seconds for reconciles to end when the controllers stop. The other half is for all that is closed after them."""


def load() -> None:
    """Import what `control` needs of the domains, whose controllers are imported as they are added.

    A small domain has its controllers elsewhere than in its composition.
    """
    for domain in all_domains():
        composition = f"{type(domain).__module__}.composition"
        if domain.kinds() and find_spec(composition) is not None:
            import_module(composition)


async def control(state: StateDirectory, *, config: dict[str, Any], replica: int | None = None) -> None:
    """Run the controllers until cancelled, as number `replica` of several if there are. Raises CannotRun."""
    chosen = config.get("controllers") or {}
    flags = FlagSet(FLAGS)
    try:
        project = from_config(config).project
        arguments = [
            f"--kubeconfig={state.controllers_kubeconfig}",
            f"--gardener-kubeconfig-path={state.garden_kubeconfig}",
            f"--gardener-project-name={project}",
            *_LOCAL_FLAGS,
            *_local_setup(state, project),
            *(_SHARED_FLAGS if replica is not None else ()),
            *(f"--{name}={_text(value)}" for name, value in chosen.items()),
        ]
        values = flags.parse(arguments)
        write_private(state.controllers_flags, orjson.dumps(arguments))
        if replica is not None:
            values = flags.parse([*arguments, *addresses(values, replica)])
        socket = metrics_socket(state, replica or 0)
        async with (
            program(values, grace=_GRACE) as manager,
            metrics_at(socket, manager.registry),
            manager.running(),
        ):
            cut_on_resume(manager.resumed)
            report("ready", ", ".join(domain.name for domain in all_domains() if domain.kinds()))
            await until_stopped()
    except (FlagError, SettingsError) as error:
        raise CannotRun(f"configuration, controllers: {error}") from None


def _local_setup(state: StateDirectory, project: str) -> list[str]:
    """Write the files of all domains and return their flags."""
    setups = [domain.local_setup(state.path, project) for domain in all_domains()]
    for setup in setups:
        for path, content in setup.files.items():
            write_private(path, content)
    return [flag for setup in setups for flag in setup.flags]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
