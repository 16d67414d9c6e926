"""OpenStackClusterStackRelease and its template: the part of a release that an OpenStack cloud has to provide."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from hortus.domains.stacks.kinds.shared import READY_COLUMNS, IdentityReference, ProvisionStatus
from hortus.domains.stacks.names import INFRASTRUCTURE_GROUP, VERSION
from hortus.kube.objects import Resource
from hortus.schema import Fields, Kind, kind


class OpenStackClusterStackReleaseSpec(Fields, frozen=True):
    """The cloud in which node images are provided."""

    identity_ref: IdentityReference = IdentityReference(kind="Secret", name="openstack")
    """The identity with which the cloud is called."""


@kind(group=INFRASTRUCTURE_GROUP, version=VERSION, status=True, short_names=("oscsr",), columns=READY_COLUMNS)
class OpenStackClusterStackRelease(Kind, frozen=True):
    """The part of a release that an OpenStack cloud has to provide: its node images."""

    spec: OpenStackClusterStackReleaseSpec = OpenStackClusterStackReleaseSpec()
    """The cloud in which node images are provided."""
    status: ProvisionStatus = ProvisionStatus()
    """The node images of the release as observed."""


class OpenStackReleaseTemplateResource(Fields, frozen=True):
    """The object that is made for each release."""

    spec: OpenStackClusterStackReleaseSpec
    """Its spec, copied as it is."""


class OpenStackClusterStackReleaseTemplateSpec(Fields, frozen=True):
    """The template."""

    template: OpenStackReleaseTemplateResource
    """The object that is made for each release."""


class OpenStackReleaseTemplateStatus(Fields, frozen=True):
    """Empty: nothing is observed of a template."""


@kind(group=INFRASTRUCTURE_GROUP, version=VERSION, status=True, short_names=("oscsrt",))
class OpenStackClusterStackReleaseTemplate(Kind, frozen=True):
    """The template of OpenStackClusterStackReleases, which a ClusterStack names."""

    __schema__: ClassVar[dict[str, Any]] = {"required": []}

    spec: OpenStackClusterStackReleaseTemplateSpec
    """The template."""
    status: OpenStackReleaseTemplateStatus = OpenStackReleaseTemplateStatus()
    """Empty: nothing is observed of a template."""


OPENSTACK_RELEASES: Final = Resource(
    INFRASTRUCTURE_GROUP, VERSION, "openstackclusterstackreleases", "OpenStackClusterStackRelease"
)
OPENSTACK_RELEASE_TEMPLATES: Final = Resource(
    INFRASTRUCTURE_GROUP, VERSION, "openstackclusterstackreleasetemplates", "OpenStackClusterStackReleaseTemplate"
)
