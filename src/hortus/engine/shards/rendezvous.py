"""The member that an object belongs to: the one whose hash with the object's key is the highest.

Every member gets its answer alone, from the key and the names of the members, without a table that would have to be
agreed on. A member that comes takes from each other one its share and nothing moves between those; one that goes leaves
its own to all others evenly (Thaler and Ravishankar, "Using Name-Based Mappings to Increase Hit Rates", 1998).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from hortus.kube.objects import ObjectKey


def weight(member: str, key: ObjectKey) -> tuple[int, str]:
    """The bid of `member` for `key`; no two members bid the same."""
    # A name holds no NUL, so that no two pairs of member and key are hashed as the same text.
    text = f"{member}\0{key.namespace}\0{key.name}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()), member


def owner(members: Iterable[str], key: ObjectKey) -> str:
    """The member that bids most. Raises ValueError when there is none."""
    return max(weight(member, key) for member in members)[1]


__all__ = ["owner", "weight"]
