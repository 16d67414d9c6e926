"""The probe of entry points, against a real Envoy with the filters of a Shoot, and typed as a command."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.domains.garden.acl.gardener import INGRESS, RELEASES, SeedShoot
from tests.domains.garden.acl.gateway import Gateway, running_gateway
from tests.domains.garden.acl.istio import TLS_PORT
from tests.domains.garden.acl.lists import filters_of, rule
from tests.domains.garden.acl.test_report import SEEDS, SHOOTS, Typed, install
from tests.domains.garden.world import SeedWorld, shoot_document

from hortus.domains import free_port
from hortus.domains.garden.acl.attempts import header_ports, ingress_domain_of, read_shoot, served_hosts
from hortus.domains.garden.acl.probing import ConnectTo, Probed, ProbeDialing, SourceAddressError, probe
from hortus.simulation.garden.seed.definitions import definition

FOO = SeedShoot("bar--foo")
INSIDE, OUTSIDE = "127.0.1.7", "127.0.2.5"
LISTED = {"rules": [rule("127.0.1.0/24")]}
TLS_NAMES = {
    "external host",
    "internal host",
    "host of the wildcard certificate",
    "Plutono",
    "Alertmanager",
    "Prometheus",
    "Vali",
    "OpenTelemetry collector",
}


def shoot(**status: Any) -> dict[str, Any]:
    document = shoot_document(seedName="seed-1")
    addresses = [
        {"name": "external", "url": f"https://{FOO.hosts[0]}"},
        {"name": "internal", "url": f"https://{FOO.hosts[1]}"},
        {"name": "service-account-issuer", "url": "https://discovery.example.org/x"},
    ]
    document["status"] |= {"advertisedAddresses": addresses, **status}
    return document


def ways(gateway: Gateway) -> tuple[ConnectTo, ...]:
    known = {443: gateway.ports[TLS_PORT], **gateway.ports}
    return tuple(ConnectTo("", port, "127.0.0.1", real) for port, real in known.items())


async def probed(gateway: Gateway, source: str, document: dict[str, Any] | None = None) -> list[Probed]:
    read = read_shoot(document or shoot())
    dialing = ProbeDialing(10.0, source, ways(gateway))
    return await probe(served_hosts(read, INGRESS), read.status.technical_id, header_ports(()), dialing)


@asynccontextmanager
async def gateway_of(folder: Path, config: dict[str, Any] | None = LISTED) -> AsyncIterator[Gateway]:
    async with running_gateway(folder, [FOO], filters_of({FOO: config}), proxied=False) as gateway:
        yield gateway


def states(rows: list[Probed], when: Callable[[Probed], bool]) -> set[tuple[str, str]]:
    return {(one.name, one.state) for one in rows if when(one)}


async def test_every_entry_point_is_open_from_inside(tmp_path: Path) -> None:
    async with gateway_of(tmp_path) as gateway:
        found = await probed(gateway, INSIDE)
    assert states(found, lambda one: not one.header) == {(name, "open") for name in TLS_NAMES}
    assert Counter(one.state for one in found if one.header) == {"open": 10}
    absent = [one for one in found if "vpn-seed-server-0" in one.destination]
    assert {one.detail for one in absent} == {
        "answered HTTP/1.1 503 Service Unavailable: let in, and nothing runs behind it"
    }


async def test_every_entry_point_is_refused_from_outside_as_far_as_that_can_be_seen(tmp_path: Path) -> None:
    async with gateway_of(tmp_path) as gateway:
        found = await probed(gateway, OUTSIDE)
    sure = {"external host", "internal host"}
    assert states(found, lambda one: not one.header) == {
        (name, "refused" if name in sure else "unknown") for name in TLS_NAMES
    }
    by_header = [one for one in found if one.header]
    assert {(one.state, one.detail) for one in by_header} == {
        ("refused", "answered HTTP/1.1 403 Forbidden, in the words of an access list")
    }
    assert len(by_header) == 2 * 5


async def test_a_form_without_a_filter_is_seen(tmp_path: Path) -> None:
    spec_free = [one for one in filters_of({FOO: LISTED}) if "http-proxy" not in one["metadata"]["name"]]
    async with running_gateway(tmp_path, [FOO], spec_free, proxied=False) as gateway:
        found = await probed(gateway, OUTSIDE)
    assert {one.port for one in found if one.state == "open"} == {8443}


async def test_a_destination_that_an_older_gateway_does_not_route_is_absent(tmp_path: Path) -> None:
    release = RELEASES[1]
    async with running_gateway(tmp_path, [FOO], [], release=release, proxied=False) as gateway:
        found = await probed(gateway, OUTSIDE, shoot(technicalID="shoot-bar-foo"))
    sockets = [one for one in found if one.destination.endswith("-socket")]
    assert {(one.state, one.detail) for one in sockets} == {
        ("absent", "answered HTTP/1.1 301 Moved Permanently: the gateway does not route this destination")
    }


async def test_a_host_that_sleeps_with_its_shoot_is_not_said_to_be_refused(tmp_path: Path) -> None:
    async with gateway_of(tmp_path) as gateway:
        found = await probed(gateway, OUTSIDE, shoot(hibernated=True))
    assert {one.state for one in found if not one.header} == {"unknown"}


async def _answering(text: bytes) -> asyncio.Server:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(text)
        writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", 0)


@pytest.mark.parametrize(
    ("answer", "state", "detail"),
    [
        (b"HTTP/1.1 403 Forbidden\r\nServer: squid\r\n\r\nno", "unknown", "answered no, which is not in Envoy's words"),
        (
            b"HTTP/1.1 403 Forbidden\r\nServer: squid\r\n\r\n<html><body>You may not</body>",
            "unknown",
            "not from a gateway",
        ),
        (
            b"HTTP/1.1 403 Forbidden\r\nServer: istio-envoy\r\n\r\nanother reason of 20",
            "unknown",
            "answered HTTP/1.1 403",
        ),
        (b"HTTP/1.1 503 x\r\nServer: squid\r\n\r\n", "unknown", "which is not from a gateway of Gardener"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "open", "there is a tunnel to it"),
        (b"", "unknown", "answered nothing"),
        (b"SSH-2.0-x\r\n", "unknown", "answered SSH-2.0-x, which is not in Envoy's words"),
        (b"HTTP/1.1 403 Forbidden\r\nServer: istio-envoy\r\n\r\nRBAC: access denied", "refused", "access list"),
    ],
)
async def test_answers_of_others_than_the_gateway_are_no_claim(answer: bytes, state: str, detail: str) -> None:
    server = await _answering(answer)
    port = server.sockets[0].getsockname()[1]
    async with server:
        read = read_shoot(shoot())
        dialing = ProbeDialing(5.0, connect_to=(ConnectTo("", 0, "127.0.0.1", port),))
        found = await probe(served_hosts(read, ""), read.status.technical_id, [8443], dialing)
    by_header = [one for one in found if one.header]
    assert {one.state for one in by_header} == {state}
    assert all(detail in one.detail for one in by_header), by_header


async def test_what_does_not_answer_is_unknown() -> None:
    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(keep, "127.0.0.1", 0)
    silent, closed = server.sockets[0].getsockname()[1], free_port()
    async with server:
        read = read_shoot(shoot())
        to = (ConnectTo("", 443, "127.0.0.1", closed), ConnectTo("", 8443, "127.0.0.1", silent))
        found = await probe(served_hosts(read, ""), read.status.technical_id, [8443], ProbeDialing(0.3, connect_to=to))
    assert {(one.port, one.state) for one in found} == {(443, "unknown"), (8443, "unknown")}
    details = {one.port: one.detail for one in found}
    assert details[443].startswith("no connection: ")
    assert details[8443] == "no answer in 0.3 s"


async def test_further_gateways_are_sent_headers(tmp_path: Path) -> None:
    async with gateway_of(tmp_path) as gateway:
        read = read_shoot(shoot())
        to = (*ways(gateway)[:1], *(one._replace(host=FOO.hosts[0]) for one in ways(gateway)[1:]))
        dialing = ProbeDialing(10.0, OUTSIDE, to, ("192.0.2.9",))
        found = await probe(served_hosts(read, ""), read.status.technical_id, [8443], dialing)
    by_header = [one for one in found if one.header]
    assert {(one.address, one.state) for one in by_header} == {("127.0.0.1", "refused"), ("192.0.2.9", "refused")}


@pytest.mark.parametrize("believes", [True, False])
async def test_a_gateway_that_believes_a_claimed_address_is_seen(tmp_path: Path, believes: bool) -> None:
    filters = filters_of({FOO: LISTED})
    async with running_gateway(tmp_path, [FOO], filters, proxied=believes) as gateway:
        read = read_shoot(shoot())
        dialing = ProbeDialing(10.0, OUTSIDE, ways(gateway), claim=INSIDE)
        found = await probe(served_hosts(read, ""), read.status.technical_id, header_ports(()), dialing)
    assert {one.state for one in found} == {"open" if believes else "refused"}
    assert len(found) == 2 * 5
    if not believes:
        details = {one.detail for one in found}
        assert details == {"answered HTTP/1.1 400 Bad Request: the gateway takes no address from here"}


async def test_the_port_of_an_advertised_address_counts() -> None:
    read = read_shoot(shoot(advertisedAddresses=[{"name": "external", "url": "https://api.example.org:6443"}]))
    assert [(one.host, one.port) for one in served_hosts(read, "")] == [("api.example.org", 6443)]


async def test_a_host_without_an_address_is_unknown() -> None:
    read = read_shoot(shoot(advertisedAddresses=[{"name": "external", "url": "https://api.invalid"}]))
    found = await probe(served_hosts(read, ""), read.status.technical_id, [8443], ProbeDialing(5.0))
    assert [(one.state, one.detail) for one in found] == [("unknown", "the host does not resolve")]


async def test_a_source_that_is_no_address_of_the_machine_is_an_error() -> None:
    read = read_shoot(shoot())
    dialing = ProbeDialing(5.0, "192.0.2.77", (ConnectTo("", 0, "127.0.0.1", free_port()),))
    with pytest.raises(SourceAddressError, match=r"192\.0\.2\.77 is no address of this machine"):
        await probe(served_hosts(read, ""), read.status.technical_id, [8443], dialing)


async def test_the_domain_of_dashboards_is_that_of_the_seed() -> None:
    assert ingress_domain_of({"metadata": {}, "spec": {"ingress": {"domain": INGRESS}}}) == INGRESS
    assert ingress_domain_of({"metadata": {}, "spec": {}}) == ""
    assert ingress_domain_of(None) == ""


async def _typed(seed: SeedWorld, document: dict[str, Any] | None = None, domain: str = INGRESS) -> Typed:
    await install(seed.client, (definition(SHOOTS), definition(SEEDS)))
    made = document or shoot()
    await seed.create(SHOOTS, "foo", "garden-bar", spec=made["spec"], status=made["status"])
    await seed.create(SEEDS, "seed-1", spec={"networks": {}, **({"ingress": {"domain": domain}} if domain else {})})
    return Typed(seed)


def _words(gateway: Gateway, source: str) -> list[str]:
    known = {443: gateway.ports[TLS_PORT], **gateway.ports}
    to = [word for port, real in known.items() for word in ("--connect-to", f":{port}:127.0.0.1:{real}")]
    return ["probe", "foo", "--source", source, *to]


async def test_the_command_ends_with_the_verdict(seed: SeedWorld, tmp_path: Path) -> None:
    type_ = await _typed(seed)
    async with gateway_of(tmp_path) as gateway:
        code, text = await type_(*_words(gateway, INSIDE), "--expect", "open", "-o", "json")
        found = json.loads(text)
        assert (code, found["asExpected"], found["expected"]) == (0, True, "open")
        assert found["entryPoints"][0] == {
            "name": "external host",
            "host": FOO.hosts[0],
            "address": "127.0.0.1",
            "port": 443,
            "state": "open",
            "detail": "answered HTTP/1.1 200 OK",
        }
        code, text = await type_(*_words(gateway, INSIDE))
        assert code == 1
        assert text.splitlines()[-1] == "0 of 18 are refused, or not there."
        code, text = await type_(*_words(gateway, OUTSIDE), "--expect", "open")
        assert code == 1


async def test_the_command_ends_well_where_all_is_refused_and_not_where_something_is_unknown(
    seed: SeedWorld, tmp_path: Path
) -> None:
    type_ = await _typed(seed)
    async with gateway_of(tmp_path) as gateway:
        code, text = await type_(*_words(gateway, OUTSIDE))
        assert (code, text.splitlines()[-1]) == (1, "12 of 18 are refused, or not there.")
        lines = [line.split() for line in text.splitlines()]
        assert lines[0] == ["ENTRY", "POINT", "HOST", "ADDRESS", "PORT", "STATE", "REASON"]
        code, text = await type_(*_words(gateway, OUTSIDE), "--without", "8132", "-o", "json")
        assert {one["port"] for one in json.loads(text)["entryPoints"]} == {443, 8443}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["probe", "absent"], "no Shoot garden-bar/absent in the garden"),
        (["probe", "foo", "--source", "me"], "--source me: 'me' does not appear to be an IPv4 or IPv6 address"),
        (["probe", "foo", "--gateway", "me"], "--gateway me: 'me' does not appear to be an IPv4 or IPv6 address"),
        (["probe", "foo", "--claim", "me"], "--claim me: 'me' does not appear to be an IPv4 or IPv6 address"),
        (["probe", "foo", "--connect-to", "x"], "--connect-to x: must be HOST:PORT:ADDRESS:PORT"),
        (["probe", "foo", "--connect-to", "h:p:a:1"], "--connect-to h:p:a:1: must be HOST:PORT:ADDRESS:PORT"),
        (
            ["probe", "foo", "--source", "192.0.2.77", "--connect-to", "::127.0.0.1:9"],
            "--source: 192.0.2.77 is no address of this machine",
        ),
    ],
)
async def test_a_wrong_word_of_a_probe_is_answered_with_what_is_wrong(
    seed: SeedWorld, words: list[str], message: str
) -> None:
    type_ = await _typed(seed)
    code, text = await type_(*words)
    assert code != 0
    assert message in text


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ({"technicalID": ""}, "Shoot garden-bar/foo has no status.technicalID: it is not on a seed yet"),
        ({"advertisedAddresses": []}, "Shoot garden-bar/foo has no status.advertisedAddresses"),
    ],
)
async def test_a_shoot_that_cannot_be_probed_is_an_error(seed: SeedWorld, status: Any, message: str) -> None:
    type_ = await _typed(seed, shoot(**status))
    code, text = await type_("probe", "foo")
    assert code == 1
    assert message in text


async def test_dashboards_of_an_unknown_domain_are_unknown(seed: SeedWorld, tmp_path: Path) -> None:
    type_ = await _typed(seed, domain="")
    async with gateway_of(tmp_path) as gateway:
        code, text = await type_(*_words(gateway, OUTSIDE), "-o", "json")
        assert code == 1
        assert json.loads(text)["entryPoints"][-1]["detail"].startswith(
            "not tried: the domain of the seed's dashboards"
        )
        code, text = await type_(*_words(gateway, INSIDE), "--ingress-domain", INGRESS, "--expect", "open")
        assert code == 0, text
