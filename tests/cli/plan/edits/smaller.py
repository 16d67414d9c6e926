"""Changes of the smaller domains: accesses, the inventory, leftovers, and the canary."""

from __future__ import annotations

from random import Random

from tests.cli.plan.edits.shape import (
    CONFIG_MAPS,
    FLEET,
    HOME,
    RUNTIMES,
    SECRETS,
    Edit,
    Seen,
    created,
    deleted,
    fresh,
    member,
    name_of,
    other,
    patched,
    some_runtime,
)

from hortus.domains.canary.book import ASKED, NAME
from hortus.kube.objects import Object, Resource

ACCESSES = Resource("access.hortus.dev", "v1alpha1", "clusteraccesses", "ClusterAccess")
PROFILES = Resource("multicluster.x-k8s.io", "v1alpha1", "clusterprofiles", "ClusterProfile")
LEFTOVERS = Resource("fleet.hortus.dev", "v1alpha1", "leftovers", "Leftover")
_ACCESS, _INVENTORY, _LEFTOVERS, _CANARY = "access", "inventory", "leftovers", "canary"
_PLURALS = ("pods", "configmaps", "services", "secrets")
"""Kinds that may be asked for; secrets are refused."""


def _rules(*plurals: str) -> list[Object]:
    return [{"apiGroups": [""], "resources": [*plurals], "verbs": ["get", "list"]}]


async def access(random: Random, seen: Seen) -> Edit | None:
    if (one := await some_runtime(random, seen)) is None:
        return None
    name, plural = fresh("access", await seen.list(ACCESSES)), random.choice(_PLURALS)
    spec = {
        "client": name,
        "clusterRef": {"kind": "Runtime", "name": random.choice((name_of(one), name_of(one), "nowhere"))},
        "expirationSeconds": 3600,
        "rules": _rules(plural),
        "secret": {"name": name},
        **random.choice(({"namespaces": ["default"]}, {"namespaces": ["default", "missing"]}, {})),
    }
    write = created(ACCESSES, name, HOME, spec=spec)
    place = f"{spec['clusterRef']['name']} {spec.get('namespaces', 'all namespaces')}"
    return Edit(_ACCESS, f"{name} to {plural} of {place}", (write,))


async def access_role(random: Random, seen: Seen) -> Edit | None:
    """A request for a role of the cluster."""
    if (one := await some_runtime(random, seen)) is None:
        return None
    name, role = fresh("access", await seen.list(ACCESSES)), random.choice(("view", "cluster-admin", "missing"))
    spec = {
        "client": name,
        "clusterRef": {"kind": "Runtime", "name": name_of(one)},
        "roleRef": {"kind": "ClusterRole", "name": role},
        "namespaces": ["default"],
        "secret": {"name": name},
    }
    return Edit(_ACCESS, f"{name} by role {role} of {name_of(one)}", (created(ACCESSES, name, HOME, spec=spec),))


async def other_rules(random: Random, seen: Seen) -> Edit | None:
    found = [one for one in await seen.list(ACCESSES) if one["spec"].get("rules")]
    if not found:
        return None
    one = random.choice(found)
    plurals = random.sample(_PLURALS, 2)
    write = patched(ACCESSES, name_of(one), HOME, spec={"rules": _rules(*plurals)})
    return Edit(_ACCESS, f"{name_of(one)} to {plurals}", (write,))


async def other_place(random: Random, seen: Seen) -> Edit | None:
    """Another Secret, or another lifetime."""
    found = await seen.list(ACCESSES)
    if not found:
        return None
    one = random.choice(found)
    spec: Object = random.choice(
        (
            {"secret": {"name": f"{name_of(one)}-{random.randint(1, 99)}"}},
            {"expirationSeconds": random.choice((1200, 1800, 7200))},
        )
    )
    return Edit(_ACCESS, f"{name_of(one)} with {spec}", (patched(ACCESSES, name_of(one), HOME, spec=spec),))


async def no_access(random: Random, seen: Seen) -> Edit | None:
    found = await seen.list(ACCESSES)
    if not found:
        return None
    name = name_of(random.choice(found))
    return Edit(_ACCESS, f"{name} is deleted", (deleted(ACCESSES, name, HOME),))


async def ring(random: Random, seen: Seen) -> Edit | None:
    """A label of a Runtime that its profile takes over."""
    if (one := await some_runtime(random, seen)) is None:
        return None
    to = other(random, ("early", "late", "gold"), (one["metadata"].get("labels") or {}).get("ring"))
    write = patched(RUNTIMES, name_of(one), HOME, metadata={"labels": {"ring": to}})
    return Edit(_INVENTORY, f"{name_of(one)} is {to}", (write,))


async def profile_label(random: Random, seen: Seen) -> Edit | None:
    found = await seen.list(PROFILES)
    if not found:
        return None
    one = random.choice(found)
    labels = one["metadata"].get("labels") or {}
    key, choices = random.choice((("team", ("red", "blue")), ("fleet.hortus.dev/provider", ("aws", "azure", "nobody"))))
    to = other(random, choices, labels.get(key))
    write = patched(PROFILES, name_of(one), FLEET, metadata={"labels": {key: to}})
    return Edit(_INVENTORY, f"label {key} of profile {name_of(one)} to {to}", (write,))


async def lost_profile(random: Random, seen: Seen) -> Edit | None:
    found = await seen.list(PROFILES)
    if not found:
        return None
    name = name_of(random.choice(found))
    return Edit(_INVENTORY, f"profile {name} is deleted", (deleted(PROFILES, name, FLEET),))


async def joined(random: Random, seen: Seen) -> Edit | None:
    """A kubeconfig of a known cluster joins by a Secret, or leaves."""
    secrets = {name_of(one): one for one in await seen.list(SECRETS)}
    if "joined" in secrets:
        return Edit(_INVENTORY, "Secret joined is deleted", (deleted(SECRETS, "joined", HOME),))
    if (one := await some_runtime(random, seen)) is None:
        return None
    source = secrets.get(f"kubeconfig-{name_of(one)}")
    if source is None:
        return None
    labels = {"fleet.hortus.dev/kubeconfig": "true", "fleet.hortus.dev/purpose": "trial"}
    write = created(SECRETS, "joined", HOME, metadata={"labels": labels}, data=source["data"])
    return Edit(_INVENTORY, f"{name_of(one)} joins by another Secret", (write,))


async def leftover(random: Random, seen: Seen) -> Edit | None:
    """A debt that somebody records, of an object that is there or not."""
    if (one := await some_runtime(random, seen)) is None:
        return None
    name, cluster = fresh("probe", await seen.list(LEFTOVERS)), name_of(one)
    thing = {"version": "v1", "resource": "configmaps", "kind": "ConfigMap", "namespace": "default", "name": name}
    item = {
        "id": "0a0b0c0d",
        "what": f"ConfigMap default/{name}",
        "where": "Cluster",
        "actor": "ClusterOwner",
        "object": thing,
        "look": f"kubectl get configmaps {name} -n default",
        "remove": f"kubectl delete configmaps {name} -n default",
    }
    spec = {
        "source": {"kind": "ConfigMap", "name": name, "namespace": "default"},
        "reason": "NotPruned",
        "message": "made by hand",
        "cluster": {"namespace": HOME, "name": cluster},
        "items": [item],
    }
    writes = [created(LEFTOVERS, name, FLEET, spec=spec)]
    is_there = random.random() < 0.7
    if is_there:
        writes.insert(0, created(CONFIG_MAPS, name, "default", member(cluster), data={"a": "b"}))
    return Edit(_LEFTOVERS, f"{name} in {cluster} is recorded, there: {is_there}", tuple(writes))


async def _open(random: Random, seen: Seen) -> Object | None:
    found = [
        one
        for one in await seen.list(LEFTOVERS)
        if (one.get("status") or {}).get("left") and name_of(one).startswith("probe-")
    ]
    return random.choice(found) if found else None


async def removed(random: Random, seen: Seen) -> Edit | None:
    """The thing itself is removed in its cluster."""
    if (one := await _open(random, seen)) is None:
        return None
    cluster = member(one["spec"]["cluster"]["name"])
    write = deleted(CONFIG_MAPS, name_of(one), "default", cluster)
    return Edit(_LEFTOVERS, f"the thing of {name_of(one)} is removed", (write,))


async def acknowledged(random: Random, seen: Seen) -> Edit | None:
    if (one := await _open(random, seen)) is None:
        return None
    given = {"by": "somebody", "reason": f"reason {random.randint(1, 99)}"}
    write = patched(LEFTOVERS, name_of(one), FLEET, spec={"acknowledgement": given})
    return Edit(_LEFTOVERS, f"{name_of(one)} is acknowledged", (write,))


async def forgotten(random: Random, seen: Seen) -> Edit | None:
    found = await seen.list(LEFTOVERS)
    if not found:
        return None
    name = name_of(random.choice(found))
    return Edit(_LEFTOVERS, f"{name} is deleted", (deleted(LEFTOVERS, name, FLEET),))


async def canary(random: Random, seen: Seen) -> Edit | None:
    """A run is asked for: a cluster is grown, used and deleted."""
    if not any(name_of(one) == NAME for one in await seen.list(CONFIG_MAPS)):
        return None
    asked = {ASKED: f"{random.randint(1, 10**9)}"}
    write = patched(CONFIG_MAPS, NAME, HOME, metadata={"annotations": asked})
    return Edit(_CANARY, "a run of the canary", (write,))


CHOICES = {
    _ACCESS: (access, access, access_role, other_rules, other_place, no_access),
    _INVENTORY: (ring, profile_label, lost_profile, joined),
    _LEFTOVERS: (leftover, leftover, removed, acknowledged, forgotten),
    _CANARY: (canary,),
}
