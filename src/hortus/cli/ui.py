"""`hortus ui`: the dashboard in a browser, with the credential of the person who types it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click

from hortus.terminal import CommandGroup, Connections, GardenMissing, Number, run

Connect = Callable[[], Connections]


def register(app: CommandGroup, connect: Connect) -> None:
    @app.command(panel="Clusters")
    @click.option("--browser/--no-browser", default=True, help="Open the browser; the address is printed in any case.")
    @click.option("--here", is_flag=True, help="Start a dashboard of its own, also where `hortus up` runs one.")
    @click.option(
        "--port",
        type=Number(0, 65535),
        metavar="PORT",
        default=0,
        help="Port on 127.0.0.1 of a dashboard of its own; 0 takes any free one.",
    )
    def ui(browser: bool, here: bool, port: int) -> None:
        """Open the dashboard, signed in with your kubeconfig.

        Pages show and do what your credential allows, and nothing else. The dashboard of `hortus up` is used where it
        runs; for any other cluster one is started on this machine until Ctrl-C. The printed address opens one session
        within a minute. Another browser, or another person, signs in with a token.

        \b
        hortus ui
        hortus ui --kubeconfig management.yaml --no-browser
        """
        raise SystemExit(_open(connect(), browser=browser, here=here, port=port))


def _open(connections: Connections, *, browser: bool, here: bool, port: int) -> int:
    """Runs the dashboard's program, so that this one need not load it; returns its exit code."""
    from hortus.cli.up.supervisor import MODULE

    target = connections.target
    if not target.files:
        raise click.UsageError("no kubeconfig: `hortus ui` needs a file of yours, give --kubeconfig FILE")
    command = [*MODULE, "hortus.dashboard.main", "open", "--kubeconfig", str(target.files[0])]
    command += ["--context", target.context, "--port", str(port)]
    command += ["--browser" if browser else "--no-browser"]
    command += ["--state-dir", str(connections.folder)] if not here and not port else []
    if (garden := _garden_file(connections)) is not None:
        command += ["--garden-kubeconfig", str(garden), "--garden-namespace", run(_namespace(connections))]
    child = subprocess.Popen(command)  # noqa: S603 - our own interpreter with our own arguments
    # Ctrl-C reaches both; the dashboard ends by itself, and its exit code is ours.
    with suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return child.wait()


def _garden_file(connections: Connections) -> Path | None:
    """The file of the garden, where an option or its place names one."""
    try:
        return connections.garden_file
    except GardenMissing:
        return None


async def _namespace(connections: Connections) -> str:
    async with connections.management() as client:
        return await connections.garden_namespace(client, "")
