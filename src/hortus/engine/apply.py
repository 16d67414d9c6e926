"""Server-side apply that makes no call when it would change nothing.

The comparison is with the cached object and its managedFields: when our manager owns exactly the fields of the
configuration, all with the same values, the server would answer with the same object. So a cache that feeds this must
keep our managedFields (`managed_fields_of`), and a change by somebody else's hand shows as a difference at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from hortus.kube.objects import Object, Resource, key_of
from hortus.schema.merge import owned_matches

if TYPE_CHECKING:
    from hortus.engine.cache import Cache


class ApplyClient(Protocol):
    """The part of `hortus.kube.Client` that applying uses."""

    async def apply(self, resource: Resource, obj: Object, *, field_manager: str, force: bool = True) -> Object: ...


class Applied(NamedTuple):
    object: Object
    """As it is on the server now; read only when nothing was written, because it is then the cache's own."""
    written: bool


class Applier:
    """Applies configurations as one field manager."""

    def __init__(self, client: ApplyClient, *, field_manager: str) -> None:
        self._client = client
        self._field_manager = field_manager

    def matches(self, live: Object, config: Object) -> bool:
        """True when applying `config` would leave `live` as it is. Needs apiVersion and kind in `config`."""
        return owned_matches(live, config, self._field_manager)

    async def apply(
        self,
        resource: Resource,
        config: Object,
        *,
        cache: Cache | None = None,
        live: Object | None = None,
        force: bool = True,
    ) -> Applied:
        """Make the server's object hold `config`, unless `live`, or the object in `cache`, does so already.

        Raises Conflict when others own fields of it and `force` is off.
        """
        if live is None and cache is not None:
            live = cache.get(key_of(config))
        config = {"apiVersion": resource.api_version, "kind": resource.kind, **config}
        if live is not None and self.matches(live, config):
            return Applied(live, written=False)
        written = await self._client.apply(resource, config, field_manager=self._field_manager, force=force)
        if cache is not None:
            cache.learn(written)
        return Applied(written, written=True)
