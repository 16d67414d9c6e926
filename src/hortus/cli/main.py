"""The `hortus` command; also reachable as `kubectl hortus`.

Commands that belong to a domain are added by its descriptor.
Heavy imports happen inside the commands, so that `--help` and completion answer at once.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from hortus import __version__
from hortus.cli import completion, get, run
from hortus.cli.arguments import hoisted
from hortus.cli.install import commands as install
from hortus.cli.simulate import commands as simulate
from hortus.cli.up import commands as up
from hortus.cli.up.state import default_directory
from hortus.domains import all_domains
from hortus.terminal import Connections


def _connections(options: Mapping[str, Any]) -> Connections:
    """What the root options say."""
    paths = {
        name: Path(options[name]) for name in ("state_dir", "kubeconfig", "garden_kubeconfig") if options.get(name)
    }
    return Connections(
        local_state=paths.get("state_dir") or default_directory(),
        kubeconfig=paths.get("kubeconfig"),
        context=options.get("context") or "",
        garden_kubeconfig=paths.get("garden_kubeconfig"),
    )


app = typer.Typer(
    name="hortus",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_show_locals=False,
    context_settings={"obj": _connections},
)
_chosen: dict[str, Connections] = {}


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"hortus {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    options: typer.Context,
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Management cluster. Else $KUBECONFIG, else the local fleet.")
    ] = None,
    context: Annotated[str, typer.Option(metavar="NAME", help="Context of that kubeconfig.")] = "",
    garden_kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The garden. Else $GARDEN_KUBECONFIG, else beside the other.")
    ] = None,
    state_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="State of the local fleet (`hortus up`).")
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Grow, connect, equip, guard, move and retire fleets of Kubernetes clusters.

    Start here: `hortus up` runs a whole fleet control plane on this machine.
    """
    _chosen["now"] = _connections(options.params)


def _connect() -> Connections:
    return _chosen["now"]


def _register() -> None:
    up.register(app)
    get.register(app, _connect)
    run.register(app)
    install.register(app, _connect)
    simulate.register(app, _connect)
    completion.register(app)
    for domain in all_domains():
        domain.add_commands(app, _connect)


_register()


def main() -> None:
    app(hoisted(sys.argv[1:], commands_of_their_own=("run",)))


def kubectl_main() -> None:
    app(hoisted(sys.argv[1:], commands_of_their_own=("run",)), prog_name="kubectl hortus")
