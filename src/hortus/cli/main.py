"""The `hortus` command; also reachable as `kubectl hortus`."""

from __future__ import annotations

import typer

app = typer.Typer(name="hortus", no_args_is_help=True, help=__doc__)


@app.callback()
def _root() -> None:
    """Grow, connect, equip, guard, move and retire fleets of Kubernetes clusters."""


def main() -> None:
    app()


def kubectl_main() -> None:
    app(prog_name="kubectl hortus")
