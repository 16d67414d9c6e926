"""A load goes only where somebody has said that it may: into a cluster that bears a mark.

The mark is a label of the namespace `default`, which every cluster has; `hortus up` marks its own clusters. Shoots of
a real garden cost money, so the garden needs a mark of its own.
"""

from __future__ import annotations

from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource

MARK = "hortus.dev/simulation"
ALLOWED = "allowed"
NAMESPACE = "default"
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
MANAGER = "hortus-simulate"


class NotMarked(Exception):
    """The cluster does not bear the mark; the message says how to set it."""


def marked() -> Object:
    """The mark, for server-side apply."""
    return {
        "apiVersion": NAMESPACES.api_version,
        "kind": NAMESPACES.kind,
        "metadata": {"name": NAMESPACE, "labels": {MARK: ALLOWED}},
    }


async def require_mark(client: Client, which: str) -> None:
    """Raises NotMarked when loads are not allowed there; `which` is `management` or `garden`."""
    try:
        labels = (await client.get(NAMESPACES, NAMESPACE, metadata_only=True))["metadata"].get("labels") or {}
    except NotFound:
        labels = {}
    if labels.get(MARK) == ALLOWED:
        return
    option = " --garden" if which == "garden" else ""
    raise NotMarked(
        f"the {which} cluster at {client.host} is not marked for simulations, so nothing was done there. If it may be "
        f"loaded and its objects of a load be deleted, mark it: hortus simulate mark{option}\n"
        f"(or: kubectl label namespace {NAMESPACE} {MARK}={ALLOWED})"
    )


async def set_mark(client: Client) -> None:
    """Allow loads."""
    await client.apply(NAMESPACES, marked(), field_manager=MANAGER)


async def remove_mark(client: Client) -> None:
    """Allow them no longer."""
    await client.patch(NAMESPACES, NAMESPACE, {"metadata": {"labels": {MARK: None}}}, field_manager=MANAGER)
