"""The image services of a process: one for each Secret, replaced when the Secret changes."""

from __future__ import annotations

from hortus.domains.stacks.openstack.clouds import CloudAccess
from hortus.domains.stacks.openstack.glance import GlanceService, ImageService, OpenService
from hortus.domains.stacks.openstack.transport import CloudLimits, CloudTransport
from hortus.kube import Clock
from hortus.kube.objects import ObjectKey


def opening(limits: CloudLimits, clock: Clock) -> OpenService:
    """Makes services that speak HTTP."""

    def open_service(access: CloudAccess) -> ImageService:
        return GlanceService(access, CloudTransport(access, limits), clock)

    return open_service


class ImageServices:
    """Services by the Secret that they were made of. Used in one event loop.

    A service that is replaced is closed; a request of it that is under way fails, and is made again.
    """

    def __init__(self, open_service: OpenService) -> None:
        self._open = open_service
        self._known: dict[ObjectKey, tuple[str, ImageService]] = {}

    async def get(self, secret: ObjectKey, version: str, access: CloudAccess) -> ImageService:
        """The service for one version of a Secret. Raises BadCloud."""
        known = self._known.get(secret)
        if known is not None and known[0] == version:
            return known[1]
        made = self._open(access)
        self._known[secret] = version, made
        if known is not None:
            await known[1].close()
        return made

    async def drop(self, secret: ObjectKey) -> None:
        """Close the service of a Secret that is gone."""
        _, service = self._known.pop(secret, ("", None))
        if service is not None:
            await service.close()

    async def close(self) -> None:
        """Close all of them."""
        for secret in tuple(self._known):
            await self.drop(secret)
