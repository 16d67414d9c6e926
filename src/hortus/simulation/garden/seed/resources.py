"""The simulated gardener-resource-manager: applies the objects of ManagedResources, and deletes them with these.

It owns: the finalizer and the status of ManagedResources, and the objects in their Secrets. It watches both. It never:
touches an object that no ManagedResource of its own has named, or those of one that keeps its objects.

Contract: gardener, docs/concepts/resource-manager.md, without equivalences, ignored resources and health of workloads.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Final

from hortus.engine import Cache, Result, has_finalizer, remove_finalizer
from hortus.engine.finalizers import add_finalizer
from hortus.kube import Client, yaml
from hortus.kube.clock import Clock
from hortus.kube.discovery import Discovery
from hortus.kube.errors import KubeError, NotFound
from hortus.kube.objects import GroupVersionKind, Object, ObjectKey, Resource, format_time, key_of
from hortus.simulation.garden.seed.kinds import MANAGED_RESOURCES

FINALIZER: Final = "resources.gardener.cloud/gardener-resource-manager"
FIELD_MANAGER: Final = "gardener-resource-manager"
RETRY: Final = 1.0
"""Seconds until an object is tried again that the server has refused."""
_SEED: Final = "seed"

Reach = Callable[[str], AbstractAsyncContextManager[Client]]
"""A client of the cluster of a Shoot, by its technical ID."""


class ResourceManager:
    """Reconciles ManagedResources of one seed."""

    def __init__(self, seed: Client, *, resources: Cache, secrets: Cache, reach: Reach, clock: Clock) -> None:
        self._seed = seed
        self._resources = resources
        self._secrets = secrets
        self._reach = reach
        self._clock = clock
        self._served: dict[str, Discovery] = {}
        """By the address of a cluster: the kinds that it served when one was missing."""

    def of_secret(self, secret: Object) -> list[ObjectKey]:
        """The ManagedResources that a Secret belongs to."""
        key = key_of(secret)
        return [one for one in self._resources if one.namespace == key.namespace and key.name in self._names(one)]

    async def reconcile(self, key: ObjectKey) -> Result | None:
        found = self._resources.get(key)
        if found is None:
            return None
        if found["spec"].get("class") == _SEED:
            return await self._work(found, self._seed)
        async with self._reach(key.namespace) as shoot:
            return await self._work(found, shoot)

    async def _work(self, found: Object, target: Client) -> Result | None:
        if found["metadata"].get("deletionTimestamp"):
            return await self._end(found, target)
        if not has_finalizer(found, FINALIZER):
            found = await add_finalizer(self._seed, MANAGED_RESOURCES, found, FINALIZER)
            self._resources.learn(found)
        try:
            applied = [await self._apply(target, obj, found) for obj in self._objects(found)]
        except (KubeError, LookupError, yaml.YamlError) as error:
            await self._report(found, "False", "ApplyFailed", str(error), None)
            return Result(requeue_after=RETRY)
        await self._prune(found, target, applied)
        await self._report(found, "True", "ApplySucceeded", "All resources are applied.", applied)
        return None

    async def _end(self, found: Object, target: Client) -> Result | None:
        if not has_finalizer(found, FINALIZER):
            return None
        if not found["spec"].get("keepObjects"):
            await self._prune(found, target, [])
        await remove_finalizer(self._seed, MANAGED_RESOURCES, found, FINALIZER)
        return None

    def _objects(self, found: Object) -> Iterator[Object]:
        namespace = found["metadata"]["namespace"]
        for name in self._names(key_of(found)):
            secret = self._secrets.get(ObjectKey(namespace, name))
            if secret is None:
                raise NotFound(f"Secret {namespace}/{name} does not exist")
            for _, data in sorted((secret.get("data") or {}).items()):
                for document in yaml.load_all(base64.b64decode(data)):
                    if document:
                        yield document

    def _names(self, key: ObjectKey) -> list[str]:
        found = self._resources.get(key) or {}
        return [one["name"] for one in (found.get("spec") or {}).get("secretRefs") or ()]

    async def _apply(self, target: Client, obj: Object, found: Object) -> Object:
        resource = await self._resource(target, obj)
        labels = {**(found["spec"].get("injectLabels") or {}), "resources.gardener.cloud/managed-by": "gardener"}
        metadata = {**obj["metadata"], "labels": {**(obj["metadata"].get("labels") or {}), **labels}}
        await target.apply(resource, {**obj, "metadata": metadata}, field_manager=FIELD_MANAGER)
        key = key_of(obj)
        return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": key.name, "namespace": key.namespace}

    async def _prune(self, found: Object, target: Client, kept: list[Object]) -> None:
        """Delete what was applied before and is no longer wanted."""
        for one in (found.get("status") or {}).get("resources") or ():
            if one not in kept:
                with suppress(NotFound, LookupError):
                    await target.delete(await self._resource(target, one), one["name"], one.get("namespace", ""))

    async def _resource(self, target: Client, obj: Object) -> Resource:
        """The resource of an object. Raises LookupError while the cluster does not serve it."""
        group, _, version = obj["apiVersion"].rpartition("/")
        wanted, place = GroupVersionKind(group, version, obj["kind"]), target.access.server
        for known in (place in self._served, False):
            if not known:
                self._served[place] = await Discovery.look(target)
            for one in self._served[place].served:
                if one.resource.gvk == wanted:
                    return one.resource
        raise LookupError(f"the cluster does not serve {obj['kind']} of {obj['apiVersion']}")

    async def _report(
        self, found: Object, status: str, reason: str, message: str, applied: list[Object] | None
    ) -> None:
        now = format_time(self._clock.now())
        former = {one["type"]: one for one in (found.get("status") or {}).get("conditions") or ()}
        states = {"ResourcesApplied": status, "ResourcesHealthy": status, "ResourcesProgressing": "False"}
        conditions = [_condition(former.get(kind), kind, value, reason, message, now) for kind, value in states.items()]
        wanted: dict[str, Any] = {
            "observedGeneration": found["metadata"].get("generation", 1),
            "conditions": conditions,
        }
        if applied is not None:
            wanted["resources"] = applied
        if any((found.get("status") or {}).get(field) != value for field, value in wanted.items()):
            key = key_of(found)
            with suppress(NotFound):
                written = await self._seed.patch(
                    MANAGED_RESOURCES, key.name, {"status": wanted}, key.namespace, subresource="status"
                )
                self._resources.learn(written)


def _condition(former: Object | None, kind: str, status: str, reason: str, message: str, now: str) -> Object:
    if former is not None and (former["status"], former["message"]) == (status, message):
        return former
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": now,
        "lastUpdateTime": now,
    }
