"""One change of a fleet that is planned and then made, and what is asked of the fleet to choose one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import NamedTuple, Protocol

from hortus.kube import Client
from hortus.kube.objects import Object, Resource, key_of

FIELD_MANAGER = "kubectl"
HOME = "kcp-system"
"""Namespace of Runtimes, Kymas and their Secrets."""
FLEET = "fleet"
"""Namespace of the inventory, of agents and of rollouts."""
GARDEN = "garden"
PROJECT = "garden-demo"

RUNTIMES = Resource("infrastructuremanager.kyma-project.io", "v1", "runtimes", "Runtime")
KYMAS = Resource("operator.kyma-project.io", "v1beta2", "kymas", "Kyma")
SHOOTS = Resource("core.gardener.cloud", "v1beta1", "shoots", "Shoot")
SECRETS = Resource("", "v1", "secrets", "Secret")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)


class Write(NamedTuple):
    """One request. Without a body it deletes."""

    resource: Resource
    name: str
    namespace: str
    body: Object | None = None
    """A merge patch, or the whole object where it is created."""
    cluster: str = "root"
    """root, garden, or the technical ID of a member."""
    creates: bool = False

    async def make(self, client: Client) -> None:
        if self.body is None:
            await client.delete(self.resource, self.name, self.namespace)
        elif self.creates:
            await client.apply(self.resource, self.body, field_manager=FIELD_MANAGER)
        else:
            await client.patch(self.resource, self.name, self.body, self.namespace, field_manager=FIELD_MANAGER)


class Edit(NamedTuple):
    """One change that may be made to both sides."""

    domain: str
    text: str
    writes: tuple[Write, ...]
    undone: tuple[Write, ...] = ()
    """Requests that take it back afterwards, where that cannot be planned."""


class Seen(Protocol):
    """The fleet as it is, to choose a change that changes something."""

    async def list(self, resource: Resource, cluster: str = "root") -> list[Object]: ...


Choice = Callable[[Random, Seen], Awaitable[Edit | None]]
"""A random change of one sort; None where the fleet has nothing of which it would be one."""


def created(resource: Resource, name: str, namespace: str, cluster: str = "root", **parts: object) -> Write:
    """An object with `parts` next to its metadata; a part `metadata` adds to these."""
    added = parts.pop("metadata", {})
    assert isinstance(added, Mapping)
    place = {"namespace": namespace} if namespace else {}
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, **place, **added},
        **parts,
    }
    return Write(resource, name, namespace, body, cluster, creates=True)


def patched(resource: Resource, name: str, namespace: str, cluster: str = "root", **body: object) -> Write:
    return Write(resource, name, namespace, body, cluster)


def deleted(resource: Resource, name: str, namespace: str, cluster: str = "root") -> Write:
    return Write(resource, name, namespace, None, cluster)


def name_of(obj: Object) -> str:
    name: str = obj["metadata"]["name"]
    return name


def member(name: str) -> str:
    """The technical ID of the cluster of a Runtime."""
    return f"shoot--demo--{name}"


def fresh(prefix: str, known: list[Object]) -> str:
    """The first name with a number that no object of `known` has."""
    names = {key_of(one).name for one in known}
    return next(name for name in (f"{prefix}-{number}" for number in range(1, 1000)) if name not in names)


def other(random: Random, choices: tuple[str, ...], present: object) -> str:
    """One of the choices that is not the present one."""
    return random.choice([one for one in choices if one != present])


async def ready_runtimes(seen: Seen) -> list[Object]:
    """The Runtimes that have their cluster and are not being deleted."""
    return [
        one
        for one in await seen.list(RUNTIMES)
        if (one.get("status") or {}).get("state") == "Ready" and not one["metadata"].get("deletionTimestamp")
    ]


async def some_runtime(random: Random, seen: Seen) -> Object | None:
    found = await ready_runtimes(seen)
    return random.choice(found) if found else None
