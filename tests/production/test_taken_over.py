"""Objects that an installation finds under its names: refused, or taken over with a flag and put back."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.production.rendering import objects

from hortus.cli.install.applying import Installation
from hortus.cli.install.removing import Removal
from hortus.kube import Client, Resource
from hortus.kube.objects import Object
from hortus.terminal import CommandError
from hortus.testing.apiserver import running_apiserver

PLACE = "hortus-system"
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
NAME = "hortus-view"
TITLE = f"clusterrole/{NAME}"


@pytest.fixture
async def occupied() -> AsyncIterator[tuple[Client, Object]]:
    """A cluster with a role of the name of one of the installation's."""
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as client:
        for name in ("kcp-system", "fleet", PLACE):
            await client.create(NAMESPACES, {"metadata": {"name": name}})
        yield client, await client.create(ROLES, {"metadata": {"name": NAME}, "rules": RULES}, field_manager="admin")


def installation(client: Client, said: list[str], *, adopt: bool) -> Installation:
    return Installation(client, objects(PLACE, {}), said.append, namespace=PLACE, adopt=adopt)


async def test_what_is_there_stops_an_installation_before_its_first_write(occupied: tuple[Client, Object]) -> None:
    client, before = occupied
    with pytest.raises(CommandError, match=rf"{NAME}: it exists and was written by admin: .* add --adopt"):
        await installation(client, [], adopt=False).apply()
    assert await client.get(ROLES, NAME) == before


async def test_what_is_taken_over_is_listed_first_and_put_back_at_the_end(occupied: tuple[Client, Object]) -> None:
    client, before = occupied
    (taken,) = [one for one in await installation(client, [], adopt=True).plan() if one.verb == "taken over"]
    assert taken.title.startswith(TITLE)
    assert any(".rules" in str(field) for field in taken.fields)
    assert await client.get(ROLES, NAME) == before
    await installation(client, [], adopt=True).apply()
    assert (await client.get(ROLES, NAME))["rules"] != RULES

    said: list[str] = []
    await Removal(client, PLACE, crds=False, own_namespace=False).apply(said.append, timeout=60.0)
    after = await client.get(ROLES, NAME)
    assert (after["rules"], after["metadata"].get("labels") or {}) == (RULES, {})
    assert any("it stays, with what it had before" in one for one in said)
