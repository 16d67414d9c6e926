"""Changes of cluster stacks and of the Clusters that use them."""

from __future__ import annotations

from random import Random

from tests.cli.plan.edits.shape import Edit, Seen, created, deleted, fresh, name_of, patched

from hortus.kube.objects import Resource

STACKS = Resource("clusterstack.x-k8s.io", "v1alpha1", "clusterstacks", "ClusterStack")
CLUSTERS = Resource("cluster.x-k8s.io", "v1beta1", "clusters", "Cluster")
POLICIES = Resource("fleet.hortus.dev", "v1alpha1", "stackpolicies", "StackPolicy")
ADDONS = Resource("clusterstack.x-k8s.io", "v1alpha1", "clusteraddons", "ClusterAddon")
_STACKS = "stacks"
_MOST = 3
_CLASSES = {
    "docker-sample-1-34-v1": "v1.34.1",
    "docker-sample-1-34-v2": "v1.34.1",
    "docker-sample-1-35-v1": "v1.35.0",
}
"""By name of a ClusterClass, the version of its Clusters; in the order of upgrades."""


def founding() -> list[Edit]:
    stack = {"provider": "docker", "name": "sample", "kubernetesVersion": "1.35", "noProvider": True}
    spec = {"topology": {"class": "docker-sample-1-34-v1", "version": "v1.34.1"}}
    return [
        Edit(_STACKS, "a stack for 1.35", (created(STACKS, "sample-1-35", _STACKS, spec=stack),)),
        Edit(_STACKS, "a Cluster", (created(CLUSTERS, "shop", _STACKS, spec=spec),)),
    ]


async def versions(random: Random, seen: Seen) -> Edit | None:
    found = next((one for one in await seen.list(STACKS) if name_of(one) == "sample-1-34"), None)
    if found is None:
        return None
    choices = (["v1"], ["v1", "v2"], ["v2"])
    to = random.choice([one for one in choices if one != found["spec"].get("versions")])
    write = patched(STACKS, "sample-1-34", _STACKS, spec={"versions": to})
    return Edit(_STACKS, f"ClusterStack sample-1-34 offers {to}", (write,))


async def stack(random: Random, seen: Seen) -> Edit | None:
    """The stack for 1.35 goes, or comes again."""
    if any(name_of(one) == "sample-1-35" for one in await seen.list(STACKS)):
        return Edit(_STACKS, "ClusterStack sample-1-35 is deleted", (deleted(STACKS, "sample-1-35", _STACKS),))
    spec = {"provider": "docker", "name": "sample", "kubernetesVersion": "1.35", "noProvider": True}
    spec |= {"versions": ["v1"], "autoSubscribe": random.random() < 0.5}
    write = created(STACKS, "sample-1-35", _STACKS, spec=spec)
    return Edit(_STACKS, f"ClusterStack sample-1-35 is created, subscribed: {spec['autoSubscribe']}", (write,))


async def founded(random: Random, seen: Seen) -> Edit | None:
    known = await seen.list(CLUSTERS)
    if len(known) >= _MOST:
        return None
    name, chosen = fresh("shop", known), random.choice([*_CLASSES, "docker-sample-1-36-v1"])
    spec = {"topology": {"class": chosen, "version": _CLASSES.get(chosen, "v1.36.0")}}
    write = created(CLUSTERS, name, _STACKS, spec=spec)
    return Edit(_STACKS, f"Cluster {name} by {chosen} is created", (write,))


async def upgraded(random: Random, seen: Seen) -> Edit | None:
    order = [*_CLASSES]
    found = []
    for one in await seen.list(CLUSTERS):
        topology = one["spec"]["topology"]
        present = topology.get("class") or topology["classRef"]["name"]
        if present in order[:-1]:
            found += [(name_of(one), to) for to in order[order.index(present) + 1 :]]
    if not found:
        return None
    name, to = random.choice(found)
    write = patched(CLUSTERS, name, _STACKS, spec={"topology": {"class": to, "version": _CLASSES[to]}})
    return Edit(_STACKS, f"Cluster {name} to {to}", (write,))


async def retired(random: Random, seen: Seen) -> Edit | None:
    found = await seen.list(CLUSTERS)
    if len(found) < 2:
        return None
    name = name_of(random.choice(found))
    return Edit(_STACKS, f"Cluster {name} is deleted", (deleted(CLUSTERS, name, _STACKS),))


async def labelled(random: Random, seen: Seen) -> Edit | None:
    found = await seen.list(CLUSTERS)
    if not found:
        return None
    name, team = name_of(random.choice(found)), f"team-{random.randint(1, 99)}"
    write = patched(CLUSTERS, name, _STACKS, metadata={"labels": {"team": team}})
    return Edit(_STACKS, f"Cluster {name} of {team}", (write,))


async def approval(random: Random, seen: Seen) -> Edit | None:
    """A policy approves some versions of the stack, others, or all again."""
    found = await seen.list(POLICIES)
    if found and random.random() < 0.5:
        return Edit(_STACKS, "StackPolicy approved is deleted", (deleted(POLICIES, "approved", _STACKS),))
    chosen = random.choice((["v1"], ["v2"], ["v1", "v2"]))
    spec = {"provider": "docker", "name": "sample", "kubernetesVersion": "1.34", "versions": chosen}
    write = created(POLICIES, "approved", _STACKS, spec=spec)
    return Edit(_STACKS, f"StackPolicy approves {chosen}", (write,))


async def lost_addon(random: Random, seen: Seen) -> Edit | None:
    found = await seen.list(ADDONS)
    if not found:
        return None
    name = name_of(random.choice(found))
    return Edit(_STACKS, f"ClusterAddon {name} is deleted", (deleted(ADDONS, name, _STACKS),))


CHOICES = {_STACKS: (versions, stack, founded, upgraded, retired, labelled, approval, lost_addon)}
