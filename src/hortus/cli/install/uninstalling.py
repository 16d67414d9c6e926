"""The work of `hortus uninstall`: lists the objects, asks, and deletes them."""

from __future__ import annotations

from collections.abc import Sequence

from hortus.cli.install.removing import Removal, remove_account
from hortus.terminal import Connect, confirm, print_line


async def uninstall_account(connect: Connect, project: str, *, yes: bool) -> None:
    async with connect().garden() as client:
        confirm(f"Delete Hortus' account in project {project} of {client.host}?", yes=yes)
        await remove_account(client, project, print_line)


async def uninstall_hortus(
    connect: Connect, *, namespace: str, delete_crds: bool, delete_namespace: bool, yes: bool, timeout: float
) -> None:
    async with connect().management() as client:
        removal = Removal(client, namespace, crds=delete_crds, own_namespace=delete_namespace)
        plan = await removal.plan()
        if not yes:
            _list(f"This is deleted from {client.host}:", plan.deleted)
            _list("This stays:", plan.kept)
        confirm(f"Uninstall Hortus from namespace {namespace} of {client.host}?", yes=yes)
        await removal.apply(print_line, timeout=timeout)
        if plan.kept and yes:
            _list("This stays:", plan.kept)


def _list(title: str, lines: Sequence[str]) -> None:
    if lines:
        print_line(title)
        for line in lines:
            print_line(f"  {line}")
