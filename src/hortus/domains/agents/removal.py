"""Removal of agents while their operator is there: deletes the objects and waits until their finalizers are gone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from hortus.domains.agents.types import INSTANA_AGENTS, INSTANA_AGENTS_REMOTE
from hortus.kube import Client, Clock
from hortus.kube.errors import NotFound
from hortus.kube.objects import Resource, key_of


async def remove_agents(
    client: Client, names: Sequence[str], namespace: str, *, clock: Clock, patience: float, pause: float
) -> list[str]:
    """Delete the agents of these names, or all where none is named. Returns what is left after `patience` seconds.

    Both kinds are meant by a name. Raises KubeError, and NotFound for a name that no agent has.
    """
    found = await _present(client, namespace, names)
    known = {name for _, name in found}
    if missing := [name for name in names if name not in known]:
        raise NotFound(f"no agent in namespace {namespace} is named {', '.join(missing)}")
    for resource, name in found:
        with suppress(NotFound):
            await client.delete(resource, name, namespace)
    end = clock.monotonic() + patience
    while left := await _present(client, namespace, names):
        if clock.monotonic() >= end:
            return [f"{resource.kind} {name}" for resource, name in left]
        await clock.sleep(pause)
    return []


async def _present(client: Client, namespace: str, names: Sequence[str]) -> list[tuple[Resource, str]]:
    found = []
    for resource in (INSTANA_AGENTS, INSTANA_AGENTS_REMOTE):
        # A cluster without the CRD has no agents.
        with suppress(NotFound):
            listed = await client.list(resource, namespace, metadata_only=True)
            found += [(resource, key_of(one).name) for one in listed.items]
    return [(resource, name) for resource, name in found if not names or name in names]
