"""Certificates by an authority of our own, for servers of others: clients go on trusting one that is renewed.

    kept = renewed(kept, ["edge.monitoring.svc"], now=clock.now())

The authority outlives its certificates, so that clients need a new one rarely, and can have it long before. It is
replaced while a young certificate of the one before is in use; what it signs is shown only when that has to be renewed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from hortus.engine.serving.certificates import LIFE, RENEW, SKEW, ServingPair, is_due
from hortus.kube.tls import server_context

AUTHORITY_LIFE: Final = 730 * 86400.0
"""Seconds that an authority is valid."""
AUTHORITY_RENEW: Final = 2 * LIFE
"""Seconds before its end at which an authority is replaced: its last certificate ends before it."""
NOTICE: Final = RENEW
"""Seconds at least that clients may take over a new authority before a server shows a certificate of it."""


class KeptPairs(NamedTuple):
    """The pairs that are kept of one server; None for each that is not there."""

    authority: ServingPair | None = None
    """The authority with its key, which only the maker of certificates reads."""
    serving: ServingPair | None = None
    """The pair of the server, with all authorities that clients are to trust."""


class IssuedPairs(NamedTuple):
    """The pairs that are to be kept."""

    authority: ServingPair
    serving: ServingPair


def renewed(kept: KeptPairs, names: Sequence[str], *, now: float) -> IssuedPairs:
    """The pairs for a server of these names: those that are kept, but for what is missing or due."""
    from hortus.engine.serving.issuing import authorities_alive, authority_made, signed

    authority, serving = kept
    if serving is not None and (is_due(serving, names, now=now) or not _is_vouched_for(serving)):
        serving = None
    if authority is None or _is_replaced(authority, serving, now=now):
        certificate, key = authority_made(begins=now - SKEW, ends=now + AUTHORITY_LIFE)
        authority = ServingPair(certificate, key, certificate)
    former = [pair.bundle for pair in kept if pair is not None]
    bundle = authorities_alive([authority.certificate, *former], now=now)
    if serving is None:
        certificate, key = signed(names, authority.certificate, authority.key, begins=now - SKEW, ends=now + LIFE)
        serving = ServingPair(certificate, key, bundle)
    return IssuedPairs(authority, serving._replace(bundle=bundle))


def _is_replaced(authority: ServingPair, serving: ServingPair | None, *, now: float) -> bool:
    """Reports whether an authority gives way: its end is near and clients have time, or it can sign no more."""
    from hortus.engine.serving.issuing import is_authority

    try:
        server_context(certificate=authority.certificate, key=authority.key)
        left = authority.ends - now if is_authority(authority.certificate) else 0.0
    except ValueError:
        return True
    has_time = serving is not None and serving.ends - now >= RENEW + NOTICE
    return left < LIFE or (left < AUTHORITY_RENEW and has_time)


def _is_vouched_for(pair: ServingPair) -> bool:
    """Reports whether clients that trust the bundle trust the certificate."""
    from hortus.engine.serving.issuing import is_signed_by

    return is_signed_by(pair.certificate, pair.bundle)
