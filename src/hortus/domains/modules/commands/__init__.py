"""`hortus module`: the commands for authors and users of modules, one file for each group of them."""

from __future__ import annotations

from hortus.domains.modules.commands import publishing, using
from hortus.terminal import CommandGroup, Connect

_ABOUT = """Publish modules and use them.

A module is published as a component version in an OCI registry, with a
ModuleTemplate. docs/modules explains all of it.
"""


def register(app: CommandGroup, connect: Connect) -> None:
    """Add this domain's commands to `app`; `connect` connects to the clusters that the user chose."""
    module = CommandGroup("module", panel="Fleet", help=_ABOUT, no_args_is_help=True)
    app.add_command(module)
    using.register(module, connect)
    publishing.register(module, connect)
