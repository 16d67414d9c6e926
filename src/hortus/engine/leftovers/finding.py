"""Leftovers as other commands show them: those of a cluster, each in one sentence."""

from __future__ import annotations

import shlex
from collections.abc import Collection

from hortus.engine.leftovers.debts import thing_of
from hortus.engine.leftovers.types import LEFTOVERS, Leftover, LeftoverItem
from hortus.engine.typed import NotReadable, read
from hortus.kube import Client
from hortus.kube.errors import Forbidden, NotFound
from hortus.kube.objects import Object

FLEET = "fleet"
"""The namespace of Leftovers where nobody chose another."""


async def leftovers_about(client: Client, namespace: str, names: Collection[str]) -> list[Leftover]:
    """The Leftovers with open items of clusters or objects that have one of these names in `namespace`.

    None where Leftovers are not served or may not be read. Raises KubeError.
    """
    try:
        listed = (await client.list(LEFTOVERS, FLEET)).items
    except (Forbidden, NotFound):
        return []
    return [
        one
        for one in map(_readable, listed)
        if one is not None and open_items(one) and _is_about(one, namespace, names)
    ]


def open_items(leftover: Leftover) -> list[LeftoverItem]:
    """The items that were not seen to be gone. One that was seen so stays so: another of its name is not it."""
    gone = {item.id for item in leftover.status.items if item.state == "Gone"}
    return [item for item in leftover.spec.items if item.id not in gone]


def summary_of(leftover: Leftover) -> str:
    """The open items in a few words: "ClusterRole x and 2 more may be left"."""
    first, *more = (thing_of(item) for item in open_items(leftover))
    return f"{first}{f' and {len(more)} more' if more else ''} may be left"


def sentence_of(leftover: Leftover) -> str:
    """The open items, the reason and the command that shows more."""
    known = leftover.spec.acknowledgement
    note = f", acknowledged by {known.by}" if known is not None else ""
    command = shlex.join(("hortus", "leftovers", "show", leftover.metadata.name))
    return f"{summary_of(leftover)} ({leftover.spec.reason}{note}): `{command}`"


def _readable(obj: Object) -> Leftover | None:
    try:
        return read(Leftover, obj)
    except NotReadable:
        return None


def _is_about(leftover: Leftover, namespace: str, names: Collection[str]) -> bool:
    source, cluster = leftover.spec.source, leftover.spec.cluster
    return (source.namespace == namespace and source.name in names) or (
        cluster.namespace == namespace and bool({cluster.name, cluster.shoot} & set(names))
    )
