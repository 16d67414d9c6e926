"""Changes of clusters: Runtimes and their pools, credentials, and Shoots in the garden."""

from __future__ import annotations

from random import Random

from tests.cli.plan.edits.shape import (
    GARDEN,
    HOME,
    KYMAS,
    PROJECT,
    RUNTIMES,
    SECRETS,
    SHOOTS,
    Edit,
    Seen,
    Write,
    created,
    deleted,
    fresh,
    name_of,
    other,
    patched,
    ready_runtimes,
    some_runtime,
)

from hortus.domains import DemoFleet
from hortus.domains.clusters.demo import PLACES, runtimes
from hortus.kube.objects import Object, Resource, format_time
from hortus.simulation.garden.content import BINDING
from hortus.simulation.garden.kinds import SEEDS
from hortus.simulation.garden.profiles import PROVIDERS

GARDENER_CLUSTERS = Resource("infrastructuremanager.kyma-project.io", "v1", "gardenerclusters", "GardenerCluster")
VERSIONS = ("1.32.9", "1.33.5", "1.34.1", "1.35.0")
"""The versions that the simulated garden offers, in their order."""
_CLUSTERS, _GARDEN, _CREDENTIALS = "clusters", "garden", "credentials"
_LEAST, _MOST = 3, 6
"""Runtimes that a fleet keeps, and has."""
_LONG_AGO = 1_700_000_000.0


def _patched(runtime: Object, text: str, **spec: object) -> Edit:
    name = name_of(runtime)
    return Edit(_CLUSTERS, f"{name} {text}", (patched(RUNTIMES, name, HOME, spec=spec),))


async def version(random: Random, seen: Seen) -> Edit | None:
    found = []
    for one in await ready_runtimes(seen):
        present = (one["spec"]["shoot"].get("kubernetes") or {}).get("version") or "1.34.1"
        if present in VERSIONS[:-1]:
            found.append((one, VERSIONS[VERSIONS.index(present) + 1]))
    if not found:
        return None
    chosen, to = random.choice(found)
    return _patched(chosen, f"to {to}", shoot={"kubernetes": {"version": to}})


async def unknown_version(random: Random, seen: Seen) -> Edit | None:
    """A version that the garden does not offer, or one further back: it is refused."""
    if (one := await some_runtime(random, seen)) is None:
        return None
    to = random.choice(("1.34.9", "1.31.13"))
    return _patched(one, f"to {to}, which is refused", shoot={"kubernetes": {"version": to}})


async def corrected(random: Random, seen: Seen) -> Edit | None:
    """A refused Runtime gets the version that its Shoot has."""
    failed = [one for one in await seen.list(RUNTIMES) if (one.get("status") or {}).get("state") == "Failed"]
    shoots = {name_of(one): one for one in await seen.list(SHOOTS, GARDEN)}
    found = [one for one in failed if one["spec"]["shoot"]["name"] in shoots]
    if not found:
        return None
    one = random.choice(found)
    to = shoots[one["spec"]["shoot"]["name"]]["spec"]["kubernetes"]["version"]
    return _patched(one, f"back to {to}", shoot={"kubernetes": {"version": to}})


async def administrators(random: Random, seen: Seen) -> Edit | None:
    if (one := await some_runtime(random, seen)) is None:
        return None
    people = sorted({f"person-{random.randint(1, 99)}@example.org" for _ in range(random.randint(1, 3))})
    return _patched(one, f"for {people}", security={"administrators": people})


async def network_filter(random: Random, seen: Seen) -> Edit | None:
    if (one := await some_runtime(random, seen)) is None:
        return None
    filters = one["spec"]["security"]["networking"]["filter"]
    ingress = {"enabled": not filters["ingress"]["enabled"]}
    return _patched(one, f"with the ingress {ingress}", security={"networking": {"filter": {"ingress": ingress}}})


async def purpose(random: Random, seen: Seen) -> Edit | None:
    if (one := await some_runtime(random, seen)) is None:
        return None
    to = other(random, ("evaluation", "testing", "development"), one["spec"]["shoot"].get("purpose"))
    return _patched(one, f"for {to}", shoot={"purpose": to})


async def size(random: Random, seen: Seen) -> Edit | None:
    if (one := await some_runtime(random, seen)) is None:
        return None
    worker = one["spec"]["shoot"]["provider"]["workers"][0]
    least = random.choice([count for count in (1, 2, 3) if count != worker["minimum"]])
    return _pool(one, f"with {least} nodes", {**worker, "minimum": least, "maximum": least + 2})


async def machine(random: Random, seen: Seen) -> Edit | None:
    if (one := await some_runtime(random, seen)) is None:
        return None
    provider = one["spec"]["shoot"]["provider"]
    worker = provider["workers"][0]
    offered = tuple(
        name for name, type_ in PROVIDERS[provider["type"]].machines.items() if type_.architecture == "amd64"
    )
    to = other(random, offered, worker["machine"]["type"])
    return _pool(one, f"on {to}", {**worker, "machine": {**worker["machine"], "type": to}})


async def marks(random: Random, seen: Seen) -> Edit | None:
    """Labels and taints of a pool, which change nodes in place."""
    if (one := await some_runtime(random, seen)) is None:
        return None
    worker, color = one["spec"]["shoot"]["provider"]["workers"][0], random.choice(("red", "green", "blue"))
    taints = random.choice(([], [{"key": "example.org/color", "value": color, "effect": "PreferNoSchedule"}]))
    return _pool(one, f"with a pool in {color}", {**worker, "labels": {"color": color}, "taints": taints})


async def surge(random: Random, seen: Seen) -> Edit | None:
    if (one := await some_runtime(random, seen)) is None:
        return None
    worker = one["spec"]["shoot"]["provider"]["workers"][0]
    to = random.choice([count for count in (1, 2, 3) if count != worker.get("maxSurge")])
    return _pool(one, f"with a surge of {to}", {**worker, "maxSurge": to})


def _pool(runtime: Object, text: str, worker: Object) -> Edit:
    return _patched(runtime, text, shoot={"provider": {"workers": [worker]}})


async def more_or_fewer_pools(random: Random, seen: Seen) -> Edit | None:
    if (one := await some_runtime(random, seen)) is None:
        return None
    provider = one["spec"]["shoot"]["provider"]
    if provider.get("additionalWorkers"):
        return _patched(one, "without a second pool", shoot={"provider": {"additionalWorkers": None}})
    count = random.randint(1, 2)
    more = {**provider["workers"][0], "name": "batch", "minimum": count, "maximum": count + 1}
    return _patched(one, f"with a second pool of {count}", shoot={"provider": {"additionalWorkers": [more]}})


async def founded(random: Random, seen: Seen) -> Edit | None:
    """A Runtime with its Kyma."""
    known = await seen.list(RUNTIMES)
    if len(known) >= _MOST:
        return None
    name, place = fresh("grown", known), random.randrange(len(PLACES))
    runtime = [*runtimes(DemoFleet([name] * len(PLACES), BINDING))][place][1]
    at = random.choice(VERSIONS[1:3])
    runtime["spec"]["shoot"]["kubernetes"] = {"version": at}
    kyma = created(
        KYMAS,
        name,
        HOME,
        metadata={"labels": {"kyma-project.io/runtime-id": name, "kyma-project.io/instance-id": f"instance-{name}"}},
        spec={
            "channel": random.choice(("regular", "fast")),
            "modules": [{"name": random.choice(("template-operator", "greeter")), "managed": True}],
        },
    )
    body = Write(RUNTIMES, name, HOME, runtime, creates=True)
    return Edit(_CLUSTERS, f"{name} on {PLACES[place].provider} at {at} with a Kyma is created", (body, kyma))


async def doomed(random: Random, seen: Seen) -> Edit | None:
    """A Runtime that cannot become a cluster; the next time it is deleted."""
    if any(name_of(one) == "doomed" for one in await seen.list(RUNTIMES)):
        return Edit(_CLUSTERS, "doomed is deleted", (deleted(RUNTIMES, "doomed", HOME),))
    ((_, runtime),) = runtimes(DemoFleet(["doomed"], BINDING))
    provider = runtime["spec"]["shoot"]["provider"]
    wrong = random.choice(({"machine": {"type": "x99.huge"}}, {"zones": ["nowhere-1a"]}, {"minimum": 5, "maximum": 2}))
    provider["workers"] = [{**provider["workers"][0], **wrong}]
    write = Write(RUNTIMES, "doomed", HOME, runtime, creates=True)
    return Edit(_CLUSTERS, f"a Runtime with {wrong} is created", (write,))


async def retired(random: Random, seen: Seen) -> Edit | None:
    found = await ready_runtimes(seen)
    if len(found) <= _LEAST:
        return None
    name = name_of(random.choice(found))
    writes = [deleted(RUNTIMES, name, HOME)]
    if any(name_of(one) == name for one in await seen.list(KYMAS)):
        writes.insert(0, deleted(KYMAS, name, HOME))
    return Edit(_CLUSTERS, f"{name} and its Kyma are deleted", tuple(writes))


# Credentials


async def rotation(random: Random, seen: Seen) -> Edit | None:
    if (one := await some_runtime(random, seen)) is None:
        return None
    name = name_of(one)
    forced = {"operator.kyma-project.io/force-kubeconfig-rotation": "true"}
    kind = random.choice((GARDENER_CLUSTERS, SECRETS))
    where = name if kind is GARDENER_CLUSTERS else f"kubeconfig-{name}"
    write = patched(kind, where, HOME, metadata={"annotations": forced})
    return Edit(_CREDENTIALS, f"rotation of {name} is asked for by its {kind.kind}", (write,))


async def expiry(random: Random, seen: Seen) -> Edit | None:
    """A kubeconfig that is long overdue."""
    if (one := await some_runtime(random, seen)) is None:
        return None
    old = {"operator.kyma-project.io/last-sync": format_time(_LONG_AGO + random.randint(0, 10**7))}
    write = patched(SECRETS, f"kubeconfig-{name_of(one)}", HOME, metadata={"annotations": old})
    return Edit(_CREDENTIALS, f"the kubeconfig of {name_of(one)} is old", (write,))


async def lost_secret(random: Random, seen: Seen) -> Edit | None:
    if (one := await some_runtime(random, seen)) is None:
        return None
    write = deleted(SECRETS, f"kubeconfig-{name_of(one)}", HOME)
    return Edit(_CREDENTIALS, f"the Secret of {name_of(one)} is deleted", (write,))


async def lost_cluster(random: Random, seen: Seen) -> Edit | None:
    """The GardenerCluster of a Runtime is deleted, with its Secret."""
    if (one := await some_runtime(random, seen)) is None:
        return None
    write = deleted(GARDENER_CLUSTERS, name_of(one), HOME)
    return Edit(_CREDENTIALS, f"the GardenerCluster of {name_of(one)} is deleted", (write,))


async def moved_secret(random: Random, seen: Seen) -> Edit | None:
    """A label of a Secret that the controller sets is changed."""
    if (one := await some_runtime(random, seen)) is None:
        return None
    labels = {"kyma-project.io/region": f"region-{random.randint(1, 9)}"}
    write = patched(SECRETS, f"kubeconfig-{name_of(one)}", HOME, metadata={"labels": labels})
    return Edit(_CREDENTIALS, f"a label of the Secret of {name_of(one)} is changed", (write,))


# The garden


async def hibernation(random: Random, seen: Seen) -> Edit | None:
    """One sleeps, and is woken afterwards: no plan knows the objects of a cluster that cannot be read."""
    found = await seen.list(SHOOTS, GARDEN)
    shoots = [name_of(one) for one in found if (one["status"].get("lastOperation") or {}).get("progress") == 100]
    if not shoots:
        return None
    name = random.choice(shoots)
    sleeps, wakes = (
        patched(SHOOTS, name, PROJECT, GARDEN, spec={"hibernation": {"enabled": enabled}}) for enabled in (True, False)
    )
    return Edit(_GARDEN, f"Shoot {name} sleeps", (sleeps,), undone=(wakes,))


async def shoot_drift(random: Random, seen: Seen) -> Edit | None:
    """Somebody changes a field of a Shoot that its Runtime names."""
    one = random.choice(await seen.list(SHOOTS, GARDEN))
    to = other(random, ("evaluation", "testing", "development"), one["spec"].get("purpose"))
    write = patched(SHOOTS, name_of(one), PROJECT, GARDEN, spec={"purpose": to})
    return Edit(_GARDEN, f"Shoot {name_of(one)} is set to {to} in the garden", (write,))


async def shoot_window(random: Random, seen: Seen) -> Edit | None:
    """Another maintenance window, which no Runtime names."""
    one, hour = random.choice(await seen.list(SHOOTS, GARDEN)), random.randint(10, 20)
    window = {"begin": f"{hour}0000+0000", "end": f"{hour + 2}0000+0000"}
    write = patched(SHOOTS, name_of(one), PROJECT, GARDEN, spec={"maintenance": {"timeWindow": window}})
    return Edit(_GARDEN, f"Shoot {name_of(one)} is maintained at {hour}", (write,))


async def moved(random: Random, seen: Seen) -> Edit | None:
    """The control plane of a Shoot moves to another seed of its provider."""
    one = random.choice(await seen.list(SHOOTS, GARDEN))
    present, provider = one["spec"].get("seedName"), one["spec"]["provider"]["type"]
    seeds = [seed for seed in await seen.list(SEEDS, GARDEN) if seed["spec"]["provider"]["type"] == provider]
    others = [name_of(seed) for seed in seeds if name_of(seed) != present]
    if not present or not others:
        return None
    to = random.choice(others)
    write = patched(SHOOTS, name_of(one), PROJECT, GARDEN, spec={"seedName": to})
    return Edit(_GARDEN, f"Shoot {name_of(one)} moves from {present} to {to}", (write,))


async def shoot_operation(random: Random, seen: Seen) -> Edit | None:
    """A reconciliation that is asked for by hand."""
    one = random.choice(await seen.list(SHOOTS, GARDEN))
    asked = {"gardener.cloud/operation": random.choice(("reconcile", "retry", "maintain"))}
    write = patched(SHOOTS, name_of(one), PROJECT, GARDEN, metadata={"annotations": asked})
    return Edit(_GARDEN, f"Shoot {name_of(one)} is asked for {asked['gardener.cloud/operation']}", (write,))


CHOICES = {
    _CLUSTERS: (
        version,
        unknown_version,
        corrected,
        administrators,
        network_filter,
        purpose,
        size,
        machine,
        marks,
        surge,
        more_or_fewer_pools,
        founded,
        doomed,
        retired,
    ),
    _CREDENTIALS: (rotation, expiry, lost_secret, lost_cluster, moved_secret),
    _GARDEN: (hibernation, shoot_drift, shoot_window, shoot_operation, moved),
}
