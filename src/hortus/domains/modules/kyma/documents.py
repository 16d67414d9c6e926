"""Documents for clusters, made of the control plane's objects as they are: copies, the first Kyma, status and metadata.

Objects pass through here whole, so that a field that this program does not know reaches the cluster as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Final

import msgspec

from hortus.domains.modules.kyma.copies import Copy, CopySet, copy_set
from hortus.domains.modules.names import MANAGED_BY_KYMA, Annotation, FieldOwner, Label
from hortus.domains.modules.types import KYMAS, KymaStatus
from hortus.kube.objects import Object, ObjectKey, Resource, parse_time
from hortus.kube.patches import merge_patch_between

NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CRDS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
_MIRRORED_LABELS: Final = (Label.RUNTIME_ID, Label.GLOBAL_ACCOUNT_ID, Label.SUBACCOUNT_ID)
_CHANGED: Final = "changedAt"
"""Field of a cached release's metadata: the time of its last change."""


def namespace_copy(name: str) -> CopySet:
    """The namespace of modules in a cluster."""
    labels = {Label.MANAGED_BY: MANAGED_BY_KYMA, Label.ISTIO_INJECTION: "enabled", Label.WARDEN: "enabled"}
    config = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    return copy_set("namespace", FieldOwner.SYNC_CONTEXT, [Copy(NAMESPACES, config)])


def crd_copies(crds: Iterable[Object]) -> CopySet:
    """The CRDs of a cluster, from those of the control plane; without conversion, which no cluster serves."""
    copies = [
        Copy(
            CRDS,
            {
                "apiVersion": CRDS.api_version,
                "kind": CRDS.kind,
                "metadata": {"name": crd["metadata"]["name"], "labels": {Label.MANAGED_BY: MANAGED_BY_KYMA}},
                "spec": {**crd["spec"], "conversion": {"strategy": "None"}},
            },
        )
        for crd in crds
    ]
    return copy_set("crds", FieldOwner.LIFECYCLE, copies)


def secret_copy(secret: Object, resource: Resource, namespace: str) -> CopySet:
    """The pull Secret of a cluster."""
    metadata = {
        "name": secret["metadata"]["name"],
        "namespace": namespace,
        "labels": {**(secret["metadata"].get("labels") or {}), Label.MANAGED_BY: MANAGED_BY_KYMA},
    }
    config = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": secret.get("type", "Opaque"),
        "data": secret.get("data") or {},
    }
    return copy_set("pull-secret", FieldOwner.LIFECYCLE, [Copy(resource, config)])


def first_remote(raw: Object, key: ObjectKey) -> Object:
    """The Kyma to create in a cluster: the whole spec of the control plane's."""
    return {
        "apiVersion": KYMAS.api_version,
        "kind": KYMAS.kind,
        "metadata": {"name": key.name, "namespace": key.namespace, **_mirrored_metadata(raw)},
        "spec": raw["spec"],
    }


def metadata_for(raw: Object, key: ObjectKey) -> Object:
    """Labels and annotations of the Kyma in a cluster, as they are applied."""
    return {
        "apiVersion": KYMAS.api_version,
        "kind": KYMAS.kind,
        "metadata": {"name": key.name, "namespace": key.namespace, **_mirrored_metadata(raw)},
    }


def _mirrored_metadata(raw: Object) -> Object:
    metadata = raw["metadata"]
    known: Mapping[str, str] = metadata.get("labels") or {}
    labels = {Label.WATCHED_BY: MANAGED_BY_KYMA, Label.MANAGED_BY: MANAGED_BY_KYMA}
    labels |= {name: known[name] for name in _MIRRORED_LABELS if name in known}
    owner = f"{metadata['namespace']}/{metadata['name']}"
    return {"labels": labels, "annotations": {Annotation.OWNED_BY: owner}}


def catalog_copy(raw: Object, resource: Resource, namespace: str) -> Object:
    """An object of the catalog as clusters get it."""
    metadata = raw["metadata"]
    kept: Object = {
        "name": metadata["name"],
        "namespace": namespace,
        "labels": {**(metadata.get("labels") or {}), Label.MANAGED_BY: MANAGED_BY_KYMA},
    }
    if metadata.get("annotations"):
        kept["annotations"] = metadata["annotations"]
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": kept, "spec": raw["spec"]}


def annotate(config: Object, name: str, value: str) -> None:
    """Add an annotation to an object that is not sent yet."""
    config["metadata"].setdefault("annotations", {})[name] = value


def with_channels(release: Object, channels: Collection[str]) -> Object:
    """A ModuleReleaseMeta with these channels only."""
    spec = release["spec"]
    shown = [channel for channel in spec["channels"] if channel["channel"] in channels]
    return {**release, "spec": {**spec, "channels": shown}}


def status_patch(remote: Object, wanted: Mapping[str, object]) -> Object | None:
    """The merge patch that gives the Kyma in the cluster this status; None when it has it."""
    present = remote.get("status") or {}
    with suppress(msgspec.ValidationError):
        if msgspec.convert(present, KymaStatus) == msgspec.convert(wanted, KymaStatus):
            return None
    patch = merge_patch_between(present, dict(wanted))
    return {"status": patch} if patch else None


def with_change_time(release: Object) -> Object:
    """A transform for a cache of releases: the time of the last change, without the managedFields it is read from."""
    metadata = release["metadata"]
    times = [entry["time"] for entry in metadata.pop("managedFields", None) or () if entry.get("time")]
    if times:
        metadata[_CHANGED] = max(times)
    return release


def changed_at(release: Object) -> float:
    """The time of a cached release's last change, in seconds since the epoch; 0 where that is not known."""
    text = release["metadata"].get(_CHANGED)
    return parse_time(text) if text else 0.0
