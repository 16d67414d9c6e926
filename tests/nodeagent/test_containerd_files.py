from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.nodeagent.world import World, osc_of

from hortus.nodeagent.containerdconfig import patched
from hortus.nodeagent.osc import CriConfig, OscRegistryHost, RegistryUpstream, convert
from hortus.nodeagent.registries import hosts_toml, until_ready
from hortus.nodeagent.seams import NodeFault
from hortus.testing import FakeClock

CRI, IMAGES, RUNTIME = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime"
IMPORTS = ["/etc/containerd/conf.d/*.toml"]
OLD = {
    "imports": IMPORTS,
    f"plugins/{CRI}/registry/config_path": "/etc/containerd/certs.d",
    f"plugins/{CRI}/sandbox_image": "pause:3.10",
    f"plugins/{CRI}/containerd/runtimes/runc/options/SystemdCgroup": True,
    f"plugins/{CRI}/cni/bin_dir": "/opt/cni/bin",
}
NEW = {
    "imports": IMPORTS,
    f"plugins/{IMAGES}/registry/config_path": "/etc/containerd/certs.d",
    f"plugins/{IMAGES}/pinned_images/sandbox": "pause:3.10",
    f"plugins/{RUNTIME}/containerd/runtimes/runc/options/SystemdCgroup": True,
    f"plugins/{RUNTIME}/cni/bin_dir": "/opt/cni/bin",
}


def cri(**parts: Any) -> CriConfig:
    found = convert(osc_of(containerd={"sandboxImage": "pause:3.10", **parts})).spec.cri_config
    assert found is not None
    return found


def leaves(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, f"{at}/{key}" if at else key)
    else:
        yield at, value


def difference(before: str, after: str) -> dict[str, Any]:
    """The settings that differ, with their new values."""
    old, new = dict(leaves(tomllib.loads(before))), dict(leaves(tomllib.loads(after)))
    return {key: new.get(key) for key in old.keys() | new.keys() if old.get(key) != new.get(key)}


@pytest.mark.parametrize(
    ("name", "containerd", "expected"),
    [
        # The file of version 2 has the CNI folder already.
        ("v2", "1.7.23", {key: value for key, value in OLD.items() if "bin_dir" not in key}),
        ("v3", "2.0.2", NEW),
        (
            "v3",
            "v2.2.0",
            {key: value for key, value in NEW.items() if "bin_dir" not in key}
            | {f"plugins/{RUNTIME}/cni/bin_dir": None, f"plugins/{RUNTIME}/cni/bin_dirs": ["/opt/cni/bin"]},
        ),
    ],
)
def test_only_the_named_settings_of_containerds_default_file_change(
    name: str, containerd: str, expected: dict[str, Any], upstream: Path
) -> None:
    before = (upstream / "gardener" / "node-agent" / f"containerd-config.toml-{name}").read_text()
    after = patched(before, cri(), containerd=containerd)
    assert difference(before, after) == expected
    assert after.splitlines()[0] == before.splitlines()[0], "comments stay"
    assert patched(after, cri(), containerd=containerd) == after, "the second time changes nothing"


@pytest.mark.parametrize(
    ("version", "expected"), [("", OLD), ("version = 2", OLD), ("version = 3", NEW), ("version = 4", NEW)]
)
def test_an_empty_file_of_each_version_gets_the_settings(version: str, expected: dict[str, Any]) -> None:
    assert difference(version, patched(version, cri(), containerd="2.1.4")) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [("version = 5", "has version 5; versions 1 to 4 are known"), ("version = ", "is not valid TOML")],
)
def test_a_file_that_is_not_understood_is_refused(text: str, problem: str) -> None:
    with pytest.raises(NodeFault, match=problem):
        patched(text, cri(), containerd="2.0.0")


def test_plugin_operations_add_remove_and_follow_the_runtimes_to_their_new_plugin() -> None:
    operations = [
        {"path": [CRI, "containerd", "runtimes", "gvisor"], "values": {"runtime_type": "io.containerd.runsc.v1"}},
        {"op": "add", "path": ["io.containerd.snapshotter.v1.overlayfs"], "values": {"sync_remove": True}},
        {"op": "remove", "path": [IMAGES, "registry"]},
        {"op": "remove", "path": ["no", "such", "table"]},
    ]
    found = tomllib.loads(patched("version = 3", cri(plugins=operations), containerd="2.0.0"))["plugins"]
    assert found[RUNTIME]["containerd"]["runtimes"]["gvisor"] == {"runtime_type": "io.containerd.runsc.v1"}
    assert found["io.containerd.snapshotter.v1.overlayfs"] == {"sync_remove": True}
    assert "registry" not in found[IMAGES]
    assert CRI not in found
    old = tomllib.loads(patched("version = 2", cri(plugins=operations[:1]), containerd="1.7.0"))["plugins"]
    assert old[CRI]["containerd"]["runtimes"]["gvisor"] == {"runtime_type": "io.containerd.runsc.v1"}


def test_hosts_toml_reads_back_as_it_was_meant() -> None:
    registry = RegistryUpstream(
        upstream="docker.io",
        server='https://registry-1.docker.io/"\\',
        hosts=(
            OscRegistryHost(url="https://mirror:5000", ca_certs=("/etc/ca.crt",), override_path=True),
            OscRegistryHost(url="http://other", capabilities=("pull", "push")),
        ),
    )
    text = hosts_toml(registry)
    assert text.startswith("# managed by the node agent")
    assert tomllib.loads(text) == {
        "server": 'https://registry-1.docker.io/"\\',
        "host": {
            "https://mirror:5000": {"capabilities": ["pull", "resolve"], "ca": ["/etc/ca.crt"], "override_path": True},
            "http://other": {"capabilities": ["pull", "push"]},
        },
    }


async def test_a_registry_with_a_probe_is_written_once_all_its_hosts_answer(tmp_path: Path) -> None:
    import asyncio

    world = World(tmp_path)
    hosts = [{"url": "https://a"}, {"url": "https://b"}]
    osc = osc_of(
        units=[],
        containerd={
            "sandboxImage": "pause",
            "registries": [{"upstream": "docker.io", "readinessProbe": True, "hosts": hosts}, {"upstream": "quay.io"}],
        },
    )
    world.units.system.add("containerd.service")
    world.answering = {"https://a"}
    work = asyncio.create_task(world.converge(osc))
    await world.clock.advance(3)
    assert world.units.restarts == ["containerd.service"], "the rest does not wait"
    assert world.files.names("/etc/containerd/certs.d") == ["quay.io"]
    world.answering.add("https://b")
    await world.clock.advance(2)
    await work
    assert world.files.names("/etc/containerd/certs.d") == ["docker.io", "quay.io"]
    assert world.files.mode("/etc/containerd/certs.d/docker.io/hosts.toml") == 0o644


async def test_hosts_that_answered_are_not_asked_again() -> None:
    import asyncio

    asked: list[str] = []

    async def probe(host: OscRegistryHost) -> bool:
        asked.append(host.url)
        return len(asked) != 2

    clock = FakeClock()
    registry = RegistryUpstream(upstream="a", hosts=(OscRegistryHost(url="1"), OscRegistryHost(url="2")))
    work = asyncio.create_task(until_ready(registry, probe, clock))
    await clock.advance(2)
    await work
    assert asked == ["1", "2", "2"]
