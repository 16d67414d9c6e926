"""Certificates between a kube-apiserver and its buffer: renewed in time, and never without the trust of the other."""

from __future__ import annotations

import base64
import ssl
import time

import msgspec
import pytest
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.domains.garden.audit.extension.audited import certificates

from hortus.domains.garden.extension.certificates import (
    AUTHORITY_RENEW,
    DAY,
    LIFE,
    RENEW,
    SETTLED,
    ShootCertificates,
    ShootPair,
    read_certificates,
)
from hortus.kube.secret import Secret
from hortus.kube.tls import client_context, server_context

START = 1_800_000_000.0
YEAR = 365 * DAY


def serials(made: ShootCertificates) -> dict[str, int]:
    return {name: x509.load_pem_x509_certificate(one.certificate).serial_number for name, one in made.pairs.items()}


def trusts(made: ShootCertificates, pair: ShootPair) -> bool:
    """Reports whether a side that has the bundle of `made` accepts a certificate."""
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    for one in x509.load_pem_x509_certificates(made.bundle):
        try:
            certificate.verify_directly_issued_by(one)
        except Exception:
            continue
        return True
    return False


def test_certificates_that_serve_are_kept() -> None:
    made = certificates(START)
    assert certificates(START + LIFE - RENEW - DAY, made) == made
    assert read_certificates(made.data()) == made


def test_a_certificate_is_renewed_sixty_days_before_its_end_by_the_same_authority() -> None:
    made = certificates(START)
    later = certificates(START + LIFE - RENEW + DAY, made)
    assert later.authorities == made.authorities
    assert later.keys == made.keys
    assert all(later.pairs[name] != made.pairs[name] for name in made.pairs)
    assert all(trusts(made, pair) for pair in later.pairs.values())


def test_a_new_authority_is_trusted_before_it_signs() -> None:
    made = certificates(START)
    moment = START + 3650 * DAY - AUTHORITY_RENEW + DAY
    both = certificates(moment, made)
    assert both.authorities[1:] == made.authorities
    assert all(trusts(made, pair) for pair in both.pairs.values()), "sides with the former bundle go on"
    later = certificates(moment + YEAR, both)
    assert all(trusts(both, pair) for pair in later.pairs.values())
    assert not any(trusts(made, pair) for pair in later.pairs.values()), "by now the new one signs"


@settings(max_examples=40, deadline=None)
@given(steps=st.lists(st.floats(min_value=1, max_value=70), min_size=1, max_size=40))
def test_whoever_has_the_certificates_of_the_last_step_and_thirty_days_is_understood(steps: list[float]) -> None:
    """A kube-apiserver that was started at one step talks to a buffer of the next; each step is 70 days at most."""
    now, made = START, certificates(START)
    seen = [(now, made)]
    for days in [*steps, *[60.0] * 70]:
        now += days * DAY
        made = certificates(now, made)
        for name, pair in made.pairs.items():
            certificate = x509.load_pem_x509_certificate(pair.certificate)
            assert certificate.not_valid_after_utc.timestamp() > now, name
        for _, other in [one for one in seen if now - one[0] <= SETTLED] or seen[-1:]:
            assert all(trusts(other, pair) for pair in made.pairs.values())
            assert all(trusts(made, pair) for pair in other.pairs.values())
        seen.append((now, made))


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"ca.crt": "x"},
        {"ca.crt": base64.b64encode(b"-----BEGIN CERTIFICATE-----\nx").decode()},
        {"server.crt": base64.b64encode(b"x").decode(), "server.key": base64.b64encode(b"x").decode()},
        {"chain.key": "/w=="},
    ],
)
def test_a_secret_that_was_damaged_is_made_again(data: dict[str, str]) -> None:
    made = certificates(START, read_certificates(data))
    assert set(made.pairs) == {"server", "client"}
    assert all(trusts(made, pair) for pair in made.pairs.values())
    assert len(made.keys["chain.key"].reveal()) == 64


def test_a_key_that_is_not_that_of_its_certificate_is_replaced() -> None:
    made, other = certificates(START), certificates(START)
    mixed = ShootPair(made.pair("server").certificate, other.pair("server").key)
    found = certificates(START, msgspec.structs.replace(made, pairs={**made.pairs, "server": mixed}))
    assert found.pair("server") not in (mixed, made.pair("server"))
    assert found.pair("client") == made.pair("client")


def test_both_sides_make_a_tls_connection() -> None:
    made = certificates(time.time())
    pair = made.pair("server")
    server = server_context(certificate=pair.certificate, key=pair.key, client_ca=made.bundle)
    own = made.pair("client")
    client = client_context(ca=made.bundle, certificate=own.certificate, key=own.key)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    name = "audit-webhook-backend.shoot--bar--foo.svc.cluster.local"
    caller = client.wrap_bio(back, there, server_hostname=name)
    called = server.wrap_bio(there, back, server_side=True)
    for side in (caller, called, caller, called):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    peer = called.getpeercert()
    assert peer is not None
    assert peer["subject"] == ((("commonName", "kube-apiserver"),),)


def test_keys_do_not_print() -> None:
    made = certificates(START)
    assert "PRIVATE" not in repr(made)
    assert made.keys["chain.key"].reveal() not in repr(made)
    assert isinstance(made.keys["chain.key"], Secret)
