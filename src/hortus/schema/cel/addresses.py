"""IP addresses and networks in expressions."""

from __future__ import annotations

import ipaddress

from hortus.schema.cel.binding import CelFunction, Overload
from hortus.schema.cel.tagged import Tagged, body, parses

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Interface | ipaddress.IPv6Interface


def _address(text: str) -> _Address:
    if "%" in text:
        raise ValueError(f"IP Address {text!r} parse error during conversion from string: zones are not allowed")
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(f"IP Address {text!r} parse error during conversion from string") from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise ValueError(f"IPv4-mapped IPv6 address {text!r} is not allowed")
    return address


def _ip(text: str) -> Tagged:
    return {"@ip": str(_address(text))}


def _is_canonical(text: str) -> bool:
    return str(_address(text)) == text


def _ip_of(value: Tagged) -> _Address:
    return ipaddress.ip_address(body(value, "@ip"))


def _is_global_unicast(value: Tagged) -> bool:
    ip = _ip_of(value)
    broadcast = ip == ipaddress.ip_address("255.255.255.255")
    return not (broadcast or ip.is_unspecified or ip.is_loopback or ip.is_multicast or ip.is_link_local)


def _is_link_local_multicast(value: Tagged) -> bool:
    ip = _ip_of(value)
    network = "224.0.0.0/24" if ip.version == 4 else "ff02::/16"
    return ip in ipaddress.ip_network(network)


def _interface(text: str) -> _Network:
    address, slash, length = text.partition("/")
    if not slash or not length.isdecimal():
        raise ValueError(f"network address parse error during conversion from string: {text!r}")
    _address(address)
    try:
        return ipaddress.ip_interface(text)
    except ValueError:
        raise ValueError(f"network address parse error during conversion from string: {text!r}") from None


def _cidr(text: str) -> Tagged:
    return {"@cidr": str(_interface(text))}


def _cidr_of(value: Tagged) -> _Network:
    return ipaddress.ip_interface(body(value, "@cidr"))


def _contains_ip(value: Tagged, ip: Tagged | str) -> bool:
    address = _address(ip) if isinstance(ip, str) else _ip_of(ip)
    return address in _cidr_of(value).network


def _contains_cidr(value: Tagged, other: Tagged | str) -> bool:
    inner = (_interface(other) if isinstance(other, str) else _cidr_of(other)).network
    outer = _cidr_of(value).network
    return inner.version == outer.version and inner.subnet_of(outer)  # type: ignore[arg-type]


def _family(value: Tagged) -> int:
    return (_ip_of(value) if "@ip" in value else _cidr_of(value)).version


def _string(value: Tagged) -> str:
    for tag in ("@ip", "@cidr", "@semver"):
        if tag in value:
            return str(value[tag])
    raise ValueError("no such overload")


ADDRESSES = (
    CelFunction(
        "ip",
        (
            Overload(("string",), "map", _ip, member=False),
            Overload(("map",), "map", lambda value: {"@ip": str(_cidr_of(value).ip)}),
        ),
    ),
    CelFunction("isIP", (Overload(("string",), "bool", parses(_ip), member=False),)),
    CelFunction("ip.isCanonical", (Overload(("string",), "bool", _is_canonical, member=False),)),
    CelFunction("family", (Overload(("map",), "int", _family),)),
    CelFunction("isUnspecified", (Overload(("map",), "bool", lambda value: _ip_of(value).is_unspecified),)),
    CelFunction("isLoopback", (Overload(("map",), "bool", lambda value: _ip_of(value).is_loopback),)),
    CelFunction("isLinkLocalUnicast", (Overload(("map",), "bool", lambda value: _ip_of(value).is_link_local),)),
    CelFunction("isLinkLocalMulticast", (Overload(("map",), "bool", _is_link_local_multicast),)),
    CelFunction("isGlobalUnicast", (Overload(("map",), "bool", _is_global_unicast),)),
    CelFunction("cidr", (Overload(("string",), "map", _cidr, member=False),)),
    CelFunction("isCIDR", (Overload(("string",), "bool", parses(_cidr), member=False),)),
    CelFunction(
        "containsIP",
        (
            Overload(("map", "map"), "bool", _contains_ip),
            Overload(("map", "string"), "bool", _contains_ip),
        ),
    ),
    CelFunction(
        "containsCIDR",
        (
            Overload(("map", "map"), "bool", _contains_cidr),
            Overload(("map", "string"), "bool", _contains_cidr),
        ),
    ),
    CelFunction("masked", (Overload(("map",), "map", lambda value: {"@cidr": str(_cidr_of(value).network)}),)),
    CelFunction("prefixLength", (Overload(("map",), "int", lambda value: _cidr_of(value).network.prefixlen),)),
    CelFunction("string", (Overload(("map",), "string", _string, member=False),)),
)
