"""Replicas that divide the objects of their controllers among them: `Shards`, the `Assignment` of a sharded process.

    shards = Shards(client, group="hortus", namespace="kcp-system", clock=clock)
    manager = Manager(client, clock=clock, shards=shards)

- `rendezvous`: which member an object belongs to, from nothing but names.
- `records`: a member's Lease, as written and as read.
- `roster`: the protocol, pure: who is there, what is ours, who may act until when.
- `leasing`: the calls about the Leases.
- `membership`: the timers and tasks around it.

What is guaranteed, and on which assumptions: docs/adr/0010-shards.md.
"""

from typing import TYPE_CHECKING

from hortus.facade import lazy

if TYPE_CHECKING:
    from hortus.engine.shards.membership import Shards
    from hortus.engine.shards.records import GROUP_LABEL, HELD, LeaseRecord
    from hortus.engine.shards.rendezvous import owner, weight
    from hortus.engine.shards.roster import MemberRoster, Permit
else:
    __getattr__ = lazy(
        __name__,
        {
            "membership": "Shards",
            "records": "GROUP_LABEL HELD LeaseRecord",
            "rendezvous": "owner weight",
            "roster": "MemberRoster Permit",
        },
    )

__all__ = [
    "GROUP_LABEL",
    "HELD",
    "LeaseRecord",
    "MemberRoster",
    "Permit",
    "Shards",
    "owner",
    "weight",
]
