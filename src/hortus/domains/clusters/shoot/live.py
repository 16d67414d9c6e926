"""A Shoot of the garden as a conversion reads it: its struct, its outline, and the document as it was sent."""

from __future__ import annotations

from functools import cached_property

from hortus.domains.clusters.outline import ShootOutline
from hortus.domains.clusters.shoots import Extension, Shoot, ShootSpec, shoot_of
from hortus.domains.clusters.types import ShootAnnotation
from hortus.kube import Object
from hortus.schema import ObjectMeta


class LiveShoot:
    """A Shoot of the garden. Raises NotReadable where a field in use has another type."""

    def __init__(self, raw: Object) -> None:
        self.raw = raw
        """The whole document: read only."""

    @cached_property
    def _document(self) -> Shoot:
        return shoot_of(self.raw)

    @cached_property
    def outline(self) -> ShootOutline:
        """The facts that decide the next step."""
        return ShootOutline.of(self._document)

    @property
    def metadata(self) -> ObjectMeta:
        return self._document.metadata

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def spec(self) -> ShootSpec:
        return self._document.spec

    @property
    def addresses(self) -> list[str]:
        """The addresses of the API server."""
        return [address.url for address in self._document.status.advertised_addresses]

    @property
    def owner(self) -> str:
        """The id of the Runtime that the Shoot belongs to, by its annotation; empty without one."""
        return self.metadata.annotations.get(ShootAnnotation.RUNTIME_ID, "")

    def extension(self, kind: str) -> Extension | None:
        """The first extension of a type."""
        return next(self.spec.extensions_of(kind), None)
