"""The parts of a node that steps need, put together from the seams."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Protocol

from hortus.kube.clock import Clock
from hortus.nodeagent.registries import Probe
from hortus.nodeagent.seams import Files, MachineControl, NodeFault, NodeRuntime, UnitControl, UpdateReports

UNITS_FOLDER = "/etc/systemd/system"


class AgentRestart(Exception):
    """The agent has to end, so that systemd starts it again; the message says why."""


class AwaitsOutside(Exception):
    """The rest of the steps waits for something that this process does not do; the message names it."""


class NodeEvents(Protocol):
    def __call__(self, reason: str, message: str, *, warning: bool = False) -> None:
        """Reports something to the readers of the Node's events."""


class Node:
    """The parts of a node that steps need."""

    def __init__(
        self,
        *,
        files: Files,
        units: UnitControl,
        runtime: NodeRuntime,
        host: MachineControl,
        reports: UpdateReports,
        kubelet: Callable[[], Awaitable[str]],
        secret: Callable[[str, str], Awaitable[bytes]],
        probe: Probe,
        clock: Clock,
        event: NodeEvents,
        hostname: str,
        path: str,
    ) -> None:
        """`secret` returns the value of a key of a Secret in kube-system, `kubelet` the problem of the kubelet, empty
        when it is healthy, `path` is this process's variable PATH."""
        self.files = files
        self.units = units
        self.runtime = runtime
        self.host = host
        self.reports = reports
        self.kubelet = kubelet
        self.secret = secret
        self.probe = probe
        self.clock = clock
        self.event = event
        self.hostname = hostname
        self.path = path


def own_path() -> str:
    """The variable PATH of this process; systemd's own default (systemd.exec(5)) where it has none."""
    return os.environ.get("PATH") or "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"


def unit_path(name: str) -> str:
    return f"{UNITS_FOLDER}/{name}"


def drop_in_path(unit: str, name: str) -> str:
    return f"{UNITS_FOLDER}/{unit}.d/{name}"


def check_job(verb: str, name: str, result: str) -> None:
    """A job of systemd ends as `done`; one that takes its time goes on without us."""
    if result not in ("done", "timeout", "skipped"):
        raise NodeFault(f"systemd could not {verb} unit {name} ({result}): see journalctl -u {name} on the node")
