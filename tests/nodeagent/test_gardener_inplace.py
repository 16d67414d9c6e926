"""Updates in place under Gardener's agent and under ours: when they begin, how they end, and what the Node says."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from tests.nodeagent.randomosc import UNITS, abandoned, configuration, successor
from tests.nodeagent.updatable import CPU_STATE, PKI, REAL, RELEASE, Updatable
from tests.nodeagent.world import PATH, Osc, text_of
from tests.oracles.programs import GoProgram

from hortus.engine.outcomes import StepError
from hortus.nodeagent.converging import checked, checksum_of, remembered_changes
from hortus.nodeagent.inplace import is_installed
from hortus.nodeagent.node import AwaitsOutside
from hortus.nodeagent.seams import NodeFault

SEED = 20263
pytestmark = pytest.mark.oracle
LONG = (pytest.mark.soak, pytest.mark.timeout(3600))
INSTALLED = "1592.4"
RESULT, REASON = "node.machine.sapcloud.io/update-result", "node.machine.sapcloud.io/update-failed-reason"
UPDATING = "node-agent.gardener.cloud/updating-operating-system-version"
PODS = ["proxy", "web"]


class Circumstances(NamedTuple):
    """The state of the Node, and the outcomes of the steps."""

    drained: bool
    result: str
    command: str
    """The update command: `installs`, `stays` without effect, or the output of one that fails."""
    kubelet: bool
    """True for a kubelet that is healthy."""

    @property
    def ready(self) -> bool:
        return self.drained or self.result == "failed"


class Ending(NamedTuple):
    """The end, as far as both sides have it."""

    result: str
    has_reason: bool
    updating: str
    commands: int
    deleted: bool
    applied: bool
    certificates: int
    files: dict[str, bytes]


def drawn(random: Random) -> Circumstances:
    return Circumstances(
        drained=random.random() < 0.75,
        result=random.choice(("", "", "", "failed", "successful")),
        command=random.choice(("installs", "installs", "stays", "system failure", "Network problems: no route")),
        kubelet=random.random() < 0.8,
    )


def pair(random: Random) -> tuple[Osc, Osc]:
    """Two configurations of a pool with updates in place. The agent's own unit would only start the agent again."""
    first = configuration(random, in_place=True)
    first["spec"]["inPlaceUpdates"]["operatingSystemVersion"] = INSTALLED
    second = successor(random, first)
    while "inPlaceUpdates" not in second["spec"]:
        second = successor(random, first)
    for osc in (first, second):
        for holder, name in ((osc["spec"], "units"), (osc["status"], "extensionUnits")):
            own = [unit for unit in holder.get(name, ()) if unit["name"] != "gardener-node-agent.service"]
            holder[name] = own
    return first, second


def counted(files: dict[str, bytes], *, waits: bool) -> dict[str, bytes]:
    """The files that both sides write alike; Gardener's agent patches containerd before it waits for the drain."""
    apart = ("/var/lib/gardener-node-agent/", "/var/lib/kubelet/k", "/var/lib/kubelet/pki", "/etc/containerd/certs.d")
    containerd = ("/etc/containerd/config.toml",)
    skipped = (*apart, *containerd, CPU_STATE, "/etc/os-release") if waits else (*apart, *containerd, CPU_STATE)
    return {path: content for path, content in files.items() if not path.startswith(skipped)}


def theirs(gardener: GoProgram, first: Osc, second: Osc, given: Circumstances) -> Ending:
    wanted = second["spec"]["inPlaceUpdates"]["operatingSystemVersion"]
    condition = {"type": "InPlaceUpdate", "status": "True", "reason": "ReadyForUpdate"}
    answer = gardener.ask(
        op="reconcile",
        old=text_of(first).decode(),
        text=text_of(second).decode(),
        host="node-1",
        path=PATH,
        release=RELEASE.format(INSTALLED),
        containerd="1.7.23",
        files={"/etc/containerd/config.toml": "version = 2\n", PKI: "old", CPU_STATE: "old", REAL: KUBECONFIG},
        node={
            "labels": {RESULT: given.result} if given.result else {},
            "conditions": [condition] if given.drained else [],
        },
        pods=PODS,
        installs=wanted if given.command == "installs" else "",
        output=given.command,
        fails=given.command not in ("installs", "stays"),
        kubeletFails=not given.kubelet,
        # Another start of the agent, without one of the machine, would count as a machine that came back as it was.
        passes=1 if given.command == "stays" and not is_installed(wanted, INSTALLED) else 3,
    )
    assert "answer" in answer, answer
    found = answer["answer"]
    labels, annotations = found["labels"] or {}, found["annotations"] or {}
    files = {path: content.encode() for path, content in found["files"].items()}
    return Ending(
        result=labels.get(RESULT, ""),
        has_reason=REASON in annotations,
        updating=annotations.get(UPDATING, ""),
        commands=len(set(found["commands"])),
        deleted=found["pods"] == [],
        applied=annotations.get("checksum/cloud-config-data") == "new",
        certificates=found["requested"],
        files=files,
    )


KUBECONFIG = "apiVersion: v1\nkind: Config\nclusters: []\nusers: []\ncontexts: []\n"


async def ours(root: Path, first: Osc, second: Osc, given: Circumstances) -> tuple[Ending, bool]:
    """The end, and True when the agent waits for the drain."""
    world = Updatable(root)
    world.units.system |= set(UNITS)
    world.runtime.images = {"registry.example.org/a:v1": {path: _from_image(path) for path in ("/a", "/b")}}
    for path, text in (("/etc/os-release", RELEASE.format(INSTALLED)), (PKI, "old"), (CPU_STATE, "old"), (REAL, "old")):
        world.put(path, text)
    world.files.write("/etc/containerd/config.toml", b"version = 2\n", mode=0o644)
    await world.converge(first)
    reports = world.reports
    reports.drained, reports.result, reports.running = given.drained, given.result, ["default/proxy/1", "default/web/2"]
    world.kubelet_problem = "" if given.kubelet else "refused"
    if given.command not in ("installs", "stays"):
        world.host.outcomes = [(1, given.command)] * 100
    wanted = second["spec"]["inPlaceUpdates"]["operatingSystemVersion"]
    world.host.act = lambda: setattr(world, "staged", wanted)
    text = text_of(second)
    osc = checked(text, before=world.state.applied().value)
    changes = await remembered_changes(world.node, world.state, osc, checksum_of(text))
    waits = changes.in_place and not given.ready
    applied = not waits and await _applied(world, second, given)
    return Ending(
        result=reports.result,
        has_reason=bool(reports.reason),
        updating=reports.updating,
        commands=len(set(world.host.commands)),
        deleted=not {"default/proxy/1", "default/web/2"} & set(reports.running),
        applied=applied,
        certificates=reports.certificates,
        files={path: content for path, (_, content) in world.tree().items()},
    ), waits


def _from_image(path: str) -> bytes:
    return f"image of the test: registry.example.org/a:v1{path}".encode()


async def _applied(world: Updatable, osc: Osc, given: Circumstances) -> bool:
    """True when the configuration was brought to its end."""
    work = asyncio.create_task(world.converge(osc) if given.command == "stays" else world.update(osc))
    while not work.done():
        await world.clock.advance(30)
    try:
        await work
    except (AwaitsOutside, NodeFault, StepError):
        return False
    return True


@pytest.mark.parametrize("number", [150, pytest.param(3000, marks=LONG)])
async def test_an_update_in_place_ends_as_under_gardeners_agent(
    number: int, gardener: GoProgram, tmp_path: Path
) -> None:
    random = Random(SEED)
    seen: list[Any] = []
    for index in range(number):
        (first, second), given = pair(random), drawn(random)
        mine, waits = await ours(tmp_path / str(index), first, second, given)
        their = theirs(gardener, first, second, given)
        left = {} if waits else abandoned(first, second)
        expected = their._replace(
            files={path: text for path, text in counted(their.files, waits=waits).items() if path not in left}
        )
        found = mine._replace(files=counted(mine.files, waits=waits))
        assert found == expected, f"{index}: {given} {waits}"
        seen.append((waits, mine.result, mine.applied, mine.commands))
    assert len(set(seen)) > 5, set(seen)
