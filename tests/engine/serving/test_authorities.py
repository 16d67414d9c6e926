"""Certificates by an authority of our own: clients that look at their bundle once in a month never refuse one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from hortus.engine.serving import IssuedPairs, KeptPairs, ServingPair, pair_from, renewed, values_of
from hortus.engine.serving.authorities import AUTHORITY_LIFE, NOTICE
from hortus.engine.serving.certificates import LIFE, RENEW
from hortus.kube import Secret

DAY = 86400.0
START = 1_700_000_000.0
NAMES = ["edge.monitoring.svc", "*.edge-headless.monitoring.svc"]


def made(now: float = START, kept: KeptPairs | None = None) -> IssuedPairs:
    return renewed(kept or KeptPairs(), NAMES, now=now)


def again(pairs: IssuedPairs, now: float, names: list[str] = NAMES) -> IssuedPairs:
    return renewed(KeptPairs(*pairs), names, now=now)


def verify(pair: ServingPair, bundle: bytes, now: float, name: str = NAMES[0]) -> None:
    """Verify as a client does at that time. Raises VerificationError."""
    policy = PolicyBuilder().store(Store(x509.load_pem_x509_certificates(bundle)))
    verifier = policy.time(datetime.fromtimestamp(now, UTC)).build_server_verifier(x509.DNSName(name))
    verifier.verify(x509.load_pem_x509_certificate(pair.certificate), [])


def authorities(pairs: IssuedPairs) -> int:
    return len(x509.load_pem_x509_certificates(pairs.serving.bundle))


def test_a_certificate_is_for_all_names_and_changes_only_when_it_is_due() -> None:
    first = made()
    for name in (NAMES[0], "pod.edge-headless.monitoring.svc"):
        verify(first.serving, first.serving.bundle, START, name)
    with pytest.raises(VerificationError):
        verify(first.serving, first.serving.bundle, START, "other.monitoring.svc")
    assert again(first, START + LIFE - RENEW - DAY) == first
    later = again(first, START + LIFE - RENEW + DAY)
    assert later.authority == first.authority
    assert later.serving.certificate != first.serving.certificate
    verify(later.serving, first.serving.bundle, START + LIFE - RENEW + DAY)


def test_clients_that_know_the_bundle_of_a_month_ago_trust_every_certificate_of_eight_years() -> None:
    pairs, changes = made(), 0
    states = [(START, pairs)]
    for look in range(1, 8 * 73):
        now = START + look * 5 * DAY
        after = again(pairs, now)
        changes += after != pairs
        pairs = after
        states.append((now, pairs))
        known = states[max(look - int(NOTICE / DAY / 5), 0)][1]
        verify(pairs.serving, known.serving.bundle, now)
        # Clients that do not reload until the server must show another certificate.
        verify(known.serving, pairs.serving.bundle, now)
        assert authorities(pairs) <= 2
    assert len({one.authority.certificate for _, one in states}) == 5
    assert changes < 8 * 365 / 50


def test_an_authority_that_was_lost_is_trusted_on_until_its_certificate_is_replaced() -> None:
    first = made()
    second = renewed(KeptPairs(None, first.serving), NAMES, now=START + DAY)
    assert second.serving.certificate == first.serving.certificate
    assert second.serving.bundle == second.authority.certificate + first.authority.certificate
    third = again(second, START + LIFE - RENEW + DAY)
    verify(third.serving, second.serving.bundle, START + LIFE - RENEW + DAY)


def test_no_kill_between_the_two_writes_has_clients_refuse_the_certificate() -> None:
    pairs = made()
    for day in range(1, 800, 10):
        now = START + day * DAY
        after = again(pairs, now)
        for half in (KeptPairs(after.authority, pairs.serving), KeptPairs(pairs.authority, after.serving)):
            found = renewed(half, NAMES, now=now)
            verify(found.serving, pairs.serving.bundle, now)
            verify(found.serving, found.serving.bundle, now)
        pairs = after


@pytest.mark.parametrize(
    "values",
    [{"tls.crt": b"none"}, {"tls.key": b"none"}, {"tls.key": "é".encode()}, {"ca.crt": b"none"}, {"ca.crt": b""}],
)
def test_what_cannot_be_used_is_made_again(values: dict[str, bytes]) -> None:
    first = made()
    broken = pair_from(values_of(first.serving) | values)
    for kept in (KeptPairs(first.authority, broken), KeptPairs(broken, None), KeptPairs(broken, broken)):
        found = made(kept=kept)
        verify(found.serving, found.serving.bundle, START)
        assert again(found, START) == found


def test_another_key_or_a_new_name_makes_a_certificate_again() -> None:
    first, other = made(), made()
    stolen = first.serving._replace(key=other.serving.key)
    assert made(kept=KeptPairs(first.authority, stolen)).serving.certificate != first.serving.certificate
    more = again(first, START, [*NAMES, "agent.example.org"])
    verify(more.serving, first.serving.bundle, START, "agent.example.org")
    assert again(more, START, NAMES) == more


def test_after_years_without_a_look_everything_is_made_again() -> None:
    now = START + AUTHORITY_LIFE + DAY
    found = again(made(), now)
    verify(found.serving, found.serving.bundle, now)
    assert authorities(found) == 1


def test_no_key_is_shown_by_a_text_of_the_pairs() -> None:
    first = made()
    assert isinstance(first.authority.key, Secret)
    assert "PRIVATE" not in repr(first)
