"""The Leases by which controllers of one fleet exclude each other: Hortus' own, and those of others who work there.

Hortus elects its leader by the Go system's Lease. Both exclude each other only in one namespace: a Lease of that name
that is held in the watched namespace, while Hortus is installed in another, means that two operators would work on the
same objects.
"""

from __future__ import annotations

import time

from hortus.cli.flags import ELECTION_NAME
from hortus.engine.shards.records import GROUP_LABEL, LEASES
from hortus.kube import Client
from hortus.kube.errors import Forbidden
from hortus.kube.objects import Object, parse_time


def is_held(lease: Object) -> bool:
    """Returns whether somebody has renewed it within its duration, by this machine's clock."""
    spec = lease.get("spec") or {}
    try:
        renewed = parse_time(spec["renewTime"])
    except (KeyError, TypeError, ValueError):
        return False
    return bool(spec.get("holderIdentity")) and time.time() - renewed < float(spec.get("leaseDurationSeconds") or 0)


async def rival(client: Client, namespace: str, watched: str) -> str:
    """The reason for which Hortus must not start in `namespace`: another operator works on the objects of `watched`.

    Empty if none does. An empty `watched` stands for all namespaces.
    """
    try:
        leases = (await client.list(LEASES, watched, fields=f"metadata.name={ELECTION_NAME}")).items
    except Forbidden:
        return ""
    for lease in leases:
        place = lease["metadata"]["namespace"]
        if place != namespace and is_held(lease):
            spec = lease["spec"]
            return (
                f"{spec['holderIdentity']} works in namespace {place}, where it holds the lease {ELECTION_NAME}: two "
                "operators would work on the same objects; scale its Deployment to 0 and wait "
                f"{spec['leaseDurationSeconds']} s"
            )
    return ""


async def own_leases(client: Client, namespace: str) -> list[Object]:
    """The Leases that Hortus' replicas made in their namespace."""
    found = (await client.list(LEASES, namespace)).items
    return [
        lease
        for lease in found
        if lease["metadata"]["name"] == ELECTION_NAME or GROUP_LABEL in (lease["metadata"].get("labels") or {})
    ]
