"""Reports of blocked connections, from logs in Istio's formats; `hortus garden acl` typed against a real socket."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.domains.garden.world import SeedWorld, install, shoot_document

from hortus.domains.garden.acl.commands import register
from hortus.domains.garden.acl.config import read_config
from hortus.domains.garden.acl.report import BlockedSource, blocked, connections, lets_in, of_shoot
from hortus.domains.garden.acl.trying import SEEDS, SHOOTS, try_list
from hortus.kube import yaml
from hortus.simulation.garden.seed.definitions import definition
from hortus.terminal import CommandGroup, Connections

RULE = {"action": "ALLOW", "type": "remote_ip", "cidrs": ["203.0.113.0/24"]}
TID = "shoot--bar--foo"


def line(source: str, host: str = "-", cluster: str = f"outbound|443||kube-apiserver.{TID}.svc.cluster.local") -> str:
    """One line of Istio's default text format."""
    return (
        '[2026-11-23T10:00:00.000Z] "- - -" 0 - - - "-" 1 2 3 - "-" "-" "-" "-" "10.0.0.1:443" '
        f"{cluster} 10.0.0.2:5 10.0.0.3:9443 {source} {host} -"
    )


def json_line(source: str, host: str | None = None, cluster: str = "", time: str = "2026-11-23T10:00:01.000Z") -> str:
    return json.dumps(
        {
            "start_time": time,
            "downstream_remote_address": source,
            "requested_server_name": host,
            "upstream_cluster": cluster,
            "bytes_sent": 5,
        }
    )


def test_addresses_are_read_from_both_formats_and_other_lines_are_counted() -> None:
    log = [
        line("198.51.100.7:4711", "api.foo.bar.example.org"),
        json_line("[2001:db8::9]:443", "api.foo.bar.example.org"),
        "",
        "[warning] something else",
        '{"level": "info"}',
        '{"downstream_remote_address": 7}',
        line("nonsense"),
    ]
    found = list(connections(log))
    assert [None if one is None else (str(one.source), one.host) for one in found] == [
        ("198.51.100.7", "api.foo.bar.example.org"),
        ("2001:db8::9", "api.foo.bar.example.org"),
        *[None] * 4,
    ]


@pytest.mark.parametrize(
    ("host", "cluster", "meant"),
    [
        ("api.foo.bar.example.org", "", True),
        ("gu-bar--foo.ingress.example.org", "", True),
        ("api.other.bar.example.org", f"outbound|443||kube-apiserver.{TID}.svc", False),
        ("", f"outbound|1194||vpn-seed-server.{TID}.svc.cluster.local", True),
        ("", f"outbound|1194||vpn-seed-server.{TID}-bar.svc.cluster.local", False),
        ("", f"{TID}--kube-apiserver-socket", True),
        ("", f"{TID}-bar--kube-apiserver-socket", False),
        ("", "", False),
    ],
)
def test_a_connection_is_meant_for_the_shoot_that_it_names(host: str, cluster: str, meant: bool) -> None:
    (found,) = connections([json_line("198.51.100.7:1", host or None, cluster)])
    assert found is not None
    assert of_shoot(found, technical_id=TID, short_id="bar--foo", hosts=["api.foo.bar.example.org"]) is meant


def test_blocked_addresses_are_counted_the_most_frequent_first() -> None:
    access = read_config({"rule": RULE}, "").access
    always = read_config({"keepOpenFor": ["10.0.0.0/8"]}, "").access.keep_open_for
    sources = ["198.51.100.7", "203.0.113.5", "198.51.100.8", "198.51.100.7", "10.1.1.1"]
    log = [json_line(f"{one}:1", "h", time=f"t{number}") for number, one in enumerate(sources)]
    found = [one for one in connections(log) if one is not None]
    assert blocked(access, always, found) == [
        BlockedSource(found[0].source, 2, "t0", "t3", ("h",)),
        BlockedSource(found[2].source, 1, "t2", "t2", ("h",)),
    ]


def test_the_report_judges_as_the_filters_do() -> None:
    rules = [RULE, {**RULE, "action": "DENY", "cidrs": ["203.0.113.64/26"]}]
    access = read_config({"rules": rules}, "").access
    found = {
        text: lets_in(access, (), connection.source)
        for text in ("203.0.113.9", "203.0.113.70", "198.51.100.7")
        for connection in connections([json_line(f"{text}:1")])
        if connection is not None
    }
    assert found == {"203.0.113.9": True, "203.0.113.70": False, "198.51.100.7": False}


def shoot(config: Any) -> dict[str, Any]:
    document = shoot_document(extensions=[{"type": "acl", "providerConfig": config}], seedName="seed-1")
    document["status"]["networking"] = {"egressCIDRs": ["192.0.2.1/32"]}
    return document


def test_a_list_is_tried_with_the_networks_of_shoot_and_seed() -> None:
    seed = {"metadata": {"name": "seed-1"}, "spec": {"networks": {"pods": "10.96.0.0/11"}}}
    tried = try_list(shoot({"rule": RULE}), seed, additional=["172.16.0.0/12"])
    assert list(tried.lines()) == [
        "Rules let in (Enforce): 203.0.113.0/24",
        "Always let in: 10.96.0.0/11, 172.16.0.0/12, 10.250.0.0/16, 192.0.2.1/32",
    ]
    other = try_list(shoot({"rule": RULE}), None, config={"providerConfig": {"rule": {**RULE, "cidrs": ["x"]}}})
    assert len(other.errors) == 1
    assert other.errors[0].startswith('spec.extensions[0].providerConfig.rule.cidrs[0]: Invalid value: "x"')


class Typed:
    """Types commands, in a thread, on a garden with one Shoot."""

    def __init__(self, seed: SeedWorld) -> None:
        self._app = CommandGroup()
        file = seed.server.kubeconfig_for(seed.name)
        connections = Connections(local_state=Path("/nonexistent"), garden_kubeconfig=file)
        register(self._app, lambda: connections)

    async def __call__(self, *words: str, stdin: str = "") -> tuple[int, str]:
        arguments = ["acl", *words, "-n", "garden-bar"]
        done = await asyncio.to_thread(CliRunner().invoke, self._app, arguments, input=stdin)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output


async def _garden(seed: SeedWorld, config: Any) -> Typed:
    await install(seed.client, (definition(SHOOTS), definition(SEEDS)))
    document = shoot(config)
    await seed.create(SHOOTS, "foo", "garden-bar", spec=document["spec"], status=document["status"])
    await seed.create(SEEDS, "seed-1", spec={"networks": {"pods": "10.96.0.0/11"}})
    return Typed(seed)


async def test_a_list_is_checked_before_it_is_set(seed: SeedWorld, tmp_path: Path) -> None:
    type_ = await _garden(seed, {"rule": RULE})
    assert await type_("check", "foo", "--from", "203.0.113.9") == (
        0,
        "Rules let in (Enforce): 203.0.113.0/24\n"
        "Always let in: 10.96.0.0/11, 10.250.0.0/16, 192.0.2.1/32\n"
        "203.0.113.9: let in\n",
    )
    new = tmp_path / "new.yaml"
    new.write_text(yaml.dump({"rule": {**RULE, "cidrs": ["198.51.100.0/24"]}}))
    code, text = await type_("check", "foo", "--config", str(new), "--from", "203.0.113.9")
    assert (code, text.splitlines()[-1]) == (1, "203.0.113.9: locked out")
    new.write_text("rule: {action: ALLOW")
    code, text = await type_("check", "foo", "--config", str(new))
    assert code == 1
    assert str(new) in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check", "absent"], "no Shoot garden-bar/absent in the garden"),
        (["check", "foo", "--from", "me"], "--from me: 'me' does not appear to be an IPv4 or IPv6 address"),
        (["check", "foo", "--always", "me"], "--always me: must have a prefix length"),
        (["report", "foo", "--log", "/nonexistent"], "does not exist"),
    ],
)
async def test_a_wrong_word_is_answered_with_what_is_wrong(seed: SeedWorld, words: list[str], message: str) -> None:
    type_ = await _garden(seed, {"rule": RULE})
    code, text = await type_(*words)
    assert code != 0
    assert message in text


async def test_a_log_is_reported_with_the_addresses_that_are_turned_away(seed: SeedWorld) -> None:
    type_ = await _garden(seed, {"rule": RULE, "mode": "LogOnly"})
    host = "api.foo.bar.example.org"
    log = [
        json_line("198.51.100.7:1", host, time="2026-11-23T10:00:00Z"),
        json_line("198.51.100.7:2", host, time="2026-11-23T11:00:00Z"),
        json_line("203.0.113.9:1", host),
        json_line("198.51.100.7:3", "api.other.example.org"),
        "nonsense",
    ]
    code, text = await type_("report", "foo", "--log", "-", stdin="\n".join(log))
    assert (code, text.splitlines()) == (
        0,
        [
            "SOURCE         CONNECTIONS   FIRST                  LAST                   TO",
            "198.51.100.7   2             2026-11-23T10:00:00Z   2026-11-23T11:00:00Z   api.foo.bar.example.org",
            "2 of 3 connections to foo are turned away.",
            "1 line is in no format that is known.",
        ],
    )
