"""Machine images of OpenStack by architecture and capabilities, as CloudProfiles of Gardener describe them. Pure.

    profile = profile_of(cloud_profile)                       # raises UnreadableProfile
    wanted = MachineImageRequest(name=..., version=..., region=..., machine_type=...)
    choice = select_image(profile, wanted, kept=status)   # raises ImageNotFound, AmbiguousImage

- `select_image`: the image of a pool; `kept_images`: the record of it in the status of a Worker.
- `cloud_profile_problems`: broken rules of a CloudProfile, each with its path; `warnings_of`: regions without an image.
- `defaulted_profile`: the CloudProfile with the capability flavors that its provider configuration has.
- `machine_deployments`: names and numbers of the machine deployments of a Worker's pools.

Sources: gardener/gardener-extension-provider-openstack, docs/operations/operations.md; gardener/enhancements, GEP-33.
"""

from hortus.gardener.machineimages.capabilities import AMD64, ARCHITECTURE, ARM64, CapabilityDefinition, is_compatible
from hortus.gardener.machineimages.defaulting import defaulted_profile
from hortus.gardener.machineimages.deployments import (
    MachineDeployment,
    MachinePool,
    cloud_label_key,
    machine_deployments,
)
from hortus.gardener.machineimages.profile import (
    CONFIG_GROUP,
    ImageProfile,
    UnreadableProfile,
    profile_of,
)
from hortus.gardener.machineimages.selection import (
    AmbiguousImage,
    ImageNotFound,
    KeptImage,
    MachineImageChoice,
    MachineImageRequest,
    kept_images,
    select_image,
)
from hortus.gardener.machineimages.validation import cloud_profile_problems
from hortus.gardener.machineimages.warnings import warnings_of

__all__ = [
    "AMD64",
    "ARCHITECTURE",
    "ARM64",
    "CONFIG_GROUP",
    "AmbiguousImage",
    "CapabilityDefinition",
    "ImageNotFound",
    "ImageProfile",
    "KeptImage",
    "MachineDeployment",
    "MachineImageChoice",
    "MachineImageRequest",
    "MachinePool",
    "UnreadableProfile",
    "cloud_label_key",
    "cloud_profile_problems",
    "defaulted_profile",
    "is_compatible",
    "kept_images",
    "machine_deployments",
    "profile_of",
    "select_image",
    "warnings_of",
]
