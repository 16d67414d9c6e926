"""The Leases by which controllers of one fleet exclude each other: Hortus' own, and those of others who work there.

Hortus elects its leader by the Go system's Lease. Both exclude each other only in one namespace: a Lease of that name
that is held in the watched namespace, while Hortus is installed in another, means that two operators would work on the
same objects. So do the Leases of operators that a domain replaces, wherever they hold them; while Hortus runs, it does.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from hortus.cli.flags import ELECTION_NAME
from hortus.domains import all_domains
from hortus.engine.rivals import MADE_LABELS, is_hortus
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


async def rival(client: Client, namespace: str, values: Mapping[str, Any]) -> str:
    """The reason for which Hortus must not start in `namespace` with these values of flags: another operator works.

    Empty if none does.
    """
    wanted = [(ELECTION_NAME, str(values["watch-namespace"]), namespace)]
    wanted += [(lease.name, "", "") for domain in all_domains() for lease in domain.rivals() if lease.concerns(values)]
    for name, place, own in wanted:
        if reason := await _held(client, name, place, own):
            return reason
    return ""


async def _held(client: Client, name: str, namespace: str, own: str) -> str:
    """The reason that a Lease of that name gives which somebody holds outside of the namespace `own`."""
    try:
        leases = (await client.list(LEASES, namespace, fields=f"metadata.name={name}")).items
    except Forbidden:
        return ""
    for lease in leases:
        place = lease["metadata"]["namespace"]
        if place != own and is_held(lease) and not is_hortus(lease["spec"]["holderIdentity"]):
            spec = lease["spec"]
            return (
                f"{spec['holderIdentity']} works in namespace {place}, where it holds the lease {name}: two "
                "operators would work on the same objects; scale its Deployment to 0 and wait "
                f"{spec['leaseDurationSeconds']} s"
            )
    return ""


async def own_leases(client: Client, namespace: str) -> list[Object]:
    """The Leases that Hortus' replicas made in their namespace."""
    found = (await client.list(LEASES, namespace)).items
    return [lease for lease in found if lease["metadata"]["name"] == ELECTION_NAME or _is_made(lease)]


def _is_made(lease: Object) -> bool:
    labels = lease["metadata"].get("labels") or {}
    return GROUP_LABEL in labels or MADE_LABELS.items() <= labels.items()
