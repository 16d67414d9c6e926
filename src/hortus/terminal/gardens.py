"""The garden as commands read it: in the namespace of Hortus' project, and also where no garden is at hand.

The account that `hortus install --garden-account` makes may read one namespace. Without a namespace all are read; then
one name may stand for the shoots of several projects, and an account may be denied to list them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from hortus.terminal.connections import Connections, GardenMissing

if TYPE_CHECKING:
    from hortus.kube import Client
    from hortus.kube.objects import Object, Resource

NAME_PROJECT = "name Hortus' project with --garden-project NAME"


class GardenObject(NamedTuple):
    """The answer to a question for one object of the garden."""

    key: str
    """NAMESPACE/NAME, or the name alone where the namespace is not known."""
    found: Object | None
    unseen: str = ""
    """The reason for which the object could not be read; empty if the garden answered."""


@dataclass(frozen=True)
class ProjectGarden:
    """One garden, read in one namespace or in all."""

    client: Client | None
    """None where no option names the garden."""
    namespace: str = ""
    """Namespace of the project; empty for all namespaces."""
    missing: str = ""
    """The reason for which there is no client."""

    async def read(self, resource: Resource, name: str) -> GardenObject:
        """The object of that name, or the reason for which it is not seen."""
        from hortus.kube.errors import Forbidden, KubeError
        from hortus.kube.objects import key_of

        key = f"{self.namespace}/{name}" if self.namespace else name
        if self.client is None:
            return GardenObject(key, None, self.missing)
        try:
            found = (await self.client.list(resource, self.namespace, fields=f"metadata.name={name}")).items
        except Forbidden as error:
            advice = "" if self.namespace else f"; {NAME_PROJECT}"
            return GardenObject(key, None, f"the garden refuses: {error}{advice}")
        except KubeError as error:
            return GardenObject(key, None, f"the garden does not answer: {error}")
        if len(found) > 1:
            places = ", ".join(sorted(key_of(obj).namespace for obj in found))
            return GardenObject(key, None, f"{len(found)} projects have one of this name ({places}); {NAME_PROJECT}")
        return GardenObject(str(key_of(found[0])), found[0]) if found else GardenObject(key, None)


@asynccontextmanager
async def open_garden(connections: Connections, management: Client, namespace: str) -> AsyncIterator[ProjectGarden]:
    """The garden of the installation for `namespace` of the management cluster; without a client if none is named.

    Raises KubeconfigError, CommandError.
    """
    try:
        client = connections.garden()
    except GardenMissing as error:
        yield ProjectGarden(None, missing=f"not read: {error}")
        return
    async with client:
        yield ProjectGarden(client, await connections.garden_namespace(management, namespace))
