"""`hortus garden airgap` as people type it: a garden and a mirror behind real sockets."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.domains.garden.airgap.test_images import add_image, digest
from tests.domains.garden.world import SeedWorld, install, shoot_document

from hortus.domains.garden.airgap.commands import register
from hortus.domains.garden.airgap.names import SHOOTS
from hortus.kube import yaml
from hortus.simulation.garden.seed.definitions import definition
from hortus.simulation.registry import RegistryFolder, RegistryServer
from hortus.terminal import CommandGroup, Connections

ALLOW = [
    {
        "fqdns": ["api.foo.bar.example.org", "api.foo.bar.internal.example.org"],
        "cidrs": ["198.51.100.1/32"],
        "ports": [443, 8443, 8132],
        "reason": "gateway",
    },
    {"cidrs": ["198.51.100.53/32"], "ports": [53, 123], "protocol": "UDP", "reason": "names and time"},
    {"cidrs": ["198.51.100.53/32"], "ports": [53], "reason": "names"},
]
POD = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"image": "quay.io/team/app:1"}]}}


class Typed:
    """Types commands, in a thread, on a garden with one Shoot."""

    def __init__(self, seed: SeedWorld) -> None:
        self._app = CommandGroup()
        connections = Connections(
            local_state=Path("/nonexistent"), garden_kubeconfig=seed.server.kubeconfig_for(seed.name)
        )
        register(self._app, lambda: connections)

    async def __call__(self, *words: str, shoot: bool = True) -> tuple[int, str]:
        arguments = ["airgap", *words, *(["-n", "garden-bar"] if shoot else [])]
        done = await asyncio.to_thread(CliRunner().invoke, self._app, arguments)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output


async def garden(seed: SeedWorld, config: Any) -> Typed:
    await install(seed.client, (definition(SHOOTS),))
    extensions = [] if config is None else [{"type": "airgap", "providerConfig": config}]
    document = shoot_document(extensions=extensions)
    await seed.create(SHOOTS, "foo", "garden-bar", spec=document["spec"], status=document["status"])
    return Typed(seed)


@pytest.fixture
async def mirror(tmp_path: Path) -> AsyncIterator[RegistryServer]:
    async with RegistryServer(RegistryFolder(tmp_path / "registry")) as server:
        yield server


def written(tmp_path: Path, document: Any, name: str = "x.yaml") -> str:
    file = tmp_path / name
    file.write_text(yaml.dump(document))
    return str(file)


async def test_endpoints_are_listed_with_what_allows_them(seed: SeedWorld, tmp_path: Path) -> None:
    type_ = await garden(seed, {"allow": ALLOW[:1]})
    code, output = await type_("endpoints", "foo", "-f", written(tmp_path, POD))
    rows = [line.split() for line in output.splitlines()]
    assert code == 0
    assert [
        "api.foo.bar.example.org",
        "443",
        "TCP",
        "kube-apiserver,",
        "through",
        "the",
        "seed's",
        "gateway",
        "gateway",
    ] in rows
    assert ["quay.io", "443", "TCP", "registry", "of", "images", "nothing"] in rows
    assert ["*", "123", "UDP", "time", "nothing"] in rows


async def test_images_are_listed(seed: SeedWorld, tmp_path: Path) -> None:
    type_ = await garden(seed, None)
    vector = written(
        tmp_path,
        {"images": [{"name": "n", "repository": "quay.io/v", "tag": "2", "architectures": ["arm64"]}]},
        "v.yaml",
    )
    code, output = await type_("images", written(tmp_path, POD), vector, shoot=False)
    assert (code, [line.split() for line in output.splitlines()[1:]]) == (
        0,
        [["quay.io/team/app:1", "any", "Pod", "p"], ["quay.io/v:2", "arm64", "image", "vector", "n"]],
    )


async def test_a_check_ends_with_one_until_list_and_mirror_are_whole(
    seed: SeedWorld, mirror: RegistryServer, tmp_path: Path
) -> None:
    entry = {"cidrs": ["127.0.0.1/32"], "reason": "mirror"}
    config = {"allow": [*ALLOW, entry], "registry": {"mirror": f"http://{mirror.address}"}}
    type_ = await garden(seed, config)
    objects = written(tmp_path, POD)
    code, output = await type_("check", "foo", "-f", objects, "-a", "amd64", "-a", "arm64")
    assert code == 1
    assert f"0 of 2 are in http://{mirror.address}." in output
    there = add_image(mirror.folder, "team/app", "1", "amd64")
    code, output = await type_("check", "foo", "-f", objects)
    assert (code, f"1 of 2 are in http://{mirror.address}." in output) == (1, True)
    assert "1 of 1 images are named by tag" in output
    code, output = await type_("check", "foo", "-f", objects, "-a", "amd64")
    assert (code, output.splitlines()[-1]) == (0, "foo needs nothing that is not allowed.")
    assert output.splitlines()[-4].split()[:3] == ["quay.io/team/app:1", "amd64", "found"]
    shorter = written(tmp_path, {**config, "allow": [entry]}, "config.yaml")
    code, output = await type_("check", "foo", "-f", objects, "-a", "amd64", "--config", shorter)
    assert code == 1
    assert "not allowed: api.foo.bar.example.org 443/TCP, for: kube-apiserver, through the seed's gateway" in output
    pinned = {**POD, "spec": {"containers": [{"image": f"quay.io/team/app@{there}"}]}}
    code, output = await type_("check", "foo", "-f", written(tmp_path, pinned, "pinned.yaml"), "-a", "amd64")
    assert (code, "named by tag" in output) == (0, False)
    unknown = f"quay.io/team/app@{digest(b'x')}"
    pinned["spec"]["containers"] = [{"image": unknown}]
    assert (await type_("check", "foo", "-f", written(tmp_path, pinned, "other.yaml"), "-a", "amd64"))[0] == 1


async def test_a_mirror_can_be_tried_before_it_is_configured(
    seed: SeedWorld, mirror: RegistryServer, tmp_path: Path
) -> None:
    add_image(mirror.folder, "team/app", "1", "amd64")
    type_ = await garden(seed, {"allow": ALLOW})
    objects = written(tmp_path, POD)
    words = ("check", "foo", "-f", objects, "-a", "amd64", "--mirror")
    code, output = await type_(*words, f"http://{mirror.address}")
    assert f"1 of 1 are in http://{mirror.address}." in output
    assert "not allowed: quay.io 443/TCP" in output
    assert code == 1
    code, output = await type_(*words, "nonsense")
    assert (code, "--mirror: Invalid value" in output) == (1, True)


async def test_rules_are_printed_in_each_form(seed: SeedWorld) -> None:
    config = {"allow": ALLOW, "registry": {"mirror": "https://m.example.org"}, "namespaces": ["shop"]}
    type_ = await garden(seed, config)
    assert (await type_("rules", "foo"))[1].startswith("table inet hortus_airgap\n")
    assert tomllib.loads((await type_("rules", "foo", "-o", "hosts"))[1])["server"] == "https://m.example.org"
    [policy] = yaml.load_all((await type_("rules", "foo", "-o", "policies"))[1])
    assert policy["metadata"]["namespace"] == "shop"


async def test_what_cannot_be_tried_is_said(seed: SeedWorld, tmp_path: Path) -> None:
    type_ = await garden(seed, None)
    assert (await type_("endpoints", "foo"))[1].endswith("try a configuration with --config\n")
    assert "no Shoot garden-bar/other" in (await type_("endpoints", "other"))[1]
    wrong = written(tmp_path, {"providerConfig": {"mode": "Off"}})
    code, output = await type_("check", "foo", "--config", wrong)
    assert (code, "error: spec.extensions[0].providerConfig.mode: Unsupported value" in output) == (1, True)
    bad = tmp_path / "bad.yaml"
    bad.write_text("a: [")
    assert "bad.yaml" in (await type_("images", str(bad), shoot=False))[1]
    image = written(tmp_path, {**POD, "spec": {"containers": [{"image": "quay.io/UPPER:1"}]}}, "image.yaml")
    code, output = await type_("check", "foo", "--config", wrong, "-f", image)
    assert (code, "UPPER" in output) == (1, True)
    credentials = tmp_path / "config.json"
    credentials.write_text("[]")
    objects = written(tmp_path, POD, "pod.yaml")
    gap = written(tmp_path, {"allow": ALLOW}, "gap.yaml")
    words = ("check", "foo", "--config", gap, "-f", objects, "--mirror", "https://m.example.org")
    code, output = await type_(*words, "--credentials", str(credentials))
    assert (code, "is not a JSON object" in output) == (1, True)
