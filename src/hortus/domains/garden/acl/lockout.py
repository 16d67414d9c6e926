"""Rules that lock out those who must get in: everybody, or addresses that the owner wants to keep open. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from hortus.domains.garden.acl.cidrs import EVERYWHERE, Cidr, without
from hortus.domains.garden.acl.config import AccessList
from hortus.schema import FieldError
from hortus.schema.problems import forbidden, shown

CONFIRM = "set confirmLockout: true if that is intended"


def admitted(access: AccessList) -> list[Cidr]:
    """The addresses that the rules let in, besides those that every list lets in."""
    allowed = access.allowed
    return without(allowed if allowed else EVERYWHERE, access.denied)


def lockouts(access: AccessList, path: str) -> list[FieldError]:
    """The errors for a list that locks out everybody, or an address to keep open; none where that is confirmed."""
    if not access.rules or access.lockout_confirmed:
        return []
    let_in = admitted(access)
    if not let_in:
        problem = f"the rules let nobody in but the cluster's own nodes; {CONFIRM}"
        return [forbidden(f"{path}.rules" if len(access.rules) > 1 else f"{path}.rule", problem)]
    return [
        forbidden(
            f"{path}.keepOpenFor",
            f"the rules lock out {', '.join(map(str, left))} of {shown(str(kept))}; allow it, or {CONFIRM}",
        )
        for kept in access.keep_open_for
        if (left := without([kept], let_in))
    ]


def open_families(access: AccessList) -> Sequence[Cidr]:
    """The whole address spaces that the rules let in, of IPv4 and IPv6."""
    let_in = admitted(access)
    return [one for one in EVERYWHERE if not without([one], let_in)]
