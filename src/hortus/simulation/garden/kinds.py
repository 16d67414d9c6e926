"""The kinds that the parts of the garden read and write, and the names of its clusters.

The process that simulates the garden loads this module and not `definitions`, which loads the API server.
"""

from __future__ import annotations

from hortus.kube.objects import Object, Resource

CORE = "core.gardener.cloud"
SECURITY = "security.gardener.cloud"
SHOOTS = Resource(CORE, "v1beta1", "shoots", "Shoot")
SEEDS = Resource(CORE, "v1beta1", "seeds", "Seed", namespaced=False)
PROJECTS = Resource(CORE, "v1beta1", "projects", "Project", namespaced=False)
CLOUD_PROFILES = Resource(CORE, "v1beta1", "cloudprofiles", "CloudProfile", namespaced=False)
SECRET_BINDINGS = Resource(CORE, "v1beta1", "secretbindings", "SecretBinding")
CREDENTIALS_BINDINGS = Resource(SECURITY, "v1alpha1", "credentialsbindings", "CredentialsBinding")
LOGICAL_CLUSTERS = Resource("tenancy.hortus.dev", "v1alpha1", "logicalclusters", "LogicalCluster", namespaced=False)
"""The logical clusters of the management cluster: workload clusters live in them."""
QUOTAS = Resource(CORE, "v1beta1", "quotas", "Quota")
EXPOSURE_CLASSES = Resource(CORE, "v1beta1", "exposureclasses", "ExposureClass", namespaced=False)
NAMESPACED_CLOUD_PROFILES = Resource(CORE, "v1beta1", "namespacedcloudprofiles", "NamespacedCloudProfile")
MANAGED_SEEDS = Resource("seedmanagement.gardener.cloud", "v1alpha1", "managedseeds", "ManagedSeed")
WORKLOAD_IDENTITIES = Resource(SECURITY, "v1alpha1", "workloadidentities", "WorkloadIdentity")
DECISIVE = (
    SHOOTS,
    SEEDS,
    PROJECTS,
    CLOUD_PROFILES,
    NAMESPACED_CLOUD_PROFILES,
    SECRET_BINDINGS,
    CREDENTIALS_BINDINGS,
    QUOTAS,
    EXPOSURE_CLASSES,
)
"""The kinds that decide over Shoots: a plan reads these of a garden, and no others."""
_PROJECT_PREFIX = "garden-"


def project_of(namespace: str) -> str:
    """The project whose namespace this is."""
    return namespace.removeprefix(_PROJECT_PREFIX)


def profile_of(shoot: Object) -> tuple[str, str]:
    """Kind and name of the profile of a Shoot, by either of the fields that hold it."""
    spec = shoot["spec"]
    if reference := spec.get("cloudProfile"):
        return reference.get("kind") or CLOUD_PROFILES.kind, reference.get("name", "")
    return CLOUD_PROFILES.kind, spec.get("cloudProfileName") or ""


def technical_id(namespace: str, name: str) -> str:
    """The logical cluster behind a Shoot.

    Who acts on a cluster takes its name from here, never from `status.technicalID`: who may write the status of one
    Shoot would else be given, put to sleep or delete the cluster of any other, or the garden itself.
    """
    return f"shoot--{project_of(namespace)}--{name}"
