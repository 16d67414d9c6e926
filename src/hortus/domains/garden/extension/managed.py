"""ManagedResources: objects handed to gardener-resource-manager, with the Secret that holds them.

Contract: gardener, docs/concepts/resource-manager.md. The Secret is named `managedresource-<name>`, as by Gardener's
own library, so that the resources of a Go extension are taken over in place.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from hortus.domains.garden.kinds.managedresource import MANAGED_RESOURCES, DeployedResources
from hortus.engine import Applier, Cache, read
from hortus.kube import Client, yaml
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey, Resource, key_of

SECRETS: Final = Resource("", "v1", "secrets", "Secret")
EXTENSION_LABEL: Final = "garden.hortus.dev/extension"
"""Label of our ManagedResources and their Secrets: the type of the extension."""
SECRET_PREFIX: Final = "managedresource-"  # noqa: S105 - a name
_KEY: Final = "objects.yaml"
_ORIGIN: Final = "origin"
_SEED_CLASS: Final = "seed"
_NO_CLEANUP: Final = {"shoot.gardener.cloud/no-cleanup": "true"}


class ManagedObjects:
    """Writes the ManagedResources of one type of extension. The caches hold those with our label."""

    def __init__(self, client: Client, *, type_: str, field_manager: str, resources: Cache, secrets: Cache) -> None:
        self._client = client
        self._type = type_
        self._applier = Applier(client, field_manager=field_manager)
        self._resources = resources
        self._secrets = secrets

    def found(self, namespace: str, names: Sequence[str]) -> list[DeployedResources]:
        """The ManagedResources of these names that are in a namespace."""
        keys = (ObjectKey(namespace, name) for name in names)
        return [read(DeployedResources, one) for key in keys if (one := self._resources.get(key)) is not None]

    async def apply(self, namespace: str, name: str, objects: Sequence[Object], *, for_seed: bool) -> None:
        """Make a ManagedResource hold `objects`; no call where it does already. Raises KubeError."""
        labels = {EXTENSION_LABEL: self._type}
        secret = f"{SECRET_PREFIX}{name}"
        content = base64.b64encode(yaml.dump_all(list(objects)).encode()).decode()
        await self._applier.apply(
            SECRETS,
            {
                "metadata": {"name": secret, "namespace": namespace, "labels": labels},
                "type": "Opaque",
                "data": {_KEY: content},
            },
            cache=self._secrets,
        )
        spec: Object = {"secretRefs": [{"name": secret}], "keepObjects": False}
        if for_seed:
            spec["class"] = _SEED_CLASS
        else:
            labels, spec["injectLabels"] = {**labels, _ORIGIN: f"gardener-extension-{self._type}"}, dict(_NO_CLEANUP)
        await self._applier.apply(
            MANAGED_RESOURCES,
            {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": spec},
            cache=self._resources,
        )

    async def remove(self, namespace: str, name: str, *, keep_objects: bool) -> bool:
        """Delete a ManagedResource; returns whether it is gone with its Secret. Raises KubeError.

        `keep_objects` leaves the objects where they are: in a Shoot that goes on with another seed, or in one that may
        not be reachable.
        """
        with suppress(NotFound):
            live = await self._client.get(MANAGED_RESOURCES, name, namespace)
            await self._delete(live, keep_objects=keep_objects)
            return False
        with suppress(NotFound):
            await self._client.delete(SECRETS, f"{SECRET_PREFIX}{name}", namespace)
        return True

    async def _delete(self, live: Object, *, keep_objects: bool) -> None:
        found, key = read(DeployedResources, live), key_of(live)
        if keep_objects and not found.spec.keep_objects:
            kept: Object = {"spec": {"keepObjects": True}}
            self._resources.learn(await self._client.patch(MANAGED_RESOURCES, key.name, kept, key.namespace))
        if found.metadata.deletion_timestamp is None:
            await self._client.delete(MANAGED_RESOURCES, key.name, key.namespace, uid=found.metadata.uid)
