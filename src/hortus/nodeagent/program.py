"""The commands of `hortus-node-agent`."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import NoReturn

import orjson
import structlog

from hortus.engine.logging import LogSettings, configure_logging
from hortus.kube import SystemClock
from hortus.kube.errors import KubeError
from hortus.nodeagent.bootstrapping import bootstrap, credentials, reset
from hortus.nodeagent.converging import InvalidConfiguration, checked, checksum_of
from hortus.nodeagent.disk import Disk
from hortus.nodeagent.node import AgentRestart
from hortus.nodeagent.nodewatch import host_name
from hortus.nodeagent.planning import path_of, planned, shown
from hortus.nodeagent.seams import NodeFault
from hortus.nodeagent.settings import AgentConfigError, NodeAgentConfiguration, read
from hortus.nodeagent.state import FOLDER, SCRATCH, NodeMemory

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

DESCRIPTION = """\
Keeps this node as the OperatingSystemConfig of its worker pool says: files, units, containerd, tokens.

  run         follow the Secret that the configuration file names (the default)
  plan        print what a configuration would write and restart, and change nothing
  bootstrap   write the agent's own unit, start it, and end the unit that brought it
  reset       remove the agent's unit and state; what it configured stays
"""
_CONFIG = "config-*.yaml"


def start(arguments: list[str] | None = None) -> None:
    """Runs the command and ends the process."""
    chosen = _parser().parse_args(arguments)
    try:
        raise SystemExit(_COMMANDS[chosen.command](chosen))
    except (AgentConfigError, InvalidConfiguration, NodeFault, KubeError, OSError) as error:
        _fail(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hortus-node-agent", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", nargs="?", default="run", choices=sorted(_COMMANDS), help="(run)")
    parser.add_argument("--config-dir", default=FOLDER, help=f"folder with the configuration file ({FOLDER})")
    parser.add_argument("--root", type=Path, default=Path("/"), help="folder of the node's files (/)")
    parser.add_argument("--bus", default="", help="address of the D-Bus with systemd (the system's)")
    parser.add_argument("--osc", type=Path, help="plan: file with the OperatingSystemConfig")
    parser.add_argument("--hostname", default="", help="name of this host (the system's)")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="plan: its form (text)")
    return parser


def _run(chosen: argparse.Namespace) -> int:
    settings, config = _settings(chosen)
    _configure_logs(settings)
    return asyncio.run(_until_stopped(_serve(chosen, settings, config)))


async def _until_stopped(work: Awaitable[None]) -> int:
    """Runs `work` until a signal; an agent that restarts itself ends with 0, and systemd starts it again."""
    task = asyncio.ensure_future(work)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        await task
    except AgentRestart as restart:
        _log.info("the agent restarts", reason=str(restart))
    except asyncio.CancelledError:
        _log.info("the agent stops")
    return 0


async def _serve(chosen: argparse.Namespace, settings: NodeAgentConfiguration, config: str) -> None:
    from hortus.nodeagent.agent import NodeAgent
    from hortus.nodeagent.containerd import Containerd
    from hortus.nodeagent.host import LocalMachine
    from hortus.nodeagent.systemd import Systemd

    disk, clock = Disk(chosen.root, scratch=SCRATCH), SystemClock()
    hostname = chosen.hostname or host_name()
    if await credentials(disk, settings, clock, hostname=hostname):
        # The library for certificates stays in the memory of this process alone.
        os.execv(sys.executable, [sys.executable, "-m", "hortus.nodeagent.main", *sys.argv[1:]])  # noqa: S606
    from hortus.kube.kubeconfig import load

    access = load(disk.at(settings.kubeconfig)).access()
    units = Systemd(chosen.bus)
    agent = NodeAgent(
        settings,
        access,
        root=chosen.root,
        config=config,
        units=units,
        runtime=Containerd(),
        host=LocalMachine(),
        clock=clock,
        named=(lambda: hostname) if chosen.hostname else host_name,
    )
    try:
        await agent.run()
    finally:
        await units.close()


def _plan(chosen: argparse.Namespace) -> int:
    disk = Disk(chosen.root, scratch=SCRATCH)
    if chosen.osc is None:
        _fail("plan needs --osc FILE: the OperatingSystemConfig, as osc.yaml in the Secret of the worker pool")
    text = chosen.osc.read_bytes()
    memory = NodeMemory(disk, damaged_stays=True)
    old = memory.applied().value
    new = checked(text, before=old)
    rest, _ = memory.changes(checksum_of(text))
    hostname = chosen.hostname or host_name()
    remaining = rest.steps if rest is not None else None
    plan = planned(old, new, disk, hostname=hostname, path=path_of(disk), remaining=remaining)
    if chosen.output == "json":
        import msgspec

        document = {"steps": msgspec.to_builtins(plan.steps), "untouched": plan.untouched}
        sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        sys.stdout.write(shown(plan))
    return 0


def _bootstrap(chosen: argparse.Namespace) -> int:
    from hortus.nodeagent.host import LocalMachine
    from hortus.nodeagent.systemd import Systemd

    settings, _ = _settings(chosen)
    _configure_logs(settings)
    disk = Disk(chosen.root, scratch=SCRATCH)
    asyncio.run(bootstrap(disk, Systemd(chosen.bus), LocalMachine(), settings, config_dir=chosen.config_dir))
    return 0


def _reset(chosen: argparse.Namespace) -> int:
    from hortus.nodeagent.systemd import Systemd

    asyncio.run(reset(Disk(chosen.root, scratch=SCRATCH), Systemd(chosen.bus)))
    return 0


_COMMANDS = {"run": _run, "plan": _plan, "bootstrap": _bootstrap, "reset": _reset}


def _settings(chosen: argparse.Namespace) -> tuple[NodeAgentConfiguration, str]:
    """The newest configuration file of the folder, and its path on the node."""
    folder = Disk(chosen.root, scratch=SCRATCH).at(chosen.config_dir)
    found = sorted([*folder.glob(_CONFIG), *folder.glob("config.yaml")], key=lambda path: path.stat().st_mtime)
    if not found:
        _fail(f"{folder} has no {_CONFIG}: write a NodeAgentConfiguration, or set --config-dir")
    path = found[-1]
    try:
        return read(path.read_bytes()), f"{chosen.config_dir}/{path.name}"
    except AgentConfigError as error:
        raise AgentConfigError(f"{path}: {error}") from None


def _configure_logs(settings: NodeAgentConfiguration) -> None:
    level = {"debug": 10, "info": 20, "error": 40}[settings.log_level]
    configure_logging(LogSettings(level=level, encoder="json" if settings.log_format == "json" else "console"))


def _fail(problem: str) -> NoReturn:
    sys.stderr.write(f"error: {problem}\n")
    raise SystemExit(1)
