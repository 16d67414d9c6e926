"""Adds the OpenStack controllers to a process."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hortus.domains.stacks.openstack.glance import OpenService
from hortus.domains.stacks.openstack.nodeimages import CLOUD_INDEX, NodeImageController
from hortus.domains.stacks.openstack.releases import OpenStackReleaseController, releases_of
from hortus.domains.stacks.openstack.services import ImageServices, opening
from hortus.domains.stacks.openstack.settings import OpenStackSettings
from hortus.domains.stacks.openstack.transport import CloudLimits
from hortus.domains.stacks.releases import Library
from hortus.domains.stacks.types import OpenStackNodeImageRelease
from hortus.engine import EventRecorder, Manager, Watch, read, sources_of, wire, without_managed_fields
from hortus.engine.deputies import Deputies
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.remote import SECRETS
from hortus.kube import Client
from hortus.kube.objects import Object, ObjectKey, key_of

RELEASES: Final = "openstackclusterstackrelease"
IMAGES: Final = "openstacknodeimagerelease"


def add_openstack(
    manager: Manager,
    *,
    client: Client,
    events: EventRecorder,
    library: Library,
    settings: OpenStackSettings,
    resync: float,
    deputies: Deputies,
    leftovers: LeftoverRecorder,
    namespace: str = "",
    open_service: OpenService | None = None,
) -> None:
    """Add both controllers; `open_service` stands for the image services of clouds.

    They are optional: a management cluster whose stacks are for other providers may lack their CRDs.
    """
    services = ImageServices(open_service or opening(CloudLimits(local=settings.allows_local), manager.clock))
    manager.on_stop(services.close)
    releases = wire(manager, OpenStackReleaseController, client=client, events=events, namespace=namespace)
    images = wire(manager, NodeImageController, client=client, events=events, namespace=namespace)
    secrets = manager.cache(SECRETS, namespace=namespace, transform=_without_values)

    manager.controller(
        IMAGES,
        NodeImageController(
            images,
            services=services,
            settings=settings,
            releases=releases.cache.raw,
            deputies=deputies,
            leftovers=leftovers,
        ),
        sources=[
            Watch(secrets, to=lambda secret: images.cache.keys_by(CLOUD_INDEX, str(key_of(secret)))),
            Watch(releases.cache.raw, to=_none),
            *sources_of(images),
        ],
        workers=settings.image_workers,
        resync=resync,
        optional=True,
    )
    manager.controller(
        RELEASES,
        OpenStackReleaseController(releases, images=images.cache.raw, library=library),
        sources=[Watch(images.cache.raw, to=_releases_of_image), *sources_of(releases)],
        workers=settings.release_workers,
        resync=resync,
        optional=True,
    )


def _releases_of_image(image: Object) -> Iterable[ObjectKey]:
    return releases_of(read(OpenStackNodeImageRelease, image))


def _none(_: Object) -> Iterable[ObjectKey]:
    """Maps a release to nothing: its cache is only complete before the first image is judged."""
    return ()


def _without_values(secret: Object) -> Object:
    """A Secret's outline, so that no credential stays in memory: a change is all that matters."""
    without_managed_fields(secret)
    for field in ("data", "stringData"):
        secret.pop(field, None)
    return secret
