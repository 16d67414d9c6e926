"""`hortus status`: what runs on a state directory, and whether it is well."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hortus.cli.up.state import RunFile, StateDirectory, command_for, is_alive
from hortus.domains import all_domains
from hortus.kube.objects import Object, Resource, parse_time

if TYPE_CHECKING:
    from hortus.kube import Client

HEALTHY, UNHEALTHY, NOT_RUNNING = 0, 1, 3
"""Exit codes; 3 is what service managers use for "not running" (LSB)."""

_SHOOTS = Resource("core.gardener.cloud", "v1beta1", "shoots", "Shoot")


class Status(msgspec.Struct):
    """The output of `hortus status -o json`."""

    running: bool
    healthy: bool
    state: str
    problem: str = ""
    server: str = ""
    version: str = ""
    started: str = ""
    """Time of the start, RFC 3339."""
    uptime: int = 0
    """Seconds since the start."""
    processes: dict[str, int] = {}
    objects: dict[str, dict[str, int]] = {}
    """By kind: the number of objects in each state. Kinds without an object are absent."""
    shoots: int = 0
    shards: dict[str, int] = {}
    """The number of objects of each replica; empty if replicas do not share the clusters."""

    @property
    def exit_code(self) -> int:
        return NOT_RUNNING if not self.running else HEALTHY if self.healthy else UNHEALTHY


def look(state: StateDirectory) -> Status:
    """The state of affairs now; asks the API server when one runs."""
    run = state.run()
    if not state.held_elsewhere():
        return Status(running=False, healthy=False, state=str(state.path))
    if run is None or run.pid != state.holder():
        return Status(running=True, healthy=False, state=str(state.path), problem="not up yet: it is just starting")
    import asyncio

    from hortus.kube.errors import KubeError
    from hortus.kube.kubeconfig import KubeconfigError

    found = Status(
        running=True,
        healthy=True,
        state=str(state.path),
        server=run.server,
        version=run.version,
        started=run.started,
        uptime=max(0, int(time.time() - parse_time(run.started))),
        processes=run.processes,
    )
    found.problem = _dead(run)
    try:
        asyncio.run(_ask(state, found))
    except (KubeError, KubeconfigError) as error:
        found.problem = found.problem or str(error)
    found.healthy = not found.problem
    return found


def _dead(run: RunFile) -> str:
    dead = [name for name, pid in run.processes.items() if not is_alive(pid)]
    missing = [name for name in run.parts if name not in run.processes]
    if missing:
        return f"not up yet: {', '.join(missing)}"
    return f"not running: {', '.join(dead)}" if dead else ""


async def _ask(state: StateDirectory, found: Status) -> None:
    from hortus.engine.shards.records import GROUP_LABEL, HELD, LEASES
    from hortus.kube import Client, ConnectionSettings
    from hortus.kube.errors import KubeError

    patience = ConnectionSettings(connections=4, timeout=5.0, connect_timeout=2.0)
    async with Client.from_kubeconfig(state.controllers_kubeconfig, settings=patience) as client:
        stated = (kind for domain in all_domains() for kind, struct in domain.kinds().items() if struct.FACTS.status)
        for kind in stated:
            if states := await _states(client, kind):
                found.objects[kind.kind] = states
        for member in (await client.list(LEASES, labels=GROUP_LABEL)).items:
            if name := member["spec"].get("holderIdentity"):
                found.shards[name] = int((member["metadata"].get("annotations") or {}).get(HELD) or 0)
    async with Client.from_kubeconfig(state.garden_kubeconfig, settings=patience) as garden:
        try:
            found.shoots = len((await garden.list(_SHOOTS, metadata_only=True)).items)
        except KubeError as error:
            found.problem = found.problem or f"the simulated garden: {error}"


async def _states(client: Client, kind: Resource) -> dict[str, int]:
    from hortus.kube.errors import NotServed

    try:
        listed = (await client.list(kind)).items
    except NotServed:
        return {}  # a fleet that another version of Hortus started
    return dict(Counter(_state(obj.get("status") or {}) for obj in listed))


def _state(status: Object) -> str:
    """The state that a status names, else the one that its condition Ready, or Joined of clusters, stands for."""
    if state := status.get("state") or status.get("phase"):
        return str(state)
    known = {one.get("type"): one.get("status") for one in status.get("conditions") or ()}
    summary = "Ready" if "Ready" in known else "Joined"
    if known.get(summary) in (None, "Unknown"):
        return "Pending"
    return summary if known[summary] == "True" else f"Not{summary}"


def _counts(states: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(states.items())) or "none"


def lines(status: Status) -> list[tuple[str, str]]:
    """The status as titled lines for people."""
    if not status.running:
        return [("state", status.state), ("running", f"no; start it with `{command_for('up', Path(status.state))}`")]
    found: list[tuple[str, Any]] = [
        ("state", status.state),
        ("API server", status.server),
        ("version", status.version),
        ("up for", _span(status.uptime)),
        ("processes", ", ".join(f"{name} {pid}" for name, pid in status.processes.items())),
        *((kind, _counts(states)) for kind, states in sorted(status.objects.items())),
        ("shoots", status.shoots),
        *([("shards", _members(status.shards))] if status.shards else []),
        ("health", status.problem or "good"),
    ]
    return [(title, str(value)) for title, value in found]


def _members(shards: dict[str, int]) -> str:
    return ", ".join(f"{name} holds {count}" for name, count in sorted(shards.items()))


def _span(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
