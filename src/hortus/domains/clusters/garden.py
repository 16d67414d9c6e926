"""The garden as this domain uses it: Shoots, their ConfigMaps, and Seeds, by calls that name what they change.

The watch keeps an outline of every Shoot of the project. Where the garden cannot be watched, each question is one GET.
The cache learns of each write at once. Raises KubeError; deletions of what is gone succeed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from hortus.domains.clusters.outline import ShootOutline, kept_outline, outline, outline_of
from hortus.domains.clusters.shoots import SHOOTS
from hortus.domains.clusters.types import FIELD_MANAGER, ShootAnnotation
from hortus.engine.typed import NotReadable
from hortus.kube.errors import Garbage, NotFound, NotServed
from hortus.kube.objects import Object, ObjectKey, Resource

if TYPE_CHECKING:
    from hortus.engine import Cache
    from hortus.kube import Client

SEEDS: Final = Resource("core.gardener.cloud", "v1beta1", "seeds", "Seed", namespaced=False)
CLOUD_PROFILES: Final = Resource("core.gardener.cloud", "v1beta1", "cloudprofiles", "CloudProfile", namespaced=False)
SECRET_BINDINGS: Final = Resource("core.gardener.cloud", "v1beta1", "secretbindings", "SecretBinding")
CREDENTIALS_BINDINGS: Final = Resource(
    "security.gardener.cloud", "v1alpha1", "credentialsbindings", "CredentialsBinding"
)
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")


class Garden:
    def __init__(self, client: Client, namespace: str, shoots: Cache) -> None:
        """`shoots` holds what `outline` leaves, of the project's `namespace`."""
        self._client = client
        self._namespace = self.namespace = namespace
        self._shoots = shoots
        shoots.add_index("owner", _by_owner)

    async def find(self, name: str) -> ShootOutline | None:
        """The Shoot of this name, as the watch shows it."""
        if not self._shoots.has_synced:
            return await self.ask(name)
        kept = self._shoots.get(ObjectKey(self._namespace, name))
        return None if kept is None else kept_outline(kept)

    async def ask(self, name: str) -> ShootOutline | None:
        """The Shoot of this name, as the garden itself answers."""
        found = await self.read(name)
        return None if found is None else _outline(found)

    async def read(self, name: str) -> Object | None:
        """The whole Shoot."""
        try:
            found = await self._client.get(SHOOTS, name, self._namespace)
        except NotServed:
            raise  # the garden does not serve Shoots now, which says nothing about this one
        except NotFound:
            return None
        self._learn(found)
        return found

    def owned_by(self, runtime_id: str) -> list[ShootOutline]:
        """The Shoots that say they belong to this Runtime, as far as the watch shows."""
        return [kept_outline(kept) for kept in self._shoots.by("owner", runtime_id)] if runtime_id else []

    async def create(self, shoot: Object) -> ShootOutline:
        """Create a Shoot. Raises AlreadyExists."""
        return self._learn(await self._client.create(SHOOTS, shoot))

    async def merge(self, name: str, patch: Object) -> Object:
        """The Shoot after a merge patch. Raises Conflict when the patch names an older version."""
        changed = await self._client.patch(SHOOTS, name, patch, self._namespace, field_manager=FIELD_MANAGER)
        self._learn(changed)
        return changed

    async def apply(self, shoot: Object) -> Object:
        """The Shoot after a server-side apply by force."""
        changed = await self._client.apply(SHOOTS, shoot, field_manager=FIELD_MANAGER, force=True)
        self._learn(changed)
        return changed

    async def confirm_deletion(self, live: ShootOutline) -> None:
        await self._annotate(live, ShootAnnotation.DELETION)

    async def force_deletion(self, live: ShootOutline) -> None:
        """Force the deletion of a Shoot. Raises Invalid or Forbidden when the garden does not admit it."""
        await self._annotate(live, ShootAnnotation.FORCE_DELETION)

    async def _annotate(self, live: ShootOutline, annotation: str) -> None:
        """Annotate the Shoot of this uid; another one of the same name is refused."""
        await self.merge(live.name, {"metadata": {"uid": live.uid, "annotations": {annotation: "true"}}})

    async def delete(self, live: ShootOutline) -> None:
        with suppress(NotFound):
            await self._client.delete(SHOOTS, live.name, self._namespace, uid=live.uid)

    async def apply_config_map(self, config_map: Object) -> None:
        await self._client.apply(CONFIG_MAPS, config_map, field_manager=FIELD_MANAGER, force=True)

    async def delete_config_map(self, name: str) -> None:
        with suppress(NotFound):
            await self._client.delete(CONFIG_MAPS, name, self._namespace)

    async def secret_binding(self, name: str) -> Object | None:
        try:
            return await self._client.get(SECRET_BINDINGS, name, self._namespace)
        except NotServed:
            raise
        except NotFound:
            return None

    async def credentials_bindings(self) -> Sequence[Object]:
        return (await self._client.list(CREDENTIALS_BINDINGS, self._namespace)).items

    async def seeds(self) -> Sequence[Object]:
        return (await self._client.list(SEEDS)).items

    def _learn(self, shoot: Object) -> ShootOutline:
        made = _outline(shoot)
        self._shoots.learn(shoot)
        return made


def _outline(shoot: Object) -> ShootOutline:
    """The outline of a Shoot. Raises Garbage for one without the shape of its kind."""
    try:
        return outline_of(shoot)
    except NotReadable as error:
        raise Garbage("the garden", str(error)) from error


def _by_owner(kept: Object) -> tuple[str, ...]:
    owner = kept_outline(kept).owner
    return (owner,) if owner else ()


__all__ = ["CLOUD_PROFILES", "SHOOTS", "Garden", "outline"]
