"""The commands of `hortus`, put together; also reachable as `kubectl hortus`.

Commands that belong to a domain are added by its descriptor.
Modules that declare commands load click alone; a command imports what it works with when it is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from hortus import __version__
from hortus.cli import completion, credentialplugin, get, manifests, run, ui
from hortus.cli.arguments import hoisted
from hortus.cli.envtest import commands as envtest
from hortus.cli.fleet import commands as fleet
from hortus.cli.install import commands as install
from hortus.cli.install.present import installed_project, unserved_reason
from hortus.cli.new import commands as new
from hortus.cli.plan import commands as plan
from hortus.cli.simulate import commands as simulate
from hortus.cli.up import commands as up
from hortus.domains import all_domains
from hortus.terminal import CommandGroup, Connections
from hortus.terminal.completion import ContextName


def _connections(options: Mapping[str, Any]) -> Connections:
    """Connections to the clusters that the root options name."""
    from hortus.cli.up.state import default_directory, stopped

    chosen = options.get("state_dir")
    return Connections(
        local_state=chosen or default_directory(),
        local_chosen=chosen is not None,
        kubeconfig=options.get("kubeconfig"),
        context=options.get("context") or "",
        garden_kubeconfig=options.get("garden_kubeconfig"),
        garden_project=options.get("garden_project") or "",
        stopped=stopped,
        installed_project=installed_project,
        unserved_reason=unserved_reason,
    )


def _connect() -> Connections:
    return _connections(click.get_current_context().find_root().params)


class _Root(CommandGroup):
    """The root command: it accepts connection options anywhere on its line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, hoisted(args, commands_of_their_own=("run",)))


@click.group(
    cls=_Root, no_args_is_help=True, context_settings={"obj": _connections, "help_option_names": ["-h", "--help"]}
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Management cluster. Else $KUBECONFIG, else the local fleet if it runs, else ~/.kube/config.",
)
@click.option("--context", type=ContextName(), default="", metavar="NAME", help="Context of that kubeconfig.")
@click.option(
    "--garden-kubeconfig",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The garden. Else $GARDEN_KUBECONFIG, else garden.kubeconfig next to the management cluster's.",
)
@click.option(
    "--garden-project",
    default="",
    metavar="NAME",
    help="Hortus' project in the garden. Else that of the installation, else that of the garden's kubeconfig.",
)
@click.option(
    "--state-dir", type=click.Path(path_type=Path), metavar="DIR", help="State of the local fleet (`hortus up`)."
)
@click.version_option(__version__, message="hortus %(version)s", help="Print the version.")
def app(**_: object) -> None:
    """Grow, connect, equip, guard, move and retire fleets of Kubernetes clusters.

    Start here: `hortus up` runs a whole fleet control plane on this machine.
    """


def _register() -> None:
    up.register(app)
    get.register(app, _connect)
    credentialplugin.register(app, _connect)
    fleet.register(app, _connect)
    ui.register(app, _connect)
    run.register(app)
    install.register(app, _connect)
    simulate.register(app, _connect)
    plan.register(app, _connect)
    new.register(app)
    manifests.register(app)
    envtest.register(app)
    completion.register(app)
    for domain in all_domains():
        domain.add_commands(app, _connect)


_register()


@app.command(panel="On this machine", uses=())
def version() -> None:
    """Print the version."""
    click.echo(f"hortus {__version__}")
