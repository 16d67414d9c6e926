"""Clusters with pools that are updated in place: a machine controller that is played, and agents as they are."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.domains.clusters.shoot import samples
from tests.nodeagent.cluster import Machine, Pool, settings_text
from tests.oracles.programs import GoProgram
from tests.waiting import until

from hortus.domains.clusters.shoot import shoot_for
from hortus.domains.clusters.types import Runtime
from hortus.domains.nodes.service import CANDIDATE, IN_PLACE, SELECTED
from hortus.kube import Client, Object, PatchKind, SystemClock
from hortus.kube.objects import format_time
from hortus.nodeagent.cluster import NAMESPACE, NODES, SECRETS
from hortus.nodeagent.fakes import FakeRuntime
from hortus.nodeagent.inplace import RESULT
from hortus.nodeagent.osc import decode
from hortus.nodeagent.settings import read
from hortus.schema import decode as typed

POOL = "workers"
UPDATE = "/usr/bin/update-os"
RELEASE = 'PRETTY_NAME="Garden Linux {}"\n'
RESTART = "worker.gardener.cloud/restart-systemd-services"


class PoolSecret:
    """The configuration of the pool, as gardenlet makes it from the Shoot of a Runtime."""

    def __init__(self, gardener: GoProgram, *, kubernetes: str, system: str, strategy: str) -> None:
        self.system = system
        self.shoot = shoot_of(kubernetes=kubernetes, system=system, strategy=strategy)
        update = {"inPlaceUpdates": {"osUpdate": {"command": UPDATE, "args": [system]}}}
        answer = gardener.ask(op="pools", shoot=self.shoot, status=update)
        assert "answer" in answer, answer
        made = answer["answer"][POOL]
        self.name, self.checksum, self.text = made["name"], made["checksum"], made["text"]


def shoot_of(*, kubernetes: str, system: str, strategy: str) -> Object:
    machine = {"type": "m6i.large", "image": {"name": "gardenlinux", "version": system}}
    pool = samples.pool(
        POOL,
        zones=samples.ZONES["aws"],
        machine=machine,
        updateStrategy=strategy,
        **_settings(strategy),
    )
    runtime = samples.runtime(pool=pool, kubernetes={"version": kubernetes})
    return shoot_for(typed(Runtime, runtime), samples.CONFIG, samples.CONTEXT)


def _settings(strategy: str) -> Object:
    """Fields of a pool that go with its strategy: only pools in place have a timeout, and manual ones no numbers."""
    timeouts = {"machineDrainTimeout": "10m"}
    if strategy == "AutoRollingUpdate":
        return {"machineControllerManager": timeouts}
    in_place: Object = {"machineControllerManager": {**timeouts, "inPlaceUpdateTimeout": "45m"}}
    return in_place if strategy == "ManualInPlaceUpdate" else {**in_place, "maxSurge": 0, "maxUnavailable": 1}


class AnyImage(FakeRuntime):
    """A containerd that has a file for every path of every image."""

    async def file_from_image(self, image: str, path: str) -> bytes:
        return f"{path} of {image}".encode()


class InPlaceCluster:
    """One cluster with a pool, its agents, and its machine controller."""

    def __init__(self, pool: Pool, root: Path, *, nodes: int, secret: PoolSecret) -> None:
        self.pool = pool
        self.client = pool.client
        self.secret = secret
        self.machines = {f"node-{number}": self._machine(root, f"node-{number}") for number in range(nodes)}
        self.staged: dict[str, str] = {}
        """The version with which a machine starts the next time, by node."""
        self.drained: list[str] = []
        """The nodes that were drained, in order."""
        self.is_automatic = False
        """True for AutoInPlaceUpdate: the machine controller selects nodes by itself, one at a time."""

    def _machine(self, root: Path, name: str) -> Machine:
        machine = Machine(self.pool, root / name, name)
        machine.settings = read(settings_text().replace("gardener-node-agent-pool-0123456789abcdef", self.secret.name))
        world = machine.world
        world.runtime = AnyImage()
        world.host.act = lambda: self.staged.update({name: world.host.commands[-1][-1]})
        world.units.system |= decode(self.secret.text).merged_units().keys()
        world.files.write("/etc/os-release", RELEASE.format(self.secret.system).encode(), mode=0o644)
        return machine

    def system_of(self, node: str) -> str:
        release = self.machines[node].world.files.read("/etc/os-release") or b""
        return release.decode().split()[-1].strip('"')

    async def publish(self, secret: PoolSecret, **annotations: str) -> None:
        """gardenlet writes the Secret, and the machine controller finds nodes that are to be updated."""
        metadata = {
            "name": secret.name,
            "namespace": NAMESPACE,
            "labels": {"gardener.cloud/role": "operating-system-config"},
            "annotations": {"checksum/data-script": secret.checksum, **annotations},
        }
        data = {"osc.yaml": base64.b64encode(secret.text.encode()).decode()}
        await self.client.apply(SECRETS, {"metadata": metadata, "data": data}, field_manager="test", force=True)
        self.secret = secret

    async def register(self) -> None:
        for name in self.machines:
            await self.pool.register(name)
            labels = {"worker.gardener.cloud/gardener-node-agent-secret-name": self.secret.name}
            await self.client.patch(NODES, name, {"metadata": {"labels": labels}})

    async def begin(self) -> None:
        """The Worker has changed: all nodes are candidates."""
        for name in self.machines:
            await self.client.patch(NODES, name, {"metadata": {"labels": {CANDIDATE: "true"}}})

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for machine in self.machines.values():
                await stack.enter_async_context(machine.running())
            task = asyncio.create_task(self._control())
            try:
                yield
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    # The machine controller, as pkg/util/provider/machinecontroller and pkg/controller/deployment_inplace.go of
    # gardener/machine-controller-manager have it.

    async def _control(self) -> None:
        while True:
            nodes = (await self.client.list(NODES)).items
            for node in nodes:
                await self._advance(node)
            busy = any(SELECTED in node["metadata"]["labels"] for node in nodes)
            waiting = [node for node in nodes if _reason(node) == "CandidateForUpdate"]
            if self.is_automatic and waiting and not busy:
                await self._label(waiting[0]["metadata"]["name"], {SELECTED: "true"})
            await asyncio.sleep(0.05)

    async def _advance(self, node: Object) -> None:
        name, labels, reason = node["metadata"]["name"], node["metadata"]["labels"], _reason(node)
        result = labels.get(RESULT)
        await self._reboot(name)
        if CANDIDATE not in labels:
            return
        if reason in ("", "UpdateSuccessful") and result is None:
            await self._condition(name, "CandidateForUpdate")
        elif SELECTED in labels and reason == "CandidateForUpdate":
            await self._condition(name, "SelectedForUpdate")
            self.drained.append(name)
            await self._condition(name, "ReadyForUpdate")
        elif result == "successful" and reason != "UpdateSuccessful":
            await self._condition(name, "UpdateSuccessful")
        elif result == "successful":
            await self._label(name, {CANDIDATE: None, SELECTED: None, RESULT: None})
        elif result == "failed" and reason != "UpdateFailed":
            await self._condition(name, "UpdateFailed")

    async def _reboot(self, name: str) -> None:
        """A machine on which the update command has succeeded starts again, and its agent with it."""
        if wanted := self.staged.pop(name, ""):
            world = self.machines[name].world
            world.files.write("/etc/os-release", RELEASE.format(wanted).encode(), mode=0o644)
            world.host.boots += 1
            await self.client.patch(NODES, name, {"metadata": {"annotations": {RESTART: "gardener-node-agent"}}})

    async def _condition(self, name: str, reason: str) -> None:
        condition = {
            "type": IN_PLACE,
            "status": "True",
            "reason": reason,
            "lastTransitionTime": format_time(SystemClock().now()),
        }
        patch = {"status": {"conditions": [condition]}}
        await self.client.patch(NODES, name, patch, subresource="status", kind=PatchKind.STRATEGIC)

    async def _label(self, name: str, labels: dict[str, Any]) -> None:
        await self.client.patch(NODES, name, {"metadata": {"labels": labels}})

    async def until_applied(self, *names: str) -> None:
        for name in names or self.machines:
            await self.machines[name].applied(self.secret.checksum)


def _reason(node: Object) -> str:
    conditions = node.get("status", {}).get("conditions", ())
    return next((each["reason"] for each in conditions if each["type"] == IN_PLACE), "")


async def until_label(client: Client, node: str, label: str, value: str | None) -> None:
    async def is_there() -> bool:
        found = await client.get(NODES, node)
        return bool(found["metadata"]["labels"].get(label) == value)

    await until(is_there)
