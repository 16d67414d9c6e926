"""`hortus stack`: the commands for authors and users of cluster stacks, one file for each group of them."""

from __future__ import annotations

from hortus.domains.stacks.commands import forms, publishing, using
from hortus.terminal import CommandGroup, Connect

_ABOUT = """Publish cluster stacks and use them.

A release of a cluster stack is a ClusterClass with its add-ons, published on
GitHub or in an OCI registry. docs/stacks explains all of it.
"""


def register(app: CommandGroup, connect: Connect) -> None:
    """Add this domain's commands to `app`; `connect` connects to the clusters that the user chose."""
    stack = CommandGroup("stack", panel="Fleet", help=_ABOUT, no_args_is_help=True)
    app.add_command(stack)
    publishing.register(stack)
    using.register(stack, connect)
    forms.register(stack, connect)
