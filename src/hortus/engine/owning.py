"""Applies objects that another object controls, and refuses names that objects of others have.

Garbage collection deletes an object together with its controller. So an apply that took over any object of its name
would let the author of a Greeting overwrite a ConfigMap of somebody else, and delete it with the Greeting.

The cache of the owned kind decides, so an object at rest costs no call. A name that the cache does not show is looked
up on the server once, before the object is created. Server-side apply cannot ask for "create only", so races are closed
by three means: the uid of the object that was judged is sent along, the first apply is not forced, and it is taken back
when its answer shows an object that somebody else created meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable

from hortus.engine.apply import Applier
from hortus.engine.cache import Cache
from hortus.engine.outcomes import NEVER, Actor, StepError
from hortus.engine.owners import controller_of, is_owned_by, own, owners_of
from hortus.engine.sources import Mapper, to_owner
from hortus.kube import Client
from hortus.kube.errors import Conflict, Invalid
from hortus.kube.objects import Object, ObjectKey, Resource, key_of

OBJECT_TAKEN = "ObjectTaken"
"""Reason: an object of that name exists, and the owner does not control it."""
OBJECT_LEFT_OVER = "ObjectLeftOver"
"""Reason: an object of that name belongs to a former owner of the same name, and is not collected yet."""


class OwnedApplier:
    """Applies the objects that the objects of one kind control, as one field manager."""

    def __init__(self, client: Client, applier: Applier, *, owner: Resource, field_manager: str) -> None:
        self._client = client
        self._applier = applier
        self._owner = owner
        self._field_manager = field_manager
        self._refused: dict[tuple[Resource, ObjectKey], set[ObjectKey]] = {}
        """The owners that were refused an object, by that object."""

    async def apply(self, resource: Resource, wanted: Object, owner: Object, *, cache: Cache, adopt: bool) -> Object:
        """Apply `wanted` with `owner` as its controller; returns the object as it is on the server.

        Raises StepError with reason ObjectTaken or ObjectLeftOver, KubeError, and Conflict when another object took
        the name meanwhile. `adopt` takes over an object that has no controller.
        """
        owner = {"apiVersion": self._owner.api_version, "kind": self._owner.kind, **owner}
        own(wanted, owner)
        key = key_of(wanted)
        live = cache.get(key)
        if live is None:
            live = await self._look(resource, key)
        if live is not None:
            self._check(resource, live, owner, adopt=adopt)
            wanted["metadata"]["uid"] = live["metadata"]["uid"]
        force = live is not None or adopt
        try:
            applied = await self._applier.apply(resource, wanted, live=live, force=force)
        except Invalid as error:
            if live is not None and await self._is_other(resource, live):
                raise Conflict(f"{resource.kind} {key} was deleted or replaced while it was applied") from error
            raise
        found = applied.object
        # Before the cache gets it, which may keep our own managedFields alone.
        foreign = not force and not self._is_created(found)
        if foreign:
            found = await self._take_back(resource, found)
        if applied.written:
            cache.learn(found)
        if foreign:
            self._check(resource, found, owner, adopt=False)
        return found

    def to_owners(self, resource: Resource) -> Mapper:
        """Maps an object of `resource` to its owner, and to the owners that were refused it."""
        to_owner_of = to_owner(self._owner)

        def keys(obj: Object) -> Iterable[ObjectKey]:
            return (*to_owner_of(obj), *self._refused.pop((resource, key_of(obj)), ()))

        return keys

    async def _look(self, resource: Resource, key: ObjectKey) -> Object | None:
        """The object on the server, by a list of one: the controller may list the kinds that it owns."""
        found = await self._client.list(resource, key.namespace, fields=f"metadata.name={key.name}")
        return next((one for one in found.items if key_of(one) == key), None)

    async def _is_other(self, resource: Resource, seen: Object) -> bool:
        live = await self._look(resource, key_of(seen))
        return live is None or live["metadata"]["uid"] != seen["metadata"]["uid"]

    def _is_created(self, applied: Object) -> bool:
        """True when nobody else has fields in the answer to a first apply."""
        return all(entry["manager"] == self._field_manager for entry in applied["metadata"].get("managedFields") or ())

    async def _take_back(self, resource: Resource, applied: Object) -> Object:
        """Remove all that an unforced apply has added; it has overwritten nothing."""
        metadata = {field: applied["metadata"].get(field) for field in ("name", "namespace", "uid")}
        named = {"metadata": {field: value for field, value in metadata.items() if value}}
        return await self._client.apply(resource, named, field_manager=self._field_manager, force=False)

    def _check(self, resource: Resource, live: Object, owner: Object, *, adopt: bool) -> None:
        """Raises StepError unless `owner` controls `live`, or nobody does and it may be adopted."""
        controller = controller_of(live)
        if controller is None and (adopt or is_owned_by(live, owner)):
            return
        if controller is not None and controller["uid"] == owner["metadata"]["uid"]:
            return
        name = owner["metadata"]["name"]
        what, mine = f"{resource.kind} {key_of(live)}", f"{self._owner.kind} {name}"
        claims = [controller] if controller else owners_of(live)
        if any(self._is_former(reference, name) for reference in claims):
            raise StepError(
                f"{what} belongs to a former {mine}: it is created again after garbage collection has deleted it",
                reason=OBJECT_LEFT_OVER,
            )
        self._refused.setdefault((resource, key_of(live)), set()).add(key_of(owner))
        holder = f"is controlled by {controller['kind']} {controller['name']}" if controller else "has no controller"
        raise StepError(
            f"{what} exists and {holder}: delete it, or give {mine} another name",
            reason=OBJECT_TAKEN,
            actor=Actor.USER,
            after=NEVER,
        )

    def _is_former(self, reference: Object, name: str) -> bool:
        """True for an owner of the same kind and name as the present one."""
        group = reference["apiVersion"].rpartition("/")[0]
        return (group, reference["kind"], reference["name"]) == (self._owner.group, self._owner.kind, name)
