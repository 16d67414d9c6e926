"""What can be said of a Runtime alone: its names, what its annotations ask for, the GardenerCluster made for it.

Pure, from values to values. Contract: infrastructure-manager, sections 1.4 to 1.6 and 2.2.
"""

from __future__ import annotations

from typing import NamedTuple

from hortus.domains.clusters.outline import ShootOutline
from hortus.domains.clusters.types import MANAGER, Annotation, Label
from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster
from hortus.domains.credentials.types import Annotation as ClusterAnnotation
from hortus.kube.objects import Object, ObjectKey

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


class UnreadableGeneration(ValueError):
    """The annotation with the generation on a Shoot is no number."""


def labels_of(runtime: Object) -> dict[str, str]:
    found: dict[str, str] = runtime["metadata"].get("labels") or {}
    return found


class Record(NamedTuple):
    """The Shoot of a Runtime, as recorded on it."""

    owner: str
    """The Runtime's own uid."""
    runtime_id: str
    shoot: str
    uid: str


def record_of(runtime: Object) -> Record | None:
    """The Shoot that the Runtime had when it was last looked at; None before it has one."""
    parts = _annotations(runtime).get(Annotation.CLUSTER, "").split("/")
    complete = len(parts) == len(Record._fields) and all(parts)
    return Record(*parts) if complete and parts[0] == runtime["metadata"].get("uid") else None


def runtime_id(runtime: Object) -> str:
    """The id by which the Runtime has its Shoot and its kubeconfig: as recorded, else its label; empty without one.

    A label that somebody edits later changes nothing of that; see `relabelled`.
    """
    record = record_of(runtime)
    return record.runtime_id if record is not None else labels_of(runtime).get(Label.RUNTIME_ID, "")


def relabelled(runtime: Object) -> str:
    """The value that the label runtime-id must have again, where it was changed; else empty."""
    record = record_of(runtime)
    changed = record is not None and labels_of(runtime).get(Label.RUNTIME_ID, "") != record.runtime_id
    return record.runtime_id if record is not None and changed else ""


def has_been_ready(runtime: Object) -> bool:
    return bool((runtime.get("status") or {}).get("provisioningCompleted"))


def has_had_a_shoot(runtime: Object) -> bool:
    """True when the Runtime has or had a Shoot. The Go system leaves no record, but says when it was Ready."""
    return record_of(runtime) is not None or has_been_ready(runtime)


def leaves(runtime: Object, live: ShootOutline) -> bool:
    """True when the Runtime may go without this Shoot, since its owner said so."""
    return _annotations(runtime).get(Annotation.LEAVE) == live.uid


def _annotations(runtime: Object) -> dict[str, str]:
    found: dict[str, str] = runtime["metadata"].get("annotations") or {}
    return found


def has_spec(runtime: Object) -> bool:
    """The contract's CRD admits a Runtime without a spec; with one, all that it requires is there."""
    return bool(runtime.get("spec"))


def shoot_name(runtime: Object) -> str:
    """Empty for a Runtime without a spec."""
    return str(runtime["spec"]["shoot"]["name"]) if has_spec(runtime) else ""


def provider(runtime: Object) -> str:
    """Empty for a Runtime without a spec."""
    return str(runtime["spec"]["shoot"]["provider"]["type"]) if has_spec(runtime) else ""


def generation(runtime: Object) -> int:
    return int(runtime["metadata"].get("generation", 0))


def state_of(runtime: Object) -> str:
    return str((runtime.get("status") or {}).get("state") or "")


def says_true(runtime: Object, annotation: str) -> bool:
    """Whether the annotation has the one value that counts, `true`."""
    return _annotations(runtime).get(annotation, "") == "true"


def suspended(runtime: Object) -> bool:
    return says_true(runtime, Annotation.SUSPEND_PATCH)


def locked(runtime: Object) -> bool:
    """Whether it was built from a Shoot and awaits its release."""
    return _annotations(runtime).get(Annotation.ADOPTION, "") == LOCKED


def forced(runtime: Object) -> bool:
    return says_true(runtime, Annotation.FORCE_PATCH)


def patch_due(runtime: Object, live: ShootOutline) -> bool:
    """True when the Shoot is to be patched now. Raises UnreadableGeneration.

    One that no longer says whose it is gets its annotations back by a patch.
    """
    if suspended(runtime):
        return False
    return forced(runtime) or outdated(runtime, live) or not live.owner


def outdated(runtime: Object, live: ShootOutline) -> bool:
    """Whether the Shoot was last patched for an older generation, or never. Raises UnreadableGeneration."""
    if not live.patched_for:
        return True
    try:
        return int(live.patched_for) < generation(runtime)
    except ValueError:
        raise UnreadableGeneration(live.patched_for) from None


def cluster_key(runtime: Object) -> ObjectKey:
    """Where the GardenerCluster of a Runtime is."""
    return ObjectKey(runtime["metadata"]["namespace"], runtime_id(runtime))


def secret_key(runtime: Object) -> ObjectKey:
    """Where the kubeconfig Secret of a Runtime is."""
    return ObjectKey(runtime["metadata"]["namespace"], f"kubeconfig-{runtime_id(runtime)}")


def gardener_cluster(runtime: Object, domain: str) -> Object:
    """The GardenerCluster for a Runtime. `domain` is the DNS domain of its Shoot."""
    wanted, given = runtime["spec"]["shoot"], labels_of(runtime)
    namespace, name = cluster_key(runtime)
    secret = secret_key(runtime)
    labels = {label: given.get(label, "") for label in _COPIED_LABELS}
    labels |= {
        Label.PLATFORM_REGION: wanted["platformRegion"],
        Label.REGION: wanted["region"],
        Label.SHOOT_NAME: wanted["name"],
        Label.MANAGED_BY: MANAGER,
        Label.INTERNAL: "true",
    }
    reference = {"name": secret.name, "namespace": secret.namespace, "key": KUBECONFIG_KEY}
    return {
        "apiVersion": GARDENER_CLUSTERS.api_version,
        "kind": GardenerCluster.FACTS.name,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels,
            "annotations": {ClusterAnnotation.SKR_DOMAIN: domain},
        },
        "spec": {"shoot": {"name": wanted["name"]}, "kubeconfig": {"secret": reference}},
    }


def shoot_of(cluster: Object) -> str:
    """The name of the Shoot that a GardenerCluster is for."""
    return str(cluster["spec"]["shoot"]["name"])


def switches_cache_on(runtime: Object) -> bool:
    """Whether image caches are wanted but not listed in the Runtime: they are to be read in the cluster."""
    cache = runtime["spec"].get("imageRegistryCache")
    return isinstance(cache, dict) and cache.get("enabled") is True
