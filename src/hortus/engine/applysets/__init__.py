"""Sets of objects that are applied together, remembered, and pruned when they leave.

    parent = ConfigMapParent(client, "monitoring", "kube-system")
    live = WatchedLive(client, caches, field_manager="hortus", identity=parent.identity)
    policy = Policy(conflicts=Conflicts.FORCE, adopt=NO_ADOPTION)
    monitoring = ApplySet.of(client, parent, live=live, policy=policy)

    report = await monitoring.apply(objects)   # CRDs and namespaces first; what matches already costs no call
    report.complete, report.ready, report.message()
    await monitoring.plan(objects)             # the same run, without a write
    await monitoring.delete()                  # until report.complete

`client` is any `hortus.kube.Client`: the management cluster's, or `RemotePool.at(place)`. Members are marked as
KEP-3659 says, so `kubectl apply --prune --applyset` understands the set; the parent also remembers their uids.

- **Kill-safe**: the inventory never holds less than what exists (`inventory`).
- **Never foreign**: objects that somebody else made, that another set marked, that somebody made again, or that lost
  our label stay (`adoption`). The caller says which objects that exist are taken over, or that none are.
- **Nothing that holds data** is pruned unless allowed: namespaces and definitions wait until they are empty.
- **In stages**: what may have to finalize an object is not deleted before that is gone.
- **Nothing by mistake**: a set that was given nothing, or less than half of itself, prunes only with `whole`.
- **Readiness** by the rules of kstatus (`readiness`), a pure function of an object.
"""

from typing import TYPE_CHECKING

from hortus.engine.applysets.drift import FieldDrift, drift
from hortus.engine.applysets.readiness import ObjectStatus, Readiness, readiness
from hortus.facade import lazy

if TYPE_CHECKING:
    from hortus.engine.applysets.adoption import (
        NO_ADOPTION,
        AdoptionClaim,
        AdoptionPolicy,
        ForeignObject,
        FoundObjects,
        GrantedAdoption,
        LabelledAdoption,
        NoAdoption,
    )
    from hortus.engine.applysets.applying import ApplySet
    from hortus.engine.applysets.clients import ClusterClient, SetClient
    from hortus.engine.applysets.identity import PART_OF, part_of, set_id
    from hortus.engine.applysets.inventory import Inventory, InventoryEntry, Member
    from hortus.engine.applysets.live import Live, ServerLive, WatchedLive
    from hortus.engine.applysets.parents import ConfigMapParent, ForeignParent, Parent
    from hortus.engine.applysets.policy import Conflicts, Policy
    from hortus.engine.applysets.report import ApplyReport, ObjectAction, ObjectOutcome
    from hortus.engine.applysets.resources import (
        DiscoveredKinds,
        Kinds,
        KnownKinds,
        Namespaced,
        UnknownKind,
        UnreadableKinds,
    )
else:
    __getattr__ = lazy(
        __name__,
        {
            "adoption": "NO_ADOPTION AdoptionPolicy AdoptionClaim ForeignObject FoundObjects GrantedAdoption "
            "LabelledAdoption NoAdoption",
            "applying": "ApplySet",
            "clients": "ClusterClient SetClient",
            "identity": "PART_OF part_of set_id",
            "inventory": "Inventory InventoryEntry Member",
            "live": "Live ServerLive WatchedLive",
            "parents": "ConfigMapParent ForeignParent Parent",
            "policy": "Conflicts Policy",
            "report": "ApplyReport ObjectAction ObjectOutcome",
            "resources": "DiscoveredKinds Kinds KnownKinds Namespaced UnknownKind UnreadableKinds",
        },
    )

__all__ = [
    "NO_ADOPTION",
    "PART_OF",
    "AdoptionClaim",
    "AdoptionPolicy",
    "ApplyReport",
    "ApplySet",
    "ClusterClient",
    "ConfigMapParent",
    "Conflicts",
    "DiscoveredKinds",
    "FieldDrift",
    "ForeignObject",
    "ForeignParent",
    "FoundObjects",
    "GrantedAdoption",
    "Inventory",
    "InventoryEntry",
    "Kinds",
    "KnownKinds",
    "LabelledAdoption",
    "Live",
    "Member",
    "Namespaced",
    "NoAdoption",
    "ObjectAction",
    "ObjectOutcome",
    "ObjectStatus",
    "Parent",
    "Policy",
    "Readiness",
    "ServerLive",
    "SetClient",
    "UnknownKind",
    "UnreadableKinds",
    "WatchedLive",
    "drift",
    "part_of",
    "readiness",
    "set_id",
]
