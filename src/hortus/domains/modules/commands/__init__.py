"""`hortus module`: the commands for authors and users of modules, one file for each group of them."""

from __future__ import annotations

from hortus.domains.modules.commands import community, direct, publishing, tables, using
from hortus.terminal import CommandGroup, Connect

_ABOUT = """Publish modules and use them.

A module is published as a component version in an OCI registry, with a
ModuleTemplate. docs/modules explains all of it.
"""


def register(app: CommandGroup, connect: Connect) -> None:
    """Add this domain's commands to `app`; `connect` connects to the clusters that the user chose."""
    module = CommandGroup("module", panel="Fleet", help=_ABOUT, no_args_is_help=True)
    app.add_command(module)
    _register_using(module, connect, split=False)
    direct.register(module, connect)
    publishing.register(module, connect)
    _register_alpha(app, connect)


def _register_using(module: CommandGroup, connect: Connect, *, split: bool) -> None:
    tables.register(module, connect, split=split)
    using.register(module, connect)
    community.register(module, connect)


def _register_alpha(app: CommandGroup, connect: Connect) -> None:
    """The form that Kyma's command line has as `alpha module`: `list` prints core and community modules apart."""
    alpha = CommandGroup("alpha", help="Commands in the form that `kyma alpha` has.", no_args_is_help=True)
    alpha.hidden = True
    module = CommandGroup("module", help=_ABOUT, no_args_is_help=True)
    alpha.add_command(module)
    _register_using(module, connect, split=True)
    app.add_command(alpha)
