"""The objects that Flux is given for a chart, and what its HelmReleases report; pure.

A HelmRelease names its source by the chart's digest, so that chart and values change in one write and no release is
made of the one without the other. Fields are those of fluxcd/helm-controller, `api/v2`, and fluxcd/source-controller,
`api/v1`, as Flux 2.7 has them.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from hortus.domains.stacks.addons.rendering import RELEASE
from hortus.domains.stacks.capi import CAPI_GROUP, KUBECONFIG_KEY, kubeconfig_secret
from hortus.domains.stacks.flux.registry import ONE_CHART, ChartAccess
from hortus.domains.stacks.names import FLEET_GROUP, INSTANCE_LABEL, OWNED
from hortus.engine.conditions import READY
from hortus.engine.typed import NotReadable
from hortus.kube.objects import Object, ObjectKey, Resource, key_of
from hortus.schema import Condition, ObjectMeta

HELM_RELEASES: Final = Resource("helm.toolkit.fluxcd.io", "v2", "helmreleases", "HelmRelease")
REPOSITORIES: Final = Resource("source.toolkit.fluxcd.io", "v1", "ocirepositories", "OCIRepository")
HANDED: Final = f"{FLEET_GROUP}/flux-charts"
"""Annotation of a ClusterAddon whose addons Flux applies: the charts that were handed to it."""
LABEL: Final = f"{FLEET_GROUP}/flux"
SELECTOR: Final = f"{LABEL}=addons"
"""Selects the objects that are made here."""
CLUSTER_LABEL: Final = f"{CAPI_GROUP}/cluster-name"
CHART: Final = f"{FLEET_GROUP}/chart"
"""Annotation of a HelmRelease: the name in its Chart.yaml."""
DIGEST: Final = f"{FLEET_GROUP}/digest"
"""Annotation with a digest of what was written, by which a change by others is seen."""
_INTERVAL: Final = "10m"
_RETRY: Final = "1m"
_SOURCE_INTERVAL: Final = "1h"
"""Content that is named by its digest does not change; the call only shows that it is still there."""
_LONGEST_NAME: Final = 63
"""helm-controller writes the name of a HelmRelease into labels."""


class FluxChart(NamedTuple):
    """One chart of one Cluster, as it is handed over."""

    cluster: ObjectKey
    key: str
    """The chart's folder in the release."""
    chart: str
    """The name in Chart.yaml."""
    tag: str
    digest: str
    values: Mapping[str, Any]

    @property
    def name(self) -> str:
        return release_name(self.cluster.name, self.key)

    @property
    def source(self) -> str:
        """The name of its OCIRepository."""
        return f"{self.name}-{self.digest.partition(':')[2][:12]}"


def release_name(cluster: str, key: str) -> str:
    """The name of the HelmRelease for a chart; the hash keeps the chart b of Cluster a apart from others' a-b."""
    mark = hashlib.sha256(f"{cluster}/{key}".encode()).hexdigest()[:8]
    text = f"{cluster}-{key}".lower().replace("_", "-").replace(".", "-")
    return f"{text[: _LONGEST_NAME - len(mark) - 1].rstrip('-')}-{mark}"


def storage_namespace(key: str) -> str:
    """The namespace, inside the cluster, of helm's records of a chart.

    All charts are rendered for one release name, which their templates print into names of objects. helm knows a
    release by its name and the namespace of its records.
    """
    return RELEASE.namespace if key == ONE_CHART else release_name("helm", key)


def helm_release(one: FluxChart) -> Object:
    """The HelmRelease of a chart."""
    retry = {"name": "RetryOnFailure", "retryInterval": _RETRY}
    # Remediation would uninstall addons that fail, and the network of the cluster with them. Stages wait by themselves.
    action = {"strategy": retry, "crds": "CreateReplace", "disableWait": True, "disableWaitForJobs": True}
    spec = {
        "interval": _INTERVAL,
        "suspend": False,
        "releaseName": RELEASE.name,
        "targetNamespace": RELEASE.namespace,
        "storageNamespace": storage_namespace(one.key),
        "chartRef": {"kind": REPOSITORIES.kind, "name": one.source},
        "kubeConfig": {"secretRef": {"name": kubeconfig_secret(one.cluster.name), "key": KUBECONFIG_KEY}},
        "driftDetection": {"mode": "enabled"},
        "install": action,
        "upgrade": action,
        "commonMetadata": {"labels": {INSTANCE_LABEL: OWNED}},
        "values": dict(one.values),
    }
    metadata = _metadata(one.cluster, one.name)
    metadata["annotations"] = {CHART: one.chart, DIGEST: spec_digest(spec)}
    return {"apiVersion": HELM_RELEASES.api_version, "kind": HELM_RELEASES.kind, "metadata": metadata, "spec": spec}


def repository(one: FluxChart, access: ChartAccess, owner: Object) -> Object:
    """The OCIRepository of a chart, which is deleted with the ClusterAddon."""
    pull, trust = secret_names(one.cluster.name)
    spec: dict[str, Any] = {
        "interval": _SOURCE_INTERVAL,
        "timeout": "60s",
        "provider": "generic",
        "url": f"oci://{access.host}/{one.cluster.namespace}/{one.tag}/{one.key}",
        "ref": {"digest": one.digest},
        "layerSelector": {"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "operation": "copy"},
        "secretRef": {"name": pull},
    }
    if access.bundle:
        spec["certSecretRef"] = {"name": trust}
    metadata = {**_metadata(one.cluster, one.source), "ownerReferences": [owner]}
    metadata["annotations"] = {DIGEST: spec_digest(spec)}
    return {"apiVersion": REPOSITORIES.api_version, "kind": REPOSITORIES.kind, "metadata": metadata, "spec": spec}


def secret_names(cluster: str) -> tuple[str, str]:
    """The names of the Secrets with the registry's password and with its authorities."""
    return release_name(cluster, "flux-pull"), release_name(cluster, "flux-trust")


def secrets(cluster: ObjectKey, access: ChartAccess, owner: Object) -> list[Object]:
    """The Secrets by which Flux reaches the registry."""
    pull, trust = secret_names(cluster.name)
    login = base64.b64encode(f"{access.username}:{access.password.reveal()}".encode()).decode()
    config = msgspec.json.encode({"auths": {access.host: {"auth": login}}})
    made = [_secret(cluster, pull, "kubernetes.io/dockerconfigjson", {".dockerconfigjson": config}, owner)]
    if access.bundle:
        made.append(_secret(cluster, trust, "Opaque", {"ca.crt": access.bundle}, owner))
    return made


def _secret(cluster: ObjectKey, name: str, kind: str, data: Mapping[str, bytes], owner: Object) -> Object:
    metadata = {**_metadata(cluster, name), "ownerReferences": [owner]}
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    metadata["annotations"] = {DIGEST: spec_digest(encoded)}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": kind, "data": encoded}


def _metadata(cluster: ObjectKey, name: str) -> dict[str, Any]:
    labels = {LABEL: "addons", CLUSTER_LABEL: cluster.name}
    return {"name": name, "namespace": cluster.namespace, "labels": labels}


def spec_digest(spec: Mapping[str, Any]) -> str:
    """A digest of a part of an object, equal for equal content however a server writes numbers and nulls."""
    return hashlib.sha256(msgspec.json.encode(_plain(spec), order="deterministic")).hexdigest()[:32]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


# Reading.


class _ChartRef(msgspec.Struct):
    name: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    suspend: bool = False
    chart_ref: _ChartRef = msgspec.field(default_factory=_ChartRef)


class _Status(msgspec.Struct, rename="camel"):
    observed_generation: int = 0
    conditions: list[Condition] = []


class FluxObject(msgspec.Struct, frozen=True):
    """A HelmRelease or an OCIRepository as it is read."""

    metadata: ObjectMeta
    spec: dict[str, Any] = {}
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def source(self) -> str:
        """The name of a HelmRelease's OCIRepository."""
        return msgspec.convert(self.spec, _Spec).chart_ref.name

    @property
    def is_suspended(self) -> bool:
        return msgspec.convert(self.spec, _Spec).suspend

    @property
    def is_intact(self) -> bool:
        """True unless somebody has changed what was written here, or deletes it."""
        whole = self.metadata.annotations.get(DIGEST) == spec_digest(self.spec)
        return whole and self.metadata.deletion_timestamp is None


class FluxState(NamedTuple):
    """The state that a HelmRelease reports."""

    ready: bool
    failed: bool
    """True for a failure; False while it is on its way."""
    reason: str
    message: str


def read_flux(obj: Object) -> FluxObject:
    """Raises NotReadable."""
    try:
        return msgspec.convert(obj, FluxObject)
    except msgspec.ValidationError as error:
        raise NotReadable(f"{key_of(obj)}, which was given to Flux: {error}") from error


def state_of(release: FluxObject) -> FluxState:
    """The state of a HelmRelease for the generation that was written last."""
    found = {one.type: one for one in release.status.conditions}
    ready = found.get(READY)
    seen = release.status.observed_generation == release.metadata.generation
    if ready is None or (ready.status == "True" and not seen):
        return FluxState(ready=False, failed=False, reason="Progressing", message="helm-controller has not seen it yet")
    failed = ready.status == "False" and (seen or "Stalled" in found or ready.reason.endswith("Failed"))
    return FluxState(ready.status == "True", failed, ready.reason, ready.message)
