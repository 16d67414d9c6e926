"""Access lists in a real Envoy: twenty Shoots on one gateway, every address by every path.

The expectation is computed with `ipaddress` from the rules as they were written, not from the filters.
"""

from __future__ import annotations

import asyncio
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.domains.garden.acl.gardener import PROXY_PORT, RELEASES, VPN_PORT, SeedShoot
from tests.domains.garden.acl.gateway import Gateway, running_gateway
from tests.domains.garden.acl.lists import ALWAYS, filters_of, rule


class Tenant(NamedTuple):
    """A Shoot with its rules as they were written; none has no access list."""

    short_id: str
    rules: list[dict[str, Any]]

    @property
    def shoot(self) -> SeedShoot:
        return SeedShoot(self.short_id)

    def lets_in(self, source: str, always: tuple[str, ...] = ALWAYS) -> bool:
        if not self.rules or _in(source, always):
            return True
        allows = [one for one in self.rules if one["action"].upper() == "ALLOW"]
        denied = any(_in(source, one["cidrs"]) for one in self.rules if one["action"].upper() == "DENY")
        return not denied and (not allows or any(_in(source, one["cidrs"]) for one in allows))


def _in(source: str, cidrs: Any) -> bool:
    return any(ip_address(source) in ip_network(one, strict=False) for one in cidrs)


TENANTS = (
    Tenant("bar--foo", [rule("203.0.113.0/24")]),
    Tenant("x-bar--foo", [rule("198.51.100.0/24")]),
    Tenant("bar--foo-bar", [rule("192.0.2.0/25")]),
    Tenant("bar--fo", []),
    Tenant("a--allow-lower", [rule("203.0.113.0/25", action="allow")]),
    Tenant("a--deny", [rule("203.0.113.0/24", action="DENY")]),
    Tenant("a--deny-lower", [rule("198.51.100.7/32", action="deny", type="SOURCE_IP")]),
    Tenant("a--deny-nodes", [rule("10.0.0.0/8", action="DENY")]),
    Tenant("a--both", [rule("203.0.113.0/24"), rule("203.0.113.64/26", action="DENY")]),
    Tenant("a--deny-first", [rule("203.0.113.9/32", action="DENY"), rule("0.0.0.0/0")]),
    Tenant("a--two", [rule("203.0.113.9/32"), rule("198.51.100.0/24", type="source_ip")]),
    Tenant("a--source", [rule("198.51.100.0/24", type="source_ip")]),
    Tenant("a--six", [rule("2001:db8:1::/48")]),
    Tenant("a--six-deny", [rule("2001:db8:1::/48", action="DENY")]),
    Tenant("a--host-bits", [rule("203.0.113.77/24")]),
    Tenant("a--overlap", [rule("203.0.113.0/24", "203.0.113.0/28", "203.0.112.0/24")]),
    Tenant("a--everybody", [rule("0.0.0.0/0", "::/0")]),
    Tenant("a--nobody", [rule("0.0.0.0/0", "::/0", action="DENY")]),
    Tenant("b--open", []),
    Tenant("b--many", [rule(*(f"203.0.{number}.0/24" for number in range(50)))]),
)
SOURCES = (
    "203.0.113.9",
    "203.0.113.70",
    "203.0.113.200",
    "198.51.100.7",
    "192.0.2.5",
    "10.97.1.1",
    "10.250.3.4",
    "10.1.2.3",
    "2001:db8:1::9",
    "2001:db8:2::9",
)


def filters_for(tenants: tuple[Tenant, ...], always: tuple[str, ...] = ALWAYS, **more: Any) -> list[Any]:
    lists = {one.shoot: {"rules": one.rules, **more} if one.rules else None for one in tenants}
    return filters_of(lists, always=always)


def shoots_of(tenants: tuple[Tenant, ...]) -> list[SeedShoot]:
    return [one.shoot for one in tenants]


async def _answers(gateway: Gateway, tenant: Tenant, source: str) -> dict[str, bool]:
    shoot = tenant.shoot
    return {
        "external": await gateway.reaches(shoot.hosts[0], source),
        "internal": await gateway.reaches(shoot.hosts[1], source),
        "wildcard": await gateway.reaches(shoot.wildcard_host, source),
        "dashboard": await gateway.reaches(shoot.dashboard("gu"), source),
        "vpn": await gateway.passes(VPN_PORT, shoot.vpn[0], source),
        "proxy": await gateway.passes(PROXY_PORT, shoot.service, source),
        "socket": await gateway.passes(PROXY_PORT, shoot.socket, source),
    }


async def _matrix(gateway: Gateway, tenants: tuple[Tenant, ...], sources: tuple[str, ...]) -> dict[Any, bool]:
    gate = asyncio.Semaphore(16)

    async def one(tenant: Tenant, source: str) -> dict[Any, bool]:
        async with gate:
            found = await _answers(gateway, tenant, source)
            return {(tenant.short_id, source, path): answer for path, answer in found.items()}

    rows = await asyncio.gather(*(one(tenant, source) for tenant in tenants for source in sources))
    return {key: answer for row in rows for key, answer in row.items()}


def _wrong(found: dict[Any, bool], tenants: tuple[Tenant, ...], always: tuple[str, ...]) -> list[Any]:
    known = {one.short_id: one for one in tenants}
    return [key for key, answer in found.items() if answer != known[key[0]].lets_in(key[1], always)]


@pytest.mark.parametrize("release", [RELEASES[-2], RELEASES[-1]], ids=lambda one: one.version)
async def test_twenty_shoots_let_in_exactly_the_addresses_of_their_own_rules(tmp_path: Path, release: Any) -> None:
    lists = {one.shoot: {"rules": one.rules} if one.rules else None for one in TENANTS}
    filters = filters_of(lists, release=release)
    async with running_gateway(tmp_path, shoots_of(TENANTS), filters, release=release) as gateway:
        found = await _matrix(gateway, TENANTS, SOURCES)
    assert len(found) == 20 * 10 * 7
    assert _wrong(found, TENANTS, ALWAYS) == []
    assert {True, False} == set(found.values())


async def test_the_address_of_the_peer_counts_for_direct_remote_ip(tmp_path: Path) -> None:
    tenants = (
        Tenant("p--client", [rule("127.0.0.0/8")]),
        Tenant("p--peer", [rule("127.0.0.0/8", type="direct_remote_ip")]),
        Tenant("p--not-peer", [rule("127.0.0.0/8", type="direct_remote_ip", action="DENY")]),
    )
    async with running_gateway(tmp_path, shoots_of(tenants), filters_for(tenants)) as gateway:
        found = {one.short_id: await _answers(gateway, one, "203.0.113.9") for one in tenants}
    expected = {"p--client": False, "p--peer": True, "p--not-peer": False}
    assert found == {name: dict.fromkeys(found[name], answer) for name, answer in expected.items()}


async def test_addresses_that_sockets_are_bound_to_are_judged_without_a_proxy(tmp_path: Path) -> None:
    tenants = (
        Tenant("s--allow", [rule("127.0.1.0/24")]),
        Tenant("s--deny", [rule("127.0.1.0/24", action="DENY", type="direct_remote_ip")]),
        Tenant("s--source", [rule("127.0.2.5/32", type="source_ip")]),
    )
    always = ("127.0.9.0/24",)
    filters = filters_for(tenants, always)
    async with running_gateway(tmp_path, shoots_of(tenants), filters, proxied=False) as gateway:
        found = await _matrix(gateway, tenants, ("127.0.1.7", "127.0.2.5", "127.0.9.1"))
    assert _wrong(found, tenants, always) == []
    assert {True, False} == set(found.values())


async def test_a_list_that_only_logs_turns_nobody_away_and_counts_those_it_would(tmp_path: Path) -> None:
    tenants = (Tenant("l--log", [rule("203.0.113.0/24")]), Tenant("l--other", []))
    filters = filters_for(tenants, mode="LogOnly")
    async with running_gateway(tmp_path, shoots_of(tenants), filters) as gateway:
        for source in ("203.0.113.9", "198.51.100.7", "198.51.100.8"):
            answers = await _answers(gateway, tenants[0], source)
            assert set(answers.values()) == {True}
        counted = await gateway.counters("acl_l--log_")
    denied = {name: value for name, value in counted.items() if name.endswith("shadow_denied")}
    assert sum(denied.values()) == 2 * 7, counted
