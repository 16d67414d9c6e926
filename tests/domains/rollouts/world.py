"""A fleet on a real API server: appliances of an owner that knows no Hortus and follows PlacementDecisions alone."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.domains.definitions import define

from hortus.domains.inventory.types import CLUSTER_PROFILES, ClusterProfile
from hortus.domains.rollouts.composition import add_controllers
from hortus.engine import Manager
from hortus.engine.deputies import Deputies
from hortus.engine.rollouts import types
from hortus.engine.rollouts.types import (
    CHANGE_KINDS,
    PLACEMENT_DECISIONS,
    ROLLOUT_POLICIES,
    ROLLOUTS,
    ChangeKind,
    PlacementDecision,
    Rollout,
    RolloutPolicy,
)
from hortus.kube import Client, Resource
from hortus.kube.objects import Object
from hortus.schema import crd, decode
from hortus.testing.apiserver import TestServer

APPLIANCES = Resource("example.org", "v1", "appliances", "Appliance")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
FLEET = "fleet"
KINDS = (ChangeKind, RolloutPolicy, Rollout, PlacementDecision, ClusterProfile)
ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 60.0
_numbers = itertools.count(1)

APPLIANCE_CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "appliances.example.org"},
    "spec": {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"kind": "Appliance", "plural": "appliances", "singular": "appliance", "listKind": "ApplianceList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
}
APPLIANCE_KIND: Object = {
    "apiVersion": CHANGE_KINDS.api_version,
    "kind": "ChangeKind",
    "metadata": {"name": "appliance"},
    "spec": {
        "resource": {"group": "example.org", "version": "v1", "resource": "appliances"},
        "cluster": "self.metadata.name",
        "subject": "self.spec.product",
        "version": "self.spec.?version.orValue('')",
        "succeeded": "self.?status.?version.orValue('') == self.spec.version && self.status.state == 'Works'",
        "failed": "self.?status.?version.orValue('') == self.spec.version && self.status.state == 'Broken'",
        "message": "self.?status.?message.orValue('')",
        "patch": "{'spec': {'version': to}}",
    },
}


class RolloutWorld:
    """One logical cluster with a fleet in it."""

    def __init__(self, client: Client, kubeconfig: Path) -> None:
        self.client = client
        self.kubeconfig = kubeconfig
        self.outcomes: Callable[[str], str] = lambda cluster: "Works"
        """The state that a cluster's appliance reaches at a new version; empty for one that never finishes."""

    @asynccontextmanager
    async def controllers(
        self, *, sync_time: float = 10.0, trusted: str = "*", change_kinds: Sequence[ChangeKind] = ()
    ) -> AsyncIterator[Manager]:
        """One process of controllers, killed at the end. `trusted` are the namespaces that it trusts."""
        async with Client(self.client.access) as client:
            manager = Manager(client, grace=0.0)
            deputies = Deputies(client, trusted, clock=manager.clock)
            add_controllers(
                manager,
                client,
                fleet_namespace=FLEET,
                watched="",
                deputies=deputies,
                change_kinds=change_kinds,
                sync_time=sync_time,
            )
            async with manager.running():
                yield manager

    @asynccontextmanager
    async def decider(self) -> AsyncIterator[int]:
        """The controllers as a process of their own, by its id; killed at the end."""
        words = ["-m", "tests.domains.rollouts.process", str(self.kubeconfig), FLEET]
        out, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(sys.executable, *words, stdout=out, stderr=null, cwd=ROOT)
        assert process.stdout is not None
        while await process.stdout.readline() not in (b"started\n", b""):
            pass
        assert process.returncode is None
        # Its log goes on, and must not fill the pipe.
        reader = asyncio.create_task(process.stdout.read())
        try:
            yield process.pid
        finally:
            process.kill()
            await asyncio.gather(process.wait(), reader)

    @asynccontextmanager
    async def owner(self, *, follows: bool) -> AsyncIterator[None]:
        """The controller of appliances; with `follows` it sets admitted ones to the version of their rollout."""
        tasks = [asyncio.create_task(self._work())]
        if follows:
            tasks.append(asyncio.create_task(self._follow()))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def add_cluster(self, name: str, *, labels: Mapping[str, str] | None = None, version: str = "1") -> None:
        profile: Object = {
            "apiVersion": CLUSTER_PROFILES.api_version,
            "kind": "ClusterProfile",
            "metadata": {"name": name, "namespace": FLEET, "labels": dict(labels or {})},
            "spec": {"clusterManager": {"name": "test"}},
        }
        await self.client.create(CLUSTER_PROFILES, profile)
        appliance: Object = {
            "apiVersion": APPLIANCES.api_version,
            "kind": "Appliance",
            "metadata": {"name": name, "namespace": FLEET},
            "spec": {"product": "press", "version": version},
        }
        await self.client.create(APPLIANCES, appliance)

    async def want(self, name: str, version: str) -> None:
        """The owner of an appliance wants a version and asks by the annotation."""
        patch = {"metadata": {"annotations": {f"{types.WANTS}appliance": version}}}
        await self.client.patch(APPLIANCES, name, patch, FLEET)

    async def set_policy(self, name: str = "presses", **spec: Any) -> None:
        policy: Object = {
            "apiVersion": ROLLOUT_POLICIES.api_version,
            "kind": "RolloutPolicy",
            "metadata": {"name": name, "namespace": FLEET},
            "spec": {"changes": [{"kind": "appliance"}], **spec},
        }
        await self.client.apply(ROLLOUT_POLICIES, policy, field_manager="test")

    async def start(self, name: str = "by-hand", *, to: str = "2", **spec: Any) -> None:
        """Somebody starts a rollout."""
        rollout: Object = {
            "apiVersion": ROLLOUTS.api_version,
            "kind": "Rollout",
            "metadata": {"name": name, "namespace": FLEET},
            "spec": {"change": {"kind": "appliance", "subject": "press", "to": to}, **spec},
        }
        await self.client.create(ROLLOUTS, rollout)

    async def order(self, name: str, **spec: Any) -> None:
        await self.client.patch(ROLLOUTS, name, {"spec": spec}, FLEET)

    async def label(self, name: str, **labels: str) -> None:
        await self.client.patch(CLUSTER_PROFILES, name, {"metadata": {"labels": labels}}, FLEET)

    async def set_version(self, name: str, version: str) -> None:
        await self.client.patch(APPLIANCES, name, {"spec": {"version": version}}, FLEET)

    async def finish(self, name: str, version: str) -> None:
        """The appliance reaches a version and works."""
        patch = {"status": {"version": version, "state": "Works"}}
        await self.client.patch(APPLIANCES, name, patch, FLEET, subresource="status")

    async def serve_ghosts(self) -> None:
        """Install a kind that was missing."""
        names = {"kind": "Ghost", "plural": "ghosts", "singular": "ghost", "listKind": "GhostList"}
        spec = {**APPLIANCE_CRD["spec"], "names": names}
        await self.client.create(CRDS, {**APPLIANCE_CRD, "metadata": {"name": "ghosts.example.org"}, "spec": spec})

    async def until_ready(
        self, kind: type[Any], resource: Resource, name: str, reason: str, *, namespace: str = ""
    ) -> str:
        """The message of the Ready condition as soon as it has this reason."""
        async with (
            asyncio.timeout(PATIENCE),
            self.client.watch(resource, namespace, initial_events=True) as events,
        ):
            async for event in events:
                if event.type in ("BOOKMARK", "DELETED") or event.object["metadata"]["name"] != name:
                    continue
                for condition in decode(kind, event.object).status.conditions:
                    if condition.type == "Ready" and condition.reason == reason:
                        return str(condition.message)
        raise AssertionError("the watch ended")

    async def until_no_slices(self) -> None:
        left: set[str] = set()
        complete = False
        async with (
            asyncio.timeout(PATIENCE),
            self.client.watch(PLACEMENT_DECISIONS, FLEET, initial_events=True) as events,
        ):
            async for event in events:
                name = event.object["metadata"].get("name", "")
                complete = complete or event.type == "BOOKMARK"
                (left.discard if event.type in ("BOOKMARK", "DELETED") else left.add)(name)
                if complete and not left:
                    return

    async def until(self, says: Callable[[Rollout], bool], *, name: str = "", patience: float = PATIENCE) -> Rollout:
        """The rollout as soon as `says` holds of it."""
        last: Rollout | None = None
        try:
            async with (
                asyncio.timeout(patience),
                self.client.watch(ROLLOUTS, FLEET, initial_events=True) as events,
            ):
                async for event in events:
                    if event.type in ("BOOKMARK", "DELETED"):
                        continue
                    last = decode(Rollout, event.object)
                    if (not name or last.metadata.name == name) and says(last):
                        return last
        except TimeoutError:
            raise AssertionError(f"waited in vain; the last rollout seen: {last}") from None
        raise AssertionError("the watch ended")

    async def admitted(self, name: str) -> set[str]:
        slices = (await self.client.list(PLACEMENT_DECISIONS, FLEET, f"{types.Label.DECISION_KEY}={name}")).items
        return {one.cluster_profile_ref.name for obj in slices for one in decode(PlacementDecision, obj).decisions}

    async def versions(self) -> dict[str, str]:
        return {one["metadata"]["name"]: one["spec"]["version"] for one in (await self.client.list(APPLIANCES)).items}

    # The owner of the appliances.

    async def _work(self) -> None:
        async with self.client.watch(APPLIANCES, FLEET, initial_events=True) as events:
            async for event in events:
                if event.type in ("BOOKMARK", "DELETED"):
                    continue
                spec, status = event.object["spec"], event.object.get("status") or {}
                name = event.object["metadata"]["name"]
                state = self.outcomes(name)
                if spec["version"] != status.get("version") and state:
                    patch = {"status": {"version": spec["version"], "state": state, "message": "no ink"}}
                    await self.client.patch(APPLIANCES, name, patch, FLEET, subresource="status")

    async def _follow(self) -> None:
        async with self.client.watch(PLACEMENT_DECISIONS, FLEET, initial_events=True) as events:
            async for event in events:
                if event.type in ("BOOKMARK", "DELETED"):
                    continue
                rollout = event.object["metadata"]["labels"][types.Label.DECISION_KEY]
                to = (await self.client.get(ROLLOUTS, rollout, FLEET))["spec"]["change"]["to"]
                versions = await self.versions()
                for one in event.object["decisions"]:
                    name = one["clusterProfileRef"]["name"]
                    if versions[name] != to:
                        await self.client.patch(APPLIANCES, name, {"spec": {"version": to}}, FLEET)


async def install(client: Client) -> None:
    """Creates the CRDs and the namespace where they are missing."""
    for definition in (*map(crd, KINDS), APPLIANCE_CRD):
        await client.apply(CRDS, definition, field_manager="test", force=True)
    await client.apply(NAMESPACES, {"metadata": {"name": FLEET}}, field_manager="test", force=True)


@asynccontextmanager
async def world(server: TestServer) -> AsyncIterator[RolloutWorld]:
    """A fresh logical cluster with the CRDs and no cluster of a fleet."""
    name = f"rollouts-{next(_numbers)}"
    await asyncio.to_thread(server.create_cluster, name)
    kubeconfig = server.kubeconfig_for(name)
    async with Client.from_kubeconfig(kubeconfig) as client:
        await define(server, name, *KINDS, APPLIANCE_CRD)
        await client.create(NAMESPACES, {"metadata": {"name": FLEET}})
        yield RolloutWorld(client, kubeconfig)
