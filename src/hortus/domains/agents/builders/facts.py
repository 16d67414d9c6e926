"""The facts of a cluster that objects are built from, as values, and the rules that read them from live workloads.

A builder does no I/O. All that it needs besides the CR is in `InstanaFacts`: equal CRs and facts give equal objects.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from hortus.domains.agents.options import NO_OPTIONS, InstanaOptions
from hortus.engine.serving import IssuedPairs
from hortus.kube.objects import Object, shaped

AGENT_CONTAINER: Final = "instana-agent"
PERSIST_ID: Final = "INSTANA_PERSIST_HOST_UNIQUE_ID"
SECRETS_VOLUME: Final = "instana-secrets"
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
LOOPBACK: Final = "127.0.0.1"


class EtcdTargets(NamedTuple):
    """The metrics endpoints of etcd that were found in kube-system."""

    targets: tuple[str, ...] = ()
    """URLs, sorted."""
    ca_secret: bool = False
    """The namespace of the agent has a Secret `etcd-ca`."""


class CopiedSource(NamedTuple):
    """An object of openshift-etcd that is copied next to the agent."""

    resource_version: str
    """Version of the object that is copied."""
    data: Mapping[str, str]
    """Its data as it is on the wire: text of a ConfigMap, base64 of a Secret."""
    type: str = ""
    """Type of a Secret."""


class OpenShiftEtcd(NamedTuple):
    """The objects with which etcd of OpenShift can be read, both whole."""

    ca_bundle: CopiedSource
    """ConfigMap openshift-etcd/etcd-ca-bundle."""
    client: CopiedSource
    """Secret openshift-etcd/etcd-client."""


class InstanaFacts(NamedTuple):
    """All that the world contributes to the objects of one CR."""

    operator_version: str
    """Version of the operator, as objects carry it in app.kubernetes.io/version."""
    openshift: bool = False
    """The cluster is OpenShift."""
    namespaces: Mapping[str, Mapping[str, str]] | None = _NOTHING
    """Labels of the namespaces; None where they could not be listed."""
    keys_secret: Mapping[str, bytes] | None = None
    """Data of the Secret that agent.keysSecret names; None where none is named or found."""
    persist_ids: Mapping[str, bool] = _NOTHING
    """By name of a DaemonSet, the result of `persists_id`. A DaemonSet that is not named counts as new."""
    corrected: Mapping[str, bool] = _NOTHING
    """By name of a DaemonSet or Deployment, the result of `is_corrected`. One that is not named counts as new."""
    etcd: EtcdTargets | OpenShiftEtcd | None = None
    """The sources of etcd's metrics; None where there are none."""
    options: InstanaOptions = NO_OPTIONS
    """The result of `options_of`, which `build_agent` and `build_remote` put here."""
    node_zones: Collection[str] = ()
    """For option `zoneLabel`: the values of that label on all nodes, with an empty one where a node lacks it."""
    config_sources: Mapping[str, str] = _NOTHING
    """For option `mergeConfigurations`: by name, key `configuration_yaml` of the labelled ConfigMaps."""
    tls_secret: Mapping[str, bytes] | None = None
    """For option `restartOnChange`: data of the Secret that agent.tls.secretName names; for option `certificate` that
    of the issued one, where the CR has none."""
    own_certificate: IssuedPairs | None = None
    """For option `certificate` with `self`: the pairs of the agent and of its authority."""


class UnknownWorkload(ValueError):
    """A live workload has the name of one of ours and another content; the message names the fix."""


class _Named(msgspec.Struct):
    name: str = ""


class _Get(msgspec.Struct):
    host: str = ""


class _Probe(msgspec.Struct, rename="camel"):
    http_get: _Get | None = None


class _Container(msgspec.Struct, rename="camel"):
    name: str = ""
    env: tuple[_Named, ...] = ()
    liveness_probe: _Probe | None = None


class _Source(msgspec.Struct):
    items: tuple[dict[str, Any], ...] = ()


class _Volume(msgspec.Struct):
    name: str = ""
    secret: _Source | None = None


class _PodSpec(msgspec.Struct, rename="camel"):
    host_network: bool = False
    containers: tuple[_Container, ...] = ()
    volumes: tuple[_Volume, ...] = ()


class _Template(msgspec.Struct):
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)


class _Spec(msgspec.Struct):
    template: _Template = msgspec.field(default_factory=_Template)


class _Workload(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


def _pod_of(live: Object) -> _PodSpec:
    workload = shaped(live, _Workload)
    return workload.spec.template.spec if workload is not None else _PodSpec()


def persists_id(live: Object | None) -> bool:
    """Reports whether the agents of a DaemonSet keep their ID on the node.

    They do where there is none yet, and where the live one says so; otherwise hosts would get new IDs in the backend.
    Raises UnknownWorkload for a DaemonSet without the agent's container.
    """
    if live is None:
        return True
    for container in _pod_of(live).containers:
        if container.name == AGENT_CONTAINER:
            return any(variable.name == PERSIST_ID for variable in container.env)
    raise UnknownWorkload(
        f"the DaemonSet has no container {AGENT_CONTAINER!r}: rename it or delete it, so that the agent's can be made"
    )


def is_corrected(live: Object | None) -> bool:
    """Reports whether pods are built with the corrections that differ from the Go operator's templates.

    They are where there is no workload yet, and where the live one has no trace of the Go operator's template: a Secret
    volume with a selection of keys in a DaemonSet, a liveness probe on the node's loopback in a Deployment. The others
    keep their template, so that taking over a running installation replaces no pod.
    """
    if live is None:
        return True
    pod = _pod_of(live)
    if pod.host_network:
        return not any(
            volume.name == SECRETS_VOLUME and volume.secret and volume.secret.items for volume in pod.volumes
        )
    probes = (container.liveness_probe for container in pod.containers)
    return not any(probe and probe.http_get and probe.http_get.host == LOOPBACK for probe in probes)
