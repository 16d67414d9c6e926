"""The configuration of an air gap, read from the Shoot and cleaned. Pure.

    apiVersion: airgap.garden.hortus.dev/v1alpha1
    kind: AirGapConfig
    mode: Audit
    allow:
      - {cidrs: [198.51.100.10/32], ports: [443, 8443, 8132], reason: the seed's gateway}
      - {fqdns: [ntp.example.org], cidrs: [198.51.100.53/32], ports: [123], protocol: UDP, reason: time}
    registry:
      mirror: https://images.example.org/all

A firewall matches addresses, not names: an entry with `fqdns` needs `cidrs` once it is enforced.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from hortus.domains.garden.airgap.names import API_VERSION, KIND
from hortus.domains.garden.extension.fields import LAST_PORT, FieldReader, parse_network
from hortus.schema import FieldError
from hortus.schema.problems import duplicate, invalid, not_supported, required, type_invalid

Cidr = IPv4Network | IPv6Network

AUDIT: Final = "Audit"
ENFORCE: Final = "Enforce"
MODES: Final = (AUDIT, ENFORCE)
PROTOCOLS: Final = ("TCP", "UDP")


class AllowedDestination(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the allow-list."""

    cidrs: tuple[Cidr, ...] = ()
    fqdns: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    """Empty for all ports."""
    protocol: str = "TCP"
    reason: str = ""

    def has(self, host: str, port: int, protocol: str) -> bool:
        """Reports whether the entry lets a node call a host, given as name or address, at a port."""
        if protocol != self.protocol or (self.ports and port not in self.ports):
            return False
        if host in self.fqdns:
            return True
        try:
            address = ip_network(host)
        except ValueError:
            return False
        return any(one.version == address.version and address.subnet_of(one) for one in self.cidrs)  # type: ignore[arg-type]


class MirrorRegistry(msgspec.Struct, frozen=True, kw_only=True):
    """The registry that has all images."""

    mirror: str = ""
    """Its address, perhaps with a path; empty for none."""
    bundle: str = ""
    """Name in spec.resources of the Secret with its authorities."""
    secret: str = ""
    """Name in spec.resources of the Secret with the user for Basic authentication."""
    strict: bool = True
    """True where nothing may be pulled from elsewhere."""

    @property
    def host(self) -> str:
        """The host of the mirror, without its port."""
        return urlsplit(self.mirror).hostname or ""

    @property
    def path(self) -> str:
        """The folder of the mirror that images lie in, without slashes around it."""
        return urlsplit(self.mirror).path.strip("/")

    @property
    def port(self) -> int:
        """The port of the mirror."""
        found = urlsplit(self.mirror)
        return found.port or (80 if found.scheme == "http" else 443)


class AirGap(msgspec.Struct, frozen=True, kw_only=True):
    """The air gap of one Shoot."""

    mode: str = AUDIT
    allow: tuple[AllowedDestination, ...] = ()
    registry: MirrorRegistry = MirrorRegistry()
    namespaces: tuple[str, ...] = ()
    """Namespaces of the Shoot whose pods a NetworkPolicy holds to the list."""

    @property
    def is_enforced(self) -> bool:
        """True where other destinations are refused, false where they are counted."""
        return self.mode == ENFORCE


class ReadAirGap(msgspec.Struct, frozen=True):
    """A configuration as far as it can be read, and the problems with it."""

    gap: AirGap
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


class _WrittenGap(msgspec.Struct, rename="camel"):
    api_version: Any = None
    kind: Any = None
    mode: Any = None
    allow: Any = None
    registry: Any = None
    namespaces: Any = None


class _WrittenEntry(msgspec.Struct):
    cidrs: Any = None
    fqdns: Any = None
    ports: Any = None
    protocol: Any = None
    reason: Any = None


class _WrittenRegistry(msgspec.Struct, rename="camel"):
    mirror: Any = None
    ca_bundle_secret_reference_name: Any = None
    secret_reference_name: Any = None
    strict: Any = None


def read_config(config: Any, path: str) -> ReadAirGap:
    """Read and clean a configuration at `path`."""
    if config is None:
        return ReadAirGap(AirGap(), (required(path, f"give an {KIND} of {API_VERSION}"),))
    if not isinstance(config, Mapping):
        return ReadAirGap(AirGap(), (type_invalid(path, config, "must be an object"),))
    reader = _Reader()
    written = reader.struct(config, _WrittenGap, path)
    for key, value, expected in (("apiVersion", written.api_version, API_VERSION), ("kind", written.kind, KIND)):
        if value not in (None, expected):
            reader.errors.append(not_supported(f"{path}.{key}", value, [expected]))
    gap = AirGap(
        mode=reader.choice(written.mode, f"{path}.mode", MODES),
        allow=tuple(
            reader.entry(one, f"{path}.allow[{index}]")
            for index, one in enumerate(reader.items(written.allow, f"{path}.allow"))
        ),
        registry=reader.registry(written.registry, f"{path}.registry"),
        namespaces=reader.names(written.namespaces, f"{path}.namespaces"),
    )
    reader.names_without_addresses(gap, path)
    return ReadAirGap(gap, tuple(reader.errors), tuple(reader.warnings))


class _Reader(FieldReader):
    def entry(self, value: Any, path: str) -> AllowedDestination:
        written = self.struct(value, _WrittenEntry, path)
        if not isinstance(value, Mapping):
            return AllowedDestination()
        made = AllowedDestination(
            cidrs=self._cidrs(written.cidrs, f"{path}.cidrs"),
            fqdns=self.names(written.fqdns, f"{path}.fqdns"),
            ports=self._ports(written.ports, f"{path}.ports"),
            protocol=self.choice(written.protocol, f"{path}.protocol", PROTOCOLS),
            reason=self.text(written.reason, f"{path}.reason"),
        )
        if written.cidrs is None and written.fqdns is None:
            self.errors.append(required(path, "give cidrs, or fqdns, or both"))
        if written.reason is None:
            self.errors.append(required(f"{path}.reason", "name what needs the destination"))
        return made

    def registry(self, value: Any, path: str) -> MirrorRegistry:
        if value is None:
            return MirrorRegistry()
        written = self.struct(value, _WrittenRegistry, path)
        if not isinstance(value, Mapping):
            return MirrorRegistry()
        if written.mirror is None:
            self.errors.append(required(f"{path}.mirror", "give the address of the registry that has all images"))
        bundle = f"{path}.caBundleSecretReferenceName"
        return MirrorRegistry(
            mirror=self.registry_address(written.mirror, f"{path}.mirror"),
            bundle=self.text(written.ca_bundle_secret_reference_name, bundle),
            secret=self.text(written.secret_reference_name, f"{path}.secretReferenceName"),
            strict=self.flag(written.strict, f"{path}.strict", default=True),
        )

    def names_without_addresses(self, gap: AirGap, path: str) -> None:
        for index, one in enumerate(gap.allow):
            place = f"{path}.allow[{index}].cidrs"
            if one.fqdns and not one.cidrs and gap.is_enforced:
                self.errors.append(required(place, "a firewall matches addresses: give those of the names in fqdns"))
            elif one.fqdns and not one.cidrs:
                self.warnings.append(f"{place}: empty; Enforce needs the addresses of {', '.join(one.fqdns)}")
            if any(not cidr.prefixlen for cidr in one.cidrs):
                self.warnings.append(f"{path}.allow[{index}].cidrs: lets nodes call every address")

    def _cidrs(self, value: Any, path: str) -> tuple[Cidr, ...]:
        found: list[Cidr] = []
        for index, one in enumerate(self.items(value, path)):
            place = f"{path}[{index}]"
            try:
                if not isinstance(one, str) or "/" not in one:
                    raise ValueError("must have a prefix length, as 10.0.0.0/8 has")
                network = parse_network(one)
            except ValueError as error:
                self.errors.append(invalid(place, one, str(error)))
                continue
            if network in found:
                self.errors.append(duplicate(place, one))
            else:
                found.append(network)
        return tuple(found)

    def _ports(self, value: Any, path: str) -> tuple[int, ...]:
        found: list[int] = []
        for index, one in enumerate(self.items(value, path)):
            if isinstance(one, bool) or not isinstance(one, int) or not 0 < one <= LAST_PORT:
                self.errors.append(invalid(f"{path}[{index}]", one, f"must be a number from 1 to {LAST_PORT}"))
            elif one in found:
                self.errors.append(duplicate(f"{path}[{index}]", one))
            else:
                found.append(one)
        return tuple(found)
