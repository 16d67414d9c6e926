"""Configurations of registry caches and mirrors, judged as gardener-extension-registry-cache judges them."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from tests.domains.garden.registries import CACHES, MIRRORS, configuration
from tests.oracles.programs import GoProgram, go_program

from hortus.domains.garden.registrycache.config import read_caches
from hortus.domains.garden.registrymirror.config import read_mirrors
from hortus.kube import yaml

PATH = "providerConfig"
STRICTER = ("its Service would have the name",)  # two upstreams with one Service would be one cache
"""Texts of the rules that the extension does not have."""


@pytest.fixture(scope="module")
def original() -> Iterator[GoProgram]:
    yield from go_program("registrycache")


def judged(config: dict[str, Any]) -> list[str]:
    read = read_caches if config["kind"] == CACHES["kind"] else read_mirrors
    return [str(one) for one in read(config, PATH).errors]


@pytest.mark.parametrize("seed", range(4))
def test_random_configurations_are_taken_and_refused_as_by_the_extension(original: GoProgram, seed: int) -> None:
    random, taken, refused = Random(seed), 0, 0
    for _ in range(1500):
        config = configuration(random)
        answer = original.ask(config=config, path=PATH)
        theirs = answer.get("failure") or answer["errors"]
        ours = [one for one in judged(config) if theirs or not any(reason in one for reason in STRICTER)]
        assert bool(ours) == bool(theirs), f"{yaml.dump(config)}\nours: {ours}\ntheirs: {theirs}"
        taken, refused = taken + (not theirs), refused + bool(theirs)
    assert min(taken, refused) > 300


def test_the_names_of_services_are_those_of_the_extension(original: GoProgram) -> None:
    for upstream in (
        "quay.io",
        "docker.io",
        "a.b.example.org:5000",
        "x" * 63,
        f"{'a' * 60}.{'b' * 60}",
        "10.0.0.1:5000",
    ):
        for suffix in ({}, {"serviceNameSuffix": "images"}):
            config = {**CACHES, "caches": [{"upstream": upstream, **suffix}]}
            assert [one.name for one in read_caches(config, PATH).caches] == original.ask(config=config)["names"]


@pytest.mark.parametrize("host", ["quay io", "[::1]:5000", "QUAY.io", "quay.io:080"])
def test_a_host_that_containerd_would_not_find_is_refused_by_name(host: str) -> None:
    cache = {**CACHES, "caches": [{"upstream": host}]}
    mirror = {**MIRRORS, "mirrors": [{"upstream": "quay.io", "hosts": [{"host": f"https://{host}"}]}]}
    rule = "a name of DNS in lower case or an address of IPv4, perhaps with a port such as :5000"
    assert judged(cache) == [f'{PATH}.caches[0].upstream: Invalid value: "{host}": must be {rule}']
    assert judged(mirror) == [
        f'{PATH}.mirrors[0].hosts[0].host: Invalid value: "https://{host}": its host must be {rule}'
    ]


def test_a_path_that_leads_elsewhere_is_refused() -> None:
    for path in ("/a/../b", "/.", "/%2e%2e"):
        mirror = {**MIRRORS, "mirrors": [{"upstream": "quay.io", "hosts": [{"host": f"https://quay.io{path}"}]}]}
        assert judged(mirror)[0].endswith("its path must have no segment . or ..")
