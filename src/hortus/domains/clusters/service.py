"""Decisions about one Runtime: its names, what its annotations ask for, the GardenerCluster made for it.

Pure, from values to values.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from hortus.domains.clusters.outline import ShootOutline
from hortus.domains.clusters.pauses import GARDEN
from hortus.domains.clusters.types import MANAGER, Annotation, Label, Runtime, ShootAnnotation
from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster
from hortus.domains.credentials.types import Annotation as ClusterAnnotation
from hortus.engine import StepError
from hortus.kube.objects import Object, ObjectKey, shaped

KUBECONFIG_KEY = "config"
"""Key of the kubeconfig Secret's data; brokers rely on it."""
LOCKED = "locked"
"""Value of the annotation that keeps an adopted Runtime from being served."""

_COPIED_LABELS = (
    Label.INSTANCE_ID,
    Label.RUNTIME_ID,
    Label.BROKER_PLAN_ID,
    Label.BROKER_PLAN_NAME,
    Label.GLOBAL_ACCOUNT_ID,
    Label.SUBACCOUNT_ID,
    Label.KYMA_NAME,
)


class _CacheSwitch(msgspec.Struct):
    enabled: bool = False


class Record(NamedTuple):
    """The Shoot of a Runtime, as recorded on it."""

    owner: str
    """The Runtime's own uid."""
    runtime_id: str
    shoot: str
    uid: str


def record_of(runtime: Runtime) -> Record | None:
    """The Shoot that the Runtime had when it was last reconciled; None before it has one."""
    parts = runtime.metadata.annotations.get(Annotation.CLUSTER, "").split("/")
    complete = len(parts) == len(Record._fields) and all(parts)
    return Record(*parts) if complete and parts[0] == runtime.metadata.uid else None


def runtime_id(runtime: Runtime) -> str:
    """The id by which the Runtime has its Shoot and its kubeconfig: as recorded, else its label; empty without one.

    A label that somebody edits later changes nothing of that; see `relabelled`.
    """
    record = record_of(runtime)
    return record.runtime_id if record is not None else runtime.metadata.labels.get(Label.RUNTIME_ID, "")


def relabelled(runtime: Runtime) -> str:
    """The value that the label runtime-id must have again, where it was changed; else empty."""
    record = record_of(runtime)
    changed = record is not None and runtime.metadata.labels.get(Label.RUNTIME_ID, "") != record.runtime_id
    return record.runtime_id if record is not None and changed else ""


def has_been_ready(runtime: Runtime) -> bool:
    return runtime.status is not None and bool(runtime.status.provisioning_completed)


def has_had_a_shoot(runtime: Runtime) -> bool:
    """True when the Runtime has or had a Shoot. The Go system leaves no record, but says when it was Ready."""
    return record_of(runtime) is not None or has_been_ready(runtime)


def leaves(runtime: Runtime, shoot: ShootOutline) -> bool:
    """True when the Runtime may be deleted without this Shoot, since its owner said so."""
    return runtime.metadata.annotations.get(Annotation.LEAVE) == shoot.uid


def shoot_name(runtime: Runtime) -> str:
    """Empty for a Runtime without a spec."""
    return "" if runtime.spec is None else runtime.spec.shoot.name


def provider(runtime: Runtime) -> str:
    """Empty for a Runtime without a spec."""
    return "" if runtime.spec is None else runtime.spec.shoot.provider.type


def generation(runtime: Runtime) -> int:
    return runtime.metadata.generation


def state_of(runtime: Runtime) -> str:
    """Empty before the first status."""
    return "" if runtime.status is None else runtime.status.state


def says_true(runtime: Runtime, annotation: str) -> bool:
    """True when the annotation has the one value that counts, `true`."""
    return runtime.metadata.annotations.get(annotation) == "true"


def suspended(runtime: Runtime) -> bool:
    return says_true(runtime, Annotation.SUSPEND_PATCH)


def locked(runtime: Runtime) -> bool:
    """True when it was built from a Shoot and awaits its release."""
    return runtime.metadata.annotations.get(Annotation.ADOPTION) == LOCKED


def forced(runtime: Runtime) -> bool:
    return says_true(runtime, Annotation.FORCE_PATCH)


def patch_due(runtime: Runtime, shoot: ShootOutline) -> bool:
    """True when the Shoot is to be patched now. Raises StepError.

    One that no longer says whose it is gets its annotations back by a patch.
    """
    if suspended(runtime):
        return False
    return forced(runtime) or outdated(runtime, shoot) or not shoot.owner


def outdated(runtime: Runtime, shoot: ShootOutline) -> bool:
    """True when the Shoot was last patched for an older generation, or never. Raises StepError."""
    if not shoot.patched_for:
        return True
    try:
        return int(shoot.patched_for) < generation(runtime)
    except ValueError:
        text = f"annotation {ShootAnnotation.RUNTIME_GENERATION} of shoot {shoot.name} must be a number"
        raise StepError(f"{text}; it is {shoot.patched_for!r}", reason="UnreadableGeneration", after=GARDEN) from None


def cluster_key(runtime: Runtime) -> ObjectKey:
    """The key of a Runtime's GardenerCluster."""
    return ObjectKey(runtime.metadata.namespace, runtime_id(runtime))


def secret_key(runtime: Runtime) -> ObjectKey:
    """The key of a Runtime's kubeconfig Secret."""
    return _secret_of(cluster_key(runtime))


def _secret_of(cluster: ObjectKey) -> ObjectKey:
    return ObjectKey(cluster.namespace, f"kubeconfig-{cluster.name}")


def gardener_cluster(runtime: Runtime, domain: str) -> Object:
    """The GardenerCluster for a Runtime with a spec. `domain` is the DNS domain of its Shoot."""
    shoot = runtime.wanted.shoot
    return gardener_cluster_for(
        cluster_key(runtime),
        labels=runtime.metadata.labels,
        shoot=shoot.name,
        region=shoot.region,
        platform_region=shoot.platform_region,
        domain=domain,
    )


def gardener_cluster_for(
    key: ObjectKey, *, labels: dict[str, str], shoot: str, region: str, platform_region: str, domain: str
) -> Object:
    """The GardenerCluster of that key for a Shoot; `labels` are those of the Runtime, or as good as."""
    secret = _secret_of(key)
    made = {label: labels.get(label, "") for label in _COPIED_LABELS}
    made |= {
        Label.PLATFORM_REGION: platform_region,
        Label.REGION: region,
        Label.SHOOT_NAME: shoot,
        Label.MANAGED_BY: MANAGER,
        Label.INTERNAL: "true",
    }
    reference = {"name": secret.name, "namespace": secret.namespace, "key": KUBECONFIG_KEY}
    return {
        "apiVersion": GARDENER_CLUSTERS.api_version,
        "kind": GardenerCluster.FACTS.name,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": made,
            "annotations": {ClusterAnnotation.SKR_DOMAIN: domain},
        },
        "spec": {"shoot": {"name": shoot}, "kubeconfig": {"secret": reference}},
    }


def switches_cache_on(runtime: Runtime) -> bool:
    """True when image caches are wanted but not listed in the Runtime: they are to be read in the cluster."""
    found = None if runtime.spec is None else shaped(runtime.spec.image_registry_cache, _CacheSwitch)
    return found is not None and found.enabled
