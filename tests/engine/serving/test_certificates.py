"""Certificates of servers: when they are replaced, and which ones clients trust."""

from __future__ import annotations

import pytest

from hortus.engine.serving import ServingEndpoint, ServingPair, is_due, pair_of, self_signed


def test_a_certificate_is_replaced_before_its_end_for_another_name_and_for_its_own_key() -> None:
    pair = self_signed(["127.0.0.1", "a.example.org"], now=1_700_000_000)
    assert not is_due(pair, ["127.0.0.1"], now=1_700_000_000)
    assert is_due(pair, ["127.0.0.1"], now=1_700_000_000 + 61 * 86400)
    assert is_due(pair, ["b.example.org"], now=1_700_000_000)
    assert is_due(ServingPair(b"none", pair.key, b""), [], now=0)
    other = self_signed(["127.0.0.1"], now=1_700_000_000)
    assert is_due(pair._replace(key=other.key), ["127.0.0.1"], now=1_700_000_000)


def test_a_new_certificate_is_trusted_next_to_the_one_before() -> None:
    old = self_signed(["127.0.0.1"], now=1_700_000_000)
    new = self_signed(["127.0.0.1"], now=1_700_000_001, before=old)
    assert new.bundle == new.certificate + old.certificate
    assert pair_of({"tls.crt": "YQ=="}) is None


@pytest.mark.parametrize("host", ["[2001:DB8:0:0::1]", "[2001:0db8::0001]", "127.0.0.1", "Hooks.example.org"])
def test_a_certificate_for_the_host_of_a_url_is_not_due_at_once(host: str) -> None:
    names = ServingEndpoint(url=f"https://{host}:9443").names()
    assert not is_due(self_signed(names, now=1_700_000_000), names, now=1_700_000_000)
