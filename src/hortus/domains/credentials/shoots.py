"""Shoots of the garden: the fields that this domain reads, and the outline of each that is kept in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from hortus.engine import read
from hortus.kube.objects import Object, ObjectKey
from hortus.schema import Fields, Kind, kind

if TYPE_CHECKING:
    from hortus.engine import Cache, Change

_API_SERVERS = frozenset({"external", "wildcard-tls-seed-bound", "internal", "unmanaged"})
"""Names of the advertised addresses that lead to a shoot's API server (gardener/gardener,
pkg/apis/core/v1beta1/constants/types_constants.go)."""
_OUTLINE = "credentials"
STATUS_LABEL: Final = "shoot.gardener.cloud/status"
"""The health of a Shoot, as Gardener derives it from its conditions: healthy, progressing, unhealthy or unknown."""


class _Address(Fields, frozen=True):
    name: str = ""
    url: str = ""


class _Operation(Fields, frozen=True):
    type: str = ""
    state: str = ""
    progress: int = 0
    description: str = ""


class _Status(Fields, frozen=True):
    advertised_addresses: tuple[_Address, ...] = ()
    last_operation: _Operation | None = None
    hibernated: bool = False


@kind(group="core.gardener.cloud", version="v1beta1", name="Shoot")
class GardenerShoot(Kind, frozen=True):
    """A Shoot, as far as credentials are concerned."""

    status: _Status = _Status()


class ShootFacts(Struct, frozen=True):
    """The few facts that decide about a kubeconfig, out of some kilobytes of each Shoot."""

    uid: str
    addresses: tuple[str, ...]
    """URLs of its API server."""
    succeeded: bool
    """True when its last operation did."""

    @property
    def home(self) -> str:
        """Identifies one life of the cluster; empty where nothing is known that does."""
        return " ".join((self.uid, *self.addresses)) if self.addresses else ""


class ShootFactsCache:
    """The outlines of the Shoots in a cache whose transform is `outline`."""

    def __init__(self, cache: Cache, namespace: str) -> None:
        self._cache = cache
        self._namespace = namespace

    def get(self, name: str) -> ShootFacts | None:
        found = self._cache.get(ObjectKey(self._namespace, name))
        return None if found is None else outline_of(found)


def outline(shoot: Object) -> Object:
    """A Shoot as a cache keeps it: enough of its metadata, and its outline."""
    found = read(GardenerShoot, shoot)
    metadata = found.metadata
    addresses = found.status.advertised_addresses
    operation = found.status.last_operation
    return {
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
        },
        _OUTLINE: ShootFacts(
            uid=metadata.uid,
            addresses=tuple(address.url for address in addresses if address.name in _API_SERVERS),
            succeeded=operation is not None and operation.state == "Succeeded",
        ),
    }


def outline_of(kept: Object) -> ShootFacts:
    """The outline in an object of a cache whose transform is `outline`."""
    found: ShootFacts = kept[_OUTLINE]
    return found


def became_usable(change: Change) -> bool:
    """True for a Shoot that appeared, was made again, has moved or has just been built."""
    if change.new is None:
        return False
    new = outline_of(change.new)
    if change.old is None:
        return True
    old = outline_of(change.old)
    return old.home != new.home or (new.succeeded and not old.succeeded)
