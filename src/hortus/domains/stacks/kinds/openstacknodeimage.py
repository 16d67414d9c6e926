"""OpenStackNodeImageRelease: one node image in one OpenStack cloud."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from msgspec import field

from hortus.domains.stacks.kinds.shared import READY_COLUMNS, IdentityReference, ProvisionStatus
from hortus.domains.stacks.names import INFRASTRUCTURE_GROUP, VERSION
from hortus.kube.objects import Resource
from hortus.schema import Fields, Kind, kind


class ImageOptions(Fields, frozen=True):
    """The fields with which Glance creates the image, by the names of its API."""

    name: str
    """Name of the image."""
    id: str = ""
    """ID of the image; Glance makes one up where there is none."""
    visibility: str = ""
    """Access to the image: public, private, shared or community."""
    os_hidden: bool = field(default=False, name="os_hidden")
    """True keeps the image out of default lists."""
    tags: tuple[str, ...] = ()
    """Tags of the image, by which it is found together with its name."""
    container_format: str = field(default="", name="container_format")
    """Format of the container, such as bare."""
    disk_format: str = field(default="", name="disk_format")
    """Format of the disk, such as qcow2."""
    min_disk: int = field(default=0, name="min_disk")
    """Smallest disk for the image, in GB."""
    min_ram: int = field(default=0, name="min_ram")
    """Smallest memory for the image, in MB."""
    protected: bool = False
    """True prevents the deletion of the image."""
    properties: dict[str, str] = {}
    """Further properties of the image."""


class OpenStackNodeImage(Fields, frozen=True):
    """A node image."""

    url: str
    """The address from which Glance downloads the image."""
    create_opts: ImageOptions
    """The fields with which Glance creates it."""


class OpenStackNodeImageReleaseSpec(Fields, frozen=True):
    """The node image and the cloud."""

    identity_ref: IdentityReference
    """The identity with which the cloud is called."""
    image: OpenStackNodeImage
    """The node image."""


@kind(group=INFRASTRUCTURE_GROUP, version=VERSION, status=True, short_names=("osnir",), columns=READY_COLUMNS)
class OpenStackNodeImageRelease(Kind, frozen=True):
    """A node image in an OpenStack cloud. Releases that use the same image share it."""

    __schema__: ClassVar[dict[str, Any]] = {"required": []}

    spec: OpenStackNodeImageReleaseSpec
    """The node image and the cloud."""
    status: ProvisionStatus = ProvisionStatus()
    """The node image as observed."""


OPENSTACK_NODE_IMAGES: Final = Resource(
    INFRASTRUCTURE_GROUP, VERSION, "openstacknodeimagereleases", "OpenStackNodeImageRelease"
)
