"""A change planned, then really applied: what the fleet came to, compared with the plan object by object.

The live fleet is a `hortus up` of its own. Its state is read by the same reads as the fork's, and both are compared
with the plan's own comparison; identities, checksums and addresses are left open.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from hortus.apiserver.clusters.born import born_objects
from hortus.cli.plan.changing import FIELD_MANAGER
from hortus.cli.plan.flags import plan_flags
from hortus.cli.plan.running import PlanRequest, run_plan
from hortus.domains import all_domains
from hortus.kube import Client
from hortus.kube.errors import KubeError
from hortus.kube.kubeconfig import Trust, load
from hortus.kube.objects import Object, Resource
from hortus.simulation.fork import Fork, ForkSettings, LiveClusters, VirtualClock, VirtualLoop
from hortus.simulation.plan.building import name_of
from hortus.simulation.plan.composing import PlanRun
from hortus.simulation.plan.differences import differences
from hortus.simulation.plan.grouping import opened_text
from hortus.simulation.plan.snapshot import ForkSnapshot
from hortus.terminal import Connections

NAMESPACE = "kcp-system"
PATIENCE = 75.0
"""Seconds without a step towards the planned state after which a live fleet has missed it."""
_SPREAD = 300.0
"""Seconds over which a channel moves over the Kymas: the default of the longest delay."""
_PAUSE = 1.0
_UNCOMPARED = frozenset({"tenancy.hortus.dev/logicalclusters", "core/secrets"})
"""Secrets are compared by their names alone: tokens differ."""

_RUNTIMES = Resource("infrastructuremanager.kyma-project.io", "v1", "runtimes", "Runtime")
_KYMAS = Resource("operator.kyma-project.io", "v1beta2", "kymas", "Kyma")
_RELEASES = Resource("operator.kyma-project.io", "v1beta2", "modulereleasemetas", "ModuleReleaseMeta")
_ACCESSES = Resource("access.hortus.dev", "v1alpha1", "clusteraccesses", "ClusterAccess")
_AGENTS = Resource("fleet.hortus.dev", "v1alpha1", "agentconfigurations", "AgentConfiguration")
_OWN_AGENTS = Resource("instana.io", "v1", "agents", "InstanaAgent")
_STACKS = Resource("clusterstack.x-k8s.io", "v1alpha1", "clusterstacks", "ClusterStack")
_CLUSTERS = Resource("cluster.x-k8s.io", "v1beta1", "clusters", "Cluster")
_SECRETS = Resource("", "v1", "secrets", "Secret")
_AGENT = {"endpointHost": "ingress.example.org", "endpointPort": "443"}


class Edit(NamedTuple):
    """One change that may be made to both sides."""

    text: str
    resource: Resource
    name: str
    body: Object
    """A merge patch, or the whole object where it is created."""
    creates: bool = False
    namespace: str = NAMESPACE
    delay: float = 0.0
    """Seconds that may pass until something follows from it."""

    async def make(self, client: Client) -> None:
        if self.creates:
            await client.apply(self.resource, self.body, field_manager=FIELD_MANAGER)
        else:
            await client.patch(self.resource, self.name, self.body, self.namespace, field_manager=FIELD_MANAGER)


def edits(random: Random, clusters: int) -> Iterator[Edit]:
    """Random changes without end, of clusters, administrators, modules, channels, accesses, agents and stacks.

    The fleet has been prepared by `founding`.
    """
    number = 0
    while True:
        number += 1
        name = f"demo-{random.randint(1, clusters)}"
        yield random.choice(
            (
                _version(name, random.choice(("1.34.2", "1.34.3", "1.35.0"))),
                _administrators(name, [f"person-{random.randint(1, 9)}@example.org"]),
                _modules(name, random.sample(("template-operator", "greeter", "ledger"), random.randint(0, 3))),
                _channel("template-operator", random.choice(("1.0.0", "1.1.0"))),
                _channel("template-operator", random.choice(("1.0.0", "1.1.0")), "fast"),
                _access(name, number, random.choice(("pods", "configmaps", "services"))),
                _label(name, random.choice(("gold", "silver"))),
                _agents({"labels": {"team": random.choice("abc")}}),
                _agents({"requests": {"cpu": random.choice(("0.4", "0.6")), "memory": "512Mi"}}),
                _selected(random.choice(({}, {"matchLabels": {"fleet.hortus.dev/provider": "aws"}}))),
                _own_agent({"labels": {"team": random.choice("abc")}}),
                _releases(random.choice((["v1"], ["v1", "v2"]))),
                _topology("shop", f"docker-sample-1-34-{random.choice(('v1', 'v2'))}", "v1.34.1"),
                _topology("shop", "docker-sample-1-35-v1", "v1.35.0"),
                _cluster(f"shop-{number}", f"docker-sample-1-34-{random.choice(('v1', 'v2'))}", "v1.34.1"),
            )
        )


def founding() -> Iterator[Edit]:
    """Agents on all clusters and in the management cluster, two stacks, and a Cluster of one."""
    keys = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "agent-keys", "namespace": "fleet"}}
    yield Edit("keys", _SECRETS, "agent-keys", {**keys, "stringData": {"key": "a-key"}}, creates=True)
    yield _made(_AGENTS, "everywhere", "fleet", {"clusterSelector": {}, "template": _template(keysSecret="agent-keys")})
    yield _made(_OWN_AGENTS, "instana-agent", "default", _template(key="a-key"))
    stack = {"provider": "docker", "name": "sample", "kubernetesVersion": "1.35", "noProvider": True}
    yield _made(_STACKS, "sample-1-35", "stacks", stack)
    yield _cluster("shop", "docker-sample-1-34-v1", "v1.34.1")


def quick_edit() -> Edit:
    """A change that is over within seconds: another patch version of a cluster."""
    return _version("demo-1", "1.34.2")


def _version(name: str, version: str) -> Edit:
    return Edit(f"{name} to {version}", _RUNTIMES, name, {"spec": {"shoot": {"kubernetes": {"version": version}}}})


def _administrators(name: str, people: list[str]) -> Edit:
    return Edit(f"{name} for {people}", _RUNTIMES, name, {"spec": {"security": {"administrators": people}}})


def _label(name: str, ring: str) -> Edit:
    return Edit(f"{name} is {ring}", _RUNTIMES, name, {"metadata": {"labels": {"ring": ring}}})


def _modules(name: str, modules: list[str]) -> Edit:
    spec = [{"name": module, "customResourcePolicy": "CreateAndDelete", "managed": True} for module in modules]
    return Edit(f"{name} with {modules}", _KYMAS, name, {"spec": {"modules": spec}})


def _channel(module: str, version: str, channel: str = "regular") -> Edit:
    versions = {"fast": "1.1.0", "regular": "1.0.0", channel: version}
    channels = [{"channel": name, "version": one} for name, one in versions.items()]
    spec = {"channels": channels}
    return Edit(f"channel {channel} to {version}", _RELEASES, module, {"spec": spec}, delay=_SPREAD)


def _template(**agent: str) -> Object:
    return {"agent": {**_AGENT, **agent}, "cluster": {"name": "here"}, "zone": {"name": "here"}}


def _made(resource: Resource, name: str, namespace: str, spec: Object) -> Edit:
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
    return Edit(f"{resource.kind} {name} is made", resource, name, body, creates=True, namespace=namespace)


def _agents(pod: Object) -> Edit:
    spec = {"template": {"agent": {"pod": pod}}}
    return Edit(f"agents with {pod}", _AGENTS, "everywhere", {"spec": spec}, namespace="fleet")


def _selected(selector: Object) -> Edit:
    # A merge patch merges: what is not wanted any more is set to null.
    chosen = {"matchLabels": None, **selector}
    return Edit(
        f"agents where {selector}", _AGENTS, "everywhere", {"spec": {"clusterSelector": chosen}}, namespace="fleet"
    )


def _own_agent(pod: Object) -> Edit:
    spec = {"agent": {"pod": pod}}
    return Edit(f"own agent with {pod}", _OWN_AGENTS, "instana-agent", {"spec": spec}, namespace="default")


def _releases(versions: list[str]) -> Edit:
    return Edit(f"stack with {versions}", _STACKS, "sample-1-34", {"spec": {"versions": versions}}, namespace="stacks")


def _topology(name: str, class_name: str, version: str) -> Edit:
    topology = {"class": class_name, "version": version}
    return Edit(f"{name} by {class_name}", _CLUSTERS, name, {"spec": {"topology": topology}}, namespace="stacks")


def _cluster(name: str, class_name: str, version: str) -> Edit:
    return _made(_CLUSTERS, name, "stacks", {"topology": {"class": class_name, "version": version}})


def _access(name: str, number: int, plural: str) -> Edit:
    body = {
        "apiVersion": _ACCESSES.api_version,
        "kind": _ACCESSES.kind,
        "metadata": {"name": f"{name}-access-{number}", "namespace": NAMESPACE},
        "spec": {
            "client": f"client-{number}",
            "clusterRef": {"kind": "Runtime", "name": name},
            "expirationSeconds": 3600,
            "namespaces": ["default"],
            "rules": [{"apiGroups": [""], "resources": [plural], "verbs": ["get", "list"]}],
            "secret": {"name": f"{name}-access-{number}"},
        },
    }
    return Edit(f"access {number} to {plural} of {name}", _ACCESSES, body["metadata"]["name"], body, creates=True)


class Fleet:
    """A running `hortus up`, by its state directory."""

    def __init__(self, state: Path) -> None:
        self.connections = Connections(local_state=state, local_chosen=True)
        self.management = load(state / "kubeconfig").access()
        self.garden = load(state / "garden.kubeconfig").access()

    def plan(self, edit: Edit) -> PlanRun:
        async def change(fork: Fork) -> None:
            async with fork.client() as client:
                await edit.make(client)

        values = plan_flags(self.connections, None, self.garden.namespace)
        return run_plan(PlanRequest(self.management, self.garden, values, change), lambda run: run)

    async def apply(self, edit: Edit) -> None:
        async with Client(self.management) as client:
            await edit.make(client)

    def state(self, buckets: Mapping[str, object]) -> ForkSnapshot:
        """The live state of what a plan has read."""
        loop = VirtualLoop()
        with LiveClusters() as live:
            try:
                return loop.run_until_complete(self._state(live, loop, buckets))
            finally:
                loop.close()

    async def _state(self, live: LiveClusters, loop: VirtualLoop, buckets: Mapping[str, object]) -> ForkSnapshot:
        selector = ",".join(filter(None, (domain.kubeconfig_selector() for domain in all_domains())))
        settings = ForkSettings(
            management=self.management, garden=self.garden, kubeconfigs=selector, trust=Trust(plain_http=False)
        )
        async with Fork.opened(settings, live, VirtualClock(loop, began=time.time())) as fork:
            for bucket in buckets:
                try:
                    await fork.store.ensure(bucket)
                except KubeError:
                    continue
            return ForkSnapshot.of(fork)


def misses(run: PlanRun, before: ForkSnapshot, live: ForkSnapshot) -> list[str]:
    """The objects of which plan and reality differ, with the fields. Those with random names are counted by pattern."""
    found, alone = [], Counter[str]()
    for one in run.after.changes(live, {}):
        bucket = f"{one.cluster}/{one.suffix}"
        if one.suffix in _UNCOMPARED or one.key in run.activity.repeated or bucket not in run.after.buckets:
            continue
        if f"{one.namespace}/{one.name}" in _BORN.get(one.suffix, {}) or not _moved(run, one.key, before, live):
            continue
        if one.before is None or one.after is None:
            alone[f"{bucket} {one.namespace}/{opened_text(name_of(one))}"] += 1 if one.before is None else -1
            continue
        fields = [
            tuple(field)
            for field in differences(one.before, one.after)
            if opened_text(field.before) != opened_text(field.after) and not _is_free(one.suffix, field.path)
        ]
        if fields:
            found.append(f"{bucket} {one.namespace}/{one.name}: {fields}")
    sides = {True: "not planned", False: "planned only"}
    return [*found, *(f"{place}: {sides[count > 0]}" for place, count in alone.items() if count)]


def _moved(run: PlanRun, key: tuple[str, str], before: ForkSnapshot, live: ForkSnapshot) -> bool:
    """True where plan or reality changed the object at all: else it was different to begin with."""
    states = [snapshot.buckets.get(key[0], {}).get(key[1]) for snapshot in (run.before, run.after, before, live)]
    planned, real = states[0] != states[1], _wanted_of(states[2]) != _wanted_of(states[3])
    return planned or real


def _wanted_of(value: bytes | None) -> Any:
    if value is None:
        return None
    obj = orjson.loads(value)
    obj["metadata"] = {name: obj["metadata"].get(name) for name in ("labels", "annotations", "finalizers")}
    return obj


_FREE = {
    "core.gardener.cloud/shoots": ("status.lastOperation", "status.conditions", "status.retryCycleStartTime"),
    "multicluster.x-k8s.io/clusterprofiles": ("status.properties", "status.accessProviders"),
}
"""Reports of an operation, which takes seconds here and minutes there, and the authorities of new clusters."""
_BORN = born_objects(created=0.0, identity=str(UUID(int=0)), address="127.0.0.1", port=1)
"""The objects that every cluster has from the start; in a new one of a fork they are not stored."""


def _is_free(suffix: str, path: str) -> bool:
    return path.startswith(_FREE.get(suffix, ())) or path.endswith((".checksum", ".message"))


async def outcome(fleet: Fleet, edit: Edit) -> list[str]:
    """Plans and applies one change; returns what differs once the live fleet has come to the plan, or to rest."""
    run = await asyncio.to_thread(fleet.plan, edit)
    before = await asyncio.to_thread(fleet.state, run.after.buckets)
    await fleet.apply(edit)
    last, end = [""], 0.0
    while True:
        found = misses(run, before, await asyncio.to_thread(fleet.state, run.after.buckets))
        if found != last:
            last, end = found, time.monotonic() + PATIENCE + edit.delay
        if not found or time.monotonic() > end:
            return found
        await asyncio.sleep(_PAUSE)
