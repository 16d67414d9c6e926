"""The authority's rotation: bundle first, agents second, gateway last."""

from __future__ import annotations

import base64
import time

import pytest

from hortus.domains.modules.watching.authorities import IssuedPair, certificates, distrust, issued_client, new_authority
from hortus.domains.modules.watching.rotation import (
    ROOT_DURATION,
    ROOT_RENEW_BEFORE,
    GatewayContent,
    next_gateway,
    root_is_due,
)
from hortus.domains.modules.watching.secrets import SecretMetadata, TlsSecret
from hortus.kube.objects import format_time

DAY = 86400.0
GRACE = 4 * DAY
NOW = 1_700_000_000.0


def pair(now: float = NOW, *, seconds: float = 90 * DAY) -> IssuedPair:
    return new_authority(["listener.example.org"], now=now, seconds=seconds)


def secret(root: IssuedPair) -> TlsSecret:
    values = {"ca.crt": root.certificate, "tls.crt": root.certificate, "tls.key": root.key}
    return TlsSecret(
        SecretMetadata("klm-watcher", "istio-system"),
        {name: base64.b64encode(value).decode() for name, value in values.items()},
    )


def step(root: IssuedPair, gateway: GatewayContent | None, now: float) -> GatewayContent:
    return next_gateway(secret(root), gateway, now=now, switch_after=GRACE)


def test_the_gateways_secret_begins_as_the_root() -> None:
    """2.5: no gateway Secret: create it from the root with caAddedToBundleAt = now."""
    root = pair()
    assert step(root, None, NOW) == GatewayContent(root.certificate, root.certificate, root.key, format_time(NOW))


def test_a_settled_gateway_is_not_changed() -> None:
    root = pair()
    first = step(root, None, NOW)
    assert step(root, first, NOW + DAY) == step(root, first, NOW + 10 * DAY) == first


def test_a_new_root_enters_the_bundle_first_and_serves_after_the_grace_period() -> None:
    """2.5: prepend to the bundle, note the time; switch certificate and key after four days."""
    old, new = pair(), pair(NOW + 29 * DAY)
    later = NOW + 29 * DAY
    added = step(new, step(old, None, NOW), later)
    assert added.bundle == new.certificate + old.certificate
    assert (added.certificate, added.key, added.added_at) == (old.certificate, old.key, format_time(later))
    assert step(new, added, later + GRACE) == added
    switched = step(new, added, later + GRACE + 1)
    assert switched == GatewayContent(added.bundle, new.certificate, new.key, added.added_at)


def test_at_each_moment_both_sides_trust_each_other() -> None:
    """A client of any age and the gateway verify each other from the first day of the old root to its end."""
    old, new = pair(), pair(NOW + 29 * DAY)
    gateway = None
    client = issued_client(old, "r", ["d"], now=NOW, seconds=60 * DAY)
    for day in range(89):
        now = NOW + day * DAY
        root = old if day < 29 else new
        gateway = step(root, gateway, now)
        if day == 31:  # the agent's turn, some time after the bundle
            client = issued_client(new, "r", ["d"], now=now, seconds=60 * DAY)
        bundle = certificates(gateway.bundle)
        assert distrust(certificates(client.certificate)[0], bundle, now=now) == ""
        assert certificates(gateway.certificate)[0] in bundle


def test_expired_authorities_leave_the_bundle() -> None:
    """2.5: drop expired certificates."""
    old, new = pair(), pair(NOW + 29 * DAY)
    gateway = step(new, step(old, None, NOW), NOW + 29 * DAY)
    assert step(new, gateway, NOW + 91 * DAY).bundle == new.certificate


def test_a_bundle_that_cannot_be_read_is_written_again() -> None:
    root = pair()
    broken = GatewayContent(b"-----BEGIN CERTIFICATE-----AA-----END CERTIFICATE-----", b"", b"", "yesterday")
    found = step(root, broken, NOW)
    assert (found.bundle, found.added_at) == (root.certificate, format_time(NOW))


@pytest.mark.parametrize("values", [{}, {"tls.crt": "!"}, {"tls.crt": base64.b64encode(b"x").decode()}])
def test_a_root_that_cannot_be_read_is_refused(values: dict[str, str]) -> None:
    root = TlsSecret(SecretMetadata("klm-watcher", "istio-system"), values)
    with pytest.raises(ValueError, match=r"tls\.crt and tls\.key"):
        next_gateway(root, None, now=NOW, switch_after=GRACE)


def test_hortus_makes_another_root_when_it_ends_soon_or_serves_under_another_name() -> None:
    made = secret(pair(seconds=ROOT_DURATION))
    names = ["listener.example.org"]
    until = NOW + ROOT_DURATION - ROOT_RENEW_BEFORE
    assert root_is_due(None, names, now=NOW)
    assert not root_is_due(made, names, now=until)
    assert root_is_due(made, names, now=until + 1)
    assert root_is_due(made, ["10.0.0.1"], now=NOW)


def test_addresses_and_names_are_both_served() -> None:
    both = new_authority(["10.0.0.1", "x.example.org"], now=time.time(), seconds=60)
    assert not root_is_due(secret(both), ["10.0.0.1", "x.example.org"], now=time.time() - ROOT_RENEW_BEFORE)
