"""A node in memory under Gardener's agent and under ours: the same files, and no unit that only ours restarts."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.nodeagent.randomosc import UNITS, abandoned, configuration, successor
from tests.nodeagent.world import PATH, Osc, World, text_of
from tests.oracles.programs import GoProgram

from hortus.nodeagent.changes import units_of
from hortus.nodeagent.osc import OperatingSystemConfig, convert

SEED = 20262
pytestmark = pytest.mark.oracle
LONG = (pytest.mark.soak, pytest.mark.timeout(3600))
RELEASE = 'PRETTY_NAME="Garden Linux 1592.4"\n'
DEFAULT = (
    'version = 2\nimports = ["/etc/own.toml"]\n[plugins."io.containerd.grpc.v1.cri".cni]\nbin_dir = "/usr/lib/cni"\n'
)
NEWER = 'version = 3\n[plugins."io.containerd.cri.v1.runtime".cni]\nbin_dir = "/usr/lib/cni"\n'
IMAGES = {
    "registry.example.org/a:v1": {
        path: b"image of the test: registry.example.org/a:v1" + path.encode() for path in ("/a", "/b")
    }
}


NODE: dict[str, Any] = {
    "host": "node-1",
    "path": PATH,
    "release": RELEASE,
    "containerd": "2.2.1",
    "files": {"/etc/containerd/config.toml": NEWER},
}


class TwinWorld(World):
    """A node that begins as the one in Gardener's hands."""

    def __init__(self, root: Path, *, containerd: str, default: str) -> None:
        super().__init__(root)
        self.units.system |= set(UNITS)
        self.runtime.images = IMAGES
        self.runtime.answer = containerd
        self.files.write("/etc/os-release", RELEASE.encode(), mode=0o644)
        self.files.write("/etc/containerd/config.toml", default.encode(), mode=0o644)

    def found(self) -> dict[str, tuple[str, Any]]:
        """The files that configurations are about: mode and content, that of TOML by its meaning."""
        return {
            path: (f"{mode:04o}", _meaning(path, content))
            for path, (mode, content) in self.tree().items()
            if _counts(path)
        }


def _counts(path: str) -> bool:
    return not path.startswith("/var/lib/gardener-node-agent/") and path != "/etc/os-release"


def _meaning(path: str, content: bytes) -> Any:
    return _plain(tomllib.loads(content.decode())) if path.endswith(".toml") else content.decode()


def _plain(value: Any) -> Any:
    """`value` without empty tables, which the two make at other times, and which mean nothing."""
    if isinstance(value, dict):
        found = {key: _plain(each) for key, each in value.items()}
        return {key: each for key, each in found.items() if each != {}}
    return value


def theirs(answer: Osc) -> dict[str, tuple[str, Any]]:
    files = {path: content.encode() for path, content in answer["files"].items() if _counts(path)}
    return {path: (answer["modes"][path], _meaning(path, content)) for path, content in files.items()}


def commanded(actions: Iterable[str], verb: str) -> set[str]:
    return {name for found, _, name in (each.partition(" ") for each in actions) if found == verb}


@pytest.mark.parametrize("number", [100, pytest.param(2000, marks=LONG)])
async def test_a_node_becomes_as_under_gardeners_agent(number: int, gardener: GoProgram, tmp_path: Path) -> None:
    random = Random(SEED)
    for index in range(number):
        first = configuration(random, in_place=False)
        second = successor(random, first)
        second["spec"].pop("inPlaceUpdates", None)
        containerd, default = random.choice(
            (("1.7.23", DEFAULT), ("v2.1.0", NEWER), ("2.2.1", NEWER), ("2.2.0-rc.1", NEWER))
        )
        answer = gardener.ask(
            op="reconcile",
            old=text_of(first).decode(),
            text=text_of(second).decode(),
            passes=2,
            **{**NODE, "containerd": containerd, "files": {"/etc/containerd/config.toml": default}},
        )
        assert "answer" in answer, answer
        world = TwinWorld(tmp_path / str(index), containerd=containerd, default=default)
        await world.converge(first)
        world.units.restarts.clear()
        await world.converge(second)
        found, old, new = answer["answer"], convert(first), convert(second)
        assert not [each for each in found["passes"] if "error" in each], found["passes"]
        expected = {path: each for path, each in theirs(found).items() if path not in abandoned(first, second)}
        assert world.found() == expected, index
        extra = set(world.units.restarts) - commanded(found["actions"], "restart")
        assert extra <= _system_units(old, new), f"{index}: {extra}"
        assert {name for name, (_, enabled) in world.unit_states().items() if enabled == "enabled"} >= commanded(
            found["actions"], "enable"
        ) - commanded(found["actions"], "disable")


def _system_units(old: OperatingSystemConfig, new: OperatingSystemConfig) -> set[str]:
    """The units of the system that lose all drop-ins: Gardener's agent restarts them when they have a file of ours."""
    gone = units_of(old, PATH).keys() - units_of(new, PATH).keys()
    return {name for name in gone if units_of(old, PATH)[name].content is None}


@pytest.mark.parametrize("number", [50, pytest.param(1000, marks=LONG)])
async def test_a_node_that_is_taken_over_restarts_nothing(number: int, gardener: GoProgram, tmp_path: Path) -> None:
    """Gardener's agent has brought the node to a configuration, and ours finds its disk."""
    random = Random(SEED + 1)
    for index in range(number):
        osc = configuration(random)
        if update := osc["spec"].get("inPlaceUpdates"):
            update["operatingSystemVersion"] = "1592.4"
        answer = gardener.ask(op="reconcile", text=text_of(osc).decode(), passes=2, **NODE)
        found = answer["answer"]
        assert not [each for each in found["passes"] if "error" in each], found["passes"]
        world = TwinWorld(tmp_path / str(index), containerd="2.2.1", default=NEWER)
        for path, content in found["files"].items():
            world.files.write(path, content.encode(), mode=int(found["modes"][path], 8))
        for name in commanded(found["actions"], "restart"):
            world.units.start(name)
        await world.units.reload()
        before = world.found()
        world.units.restarts.clear()
        await world.converge(osc)
        assert (world.units.restarts, world.units.stops) == ([], []), index
        assert world.found() == before, index
        assert world.state.is_at_rest
