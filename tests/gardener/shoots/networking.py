"""Changes of `spec.networking` and `spec.dns`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.gardener.shoots.mutations import (
    FROM_135,
    GONE,
    UNTIL_134,
    VERSION,
    Changes,
    Family,
    Mutation,
    faults,
    one,
    variants,
)

_N: Final = "s/networking"
_SIX: Final = {"nodes": "fd00:10::/64", "pods": "fd00:11::/64", "services": "fd00:12::/108", "ipFamilies": ["IPv6"]}
_SECRET: Final = {"apiVersion": "v1", "kind": "Secret", "name": "dns-secret"}
_IDENTITY: Final = {
    "apiVersion": "security.gardener.cloud/v1alpha1",
    "kind": "WorkloadIdentity",
    "name": "dns-identity",
}


def _provider(version: tuple[str, ...] = FROM_135, /, **fields: object) -> Changes:
    """A provider that is valid but for these fields."""
    whole = {"type": "aws-route53", "primary": True, "credentialsRef": _SECRET, **fields}
    return {
        VERSION: one(*version),
        "s/dns/domain": "drawn.example.org",
        "s/dns/providers": [{name: value for name, value in whole.items() if value is not GONE}],
    }


def _ranges(name: str) -> dict[str, Changes]:
    return {
        f"{name}-no-range": {_N: {name: one("10.0.0.0", "abc", "10.0.0.0/33", "")}},
        f"{name}-of-the-other-family": {_N: {name: "fd00:10::/64", "ipFamilies": ["IPv4"]}},
        f"{name}-of-the-other-family-in-ipv6": {_N: {**_SIX, name: "10.250.0.0/16"}},
        f"{name}-not-canonical": {_N: {name: one("10.250.1.0/16", "10.0.0.1/8")}},
    }


_RANGES: Final[dict[str, Changes]] = {**_ranges("nodes"), **_ranges("pods"), **_ranges("services")}

_NETWORKING: Final[dict[str, Changes]] = {
    "networking-missing": {_N: one(GONE, None)},
    "networking-without-a-type": {f"{_N}/type": one("", GONE)},
    "networking-type-bad": {f"{_N}/type": one("my type", "a/b", "x" * 64)},
    "family-unknown": {_N: {"ipFamilies": one(["IPv5"], ["IPv4", "ipv6"])}},
    "family-twice": {_N: {"ipFamilies": one(["IPv4", "IPv4"], ["IPv6", "IPv6"])}},
}

_DNS: Final[dict[str, Changes]] = {
    "domain-bad": {"s/dns": {"domain": one("not a domain", "Upper.example.org", "a..b", "")}},
    "domain-missing": {"s/dns": {"providers": [{"type": "aws-route53", "primary": True, "credentialsRef": _SECRET}]}},
    "secret-from-135": _provider(secretName="dns-secret"),
    "secret-until-134-and-another-reference": _provider(UNTIL_134, secretName="other"),
    "secret-empty": _provider(UNTIL_134, secretName="", credentialsRef=GONE),
    "secret-alone": _provider(UNTIL_134, secretName="dns-secret", credentialsRef=GONE, type=GONE),
    "reference-without-a-secret": _provider(UNTIL_134, credentialsRef={**_SECRET, "name": "another"}, secretName=""),
    "secret-and-an-identity": _provider(UNTIL_134, secretName="dns-secret", credentialsRef=_IDENTITY),
    "secret-and-an-identity-from-135": _provider(secretName="dns-secret", credentialsRef=_IDENTITY),
    "dns-reference-without-a-version": _provider(credentialsRef={**_SECRET, "apiVersion": ""}),
    "dns-reference-without-a-kind": _provider(credentialsRef={**_SECRET, "kind": ""}),
    "dns-reference-without-a-name": _provider(credentialsRef={**_SECRET, "name": ""}),
    "dns-reference-bad-name": _provider(credentialsRef={**_SECRET, "name": "Bad_Name"}),
    "dns-reference-of-another-kind": _provider(credentialsRef={**_SECRET, "kind": one("ConfigMap", "Nope")}),
    "provider-twice": {
        VERSION: one(*FROM_135),
        "s/dns": {
            "domain": "drawn.example.org",
            "providers": [
                {"type": "aws-route53", "primary": True, "credentialsRef": _SECRET},
                {"type": "aws-route53", "credentialsRef": _SECRET},
            ],
        },
    },
    "two-primary-providers": {
        VERSION: one(*FROM_135),
        "s/dns": {
            "domain": "drawn.example.org",
            "providers": [
                {"type": "aws-route53", "primary": True, "credentialsRef": _SECRET},
                {"type": "google-clouddns", "primary": True, "credentialsRef": _SECRET},
            ],
        },
    },
    "unmanaged-with-a-reference": _provider(type="unmanaged"),
    "reference-without-a-type": _provider(type=GONE),
    "provider-without-a-function": _provider(primary=GONE, credentialsRef=GONE),
}

_VARIANTS: Final[dict[str, Changes]] = {
    "six": {_N: _SIX},
    "both-families": {_N: {"ipFamilies": ["IPv4", "IPv6"]}},
    "without-ranges": {_N: {"nodes": GONE, "pods": GONE, "services": GONE}},
}

_DNS_VARIANTS: Final[dict[str, Changes]] = {
    "domain": {"s/dns": {"domain": "drawn.example.org"}},
    "unmanaged": {"s/dns": {"providers": [{"type": "unmanaged", "primary": True}]}},
    "dns-secret-until-134": _provider(UNTIL_134, secretName="dns-secret"),
    "dns-secret-alone-until-134": _provider(UNTIL_134, secretName="dns-secret", credentialsRef=_SECRET),
    "dns-reference": _provider(),
    "dns-identity": _provider(credentialsRef=_IDENTITY),
}


def mutations() -> Iterator[Mutation]:
    yield from faults(Family.WORKERS, {**_RANGES, **_NETWORKING})
    yield from faults(Family.ANY, _DNS)
    yield from variants(Family.WORKERS, _VARIANTS)
    yield from variants(Family.ANY, _DNS_VARIANTS)
