"""Options of an agent that the Go operator does not have, all off where they are not asked for.

They are YAML in one annotation of the CR, so that the CRDs stay those of the Go operator: with its CRD installed they
work as well, and it ignores them. `docs/agents/options.md` is the page for users.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal

import msgspec

from hortus.domains.agents.names import FLEET_GROUP
from hortus.domains.agents.types import InstanaAgent, InstanaAgentRemote
from hortus.kube import yaml
from hortus.schema import ObjectMeta

OPTIONS_ANNOTATION: Final = f"{FLEET_GROUP}/agent-options"
CONFIG_LABEL: Final = "instana.io/agent-config"
"""Label of ConfigMaps, with the value `true`, whose configuration is merged into the agent's."""
CONFIG_KEY: Final = "configuration_yaml"
"""The key of such a ConfigMap that holds the configuration."""
_PAGE: Final = "docs/agents/options.md lists the options"
_API_SERVER_PORTS: Final = (443, 6443)
_DNS_NAME: Final = re.compile(r"(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class UnusableOptions(ValueError):
    """Options, or texts that they merge, cannot be used; the message names object, field and fix."""


class _Options(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Options, of which each is named in full."""


class DownloadCache(_Options, frozen=True):
    """A place for downloads of the agent that outlives its pods."""

    folder: str = ""
    """A folder of each node, which is made where it is missing."""
    claim: str = ""
    """A PersistentVolumeClaim that all nodes can mount."""


class EphemeralStorage(_Options, frozen=True):
    """Amounts of ephemeral storage for pods that say none."""

    request: str = ""
    """The amount that is reserved."""
    limit: str = ""
    """The amount beyond which a pod is evicted."""


class SensorNetwork(_Options, frozen=True):
    """A NetworkPolicy of the k8sensor: nothing may connect to it, and it connects to named ports alone."""

    enabled: bool = False
    """True makes the policy."""
    ports: tuple[int, ...] = _API_SERVER_PORTS
    """Ports of the API server, and of other parts of the control plane that it reads; those of the backends, of the
    proxy, of etcd and of DNS are always among them."""


class IssuerReference(_Options, frozen=True):
    """An issuer of cert-manager."""

    name: str
    """Its name."""
    kind: str = "Issuer"
    """Its kind: Issuer, ClusterIssuer, or that of another program's."""
    group: str = "cert-manager.io"
    """The API group of the kind."""


class AgentCertificate(_Options, frozen=True):
    """A certificate for the agent that is issued and renewed, by one of three ways."""

    issuer: IssuerReference | None = None
    """cert-manager issues it."""
    openshift: bool = False
    """The service CA of OpenShift issues it."""
    own: bool = msgspec.field(name="self", default=False)
    """Hortus issues it, by an authority that this agent has alone."""
    dns_names: tuple[str, ...] = ()
    """Names besides those of the agent's Services."""
    duration: str = ""
    """The time for which it is valid, such as 2160h; empty: the issuer's."""
    renew_before: str = ""
    """The time before its end at which it is renewed."""


class InstanaOptions(_Options, frozen=True):
    """Options of one agent."""

    readiness_probe: bool = False
    """Probe the status page, so that agents that do not answer are not ready."""
    startup_probe: bool = False
    """Give a starting agent ten minutes, and find one that hangs later within a minute."""
    download_cache: DownloadCache = DownloadCache()
    """Keep downloads when a pod is replaced."""
    tolerate: tuple[Literal["control-plane", "infra", "all"], ...] = ()
    """Kinds of nodes whose taints the agent tolerates in addition to those that it names."""
    zone_label: str = ""
    """A label of nodes, such as topology.kubernetes.io/zone: a zone is made of each of its values."""
    configuration: dict[str, Any] = {}
    """The agent's configuration as an object; it wins over `configuration_yaml`."""
    merge_configurations: bool = False
    """Merge ConfigMaps of the namespace that have the label instana.io/agent-config=true."""
    ephemeral_storage: EphemeralStorage = EphemeralStorage()
    """Amounts of ephemeral storage for agent and k8sensor."""
    sensor_network: SensorNetwork = SensorNetwork()
    """A NetworkPolicy of the k8sensor."""
    restart_on_change: bool = False
    """Replace the pods when a key, a download key or the certificate changes, at the pace of the update strategy."""

    certificate: AgentCertificate | None = None
    """A certificate that cert-manager, OpenShift or Hortus issues."""
    runtime_status: bool = False
    """Ask agents for their status pages through the API server, and report the answers as a condition."""


NO_OPTIONS: Final = InstanaOptions()
_OF_CLUSTERS: Final = ("download_cache", "zone_label", "sensor_network")
"""Options that a Remote, which has one pod and no k8sensor, cannot have."""


def options_of(agent: InstanaAgent | InstanaAgentRemote) -> InstanaOptions:
    """The options of a CR; none without the annotation. Raises UnusableOptions."""
    owner = f"{agent.FACTS.name} {agent.metadata.namespace}/{agent.metadata.name}"
    return read_options(agent.metadata, owner, is_remote=isinstance(agent, InstanaAgentRemote))


def read_options(metadata: ObjectMeta, owner: str, *, is_remote: bool = False) -> InstanaOptions:
    """The options in the annotation of an object that messages call `owner`. Raises UnusableOptions."""
    written = metadata.annotations.get(OPTIONS_ANNOTATION)
    if written is None:
        return NO_OPTIONS
    where = f"annotation {OPTIONS_ANNOTATION} of {owner}"
    try:
        loaded = yaml.load(written)
        found = msgspec.convert({} if loaded is None else loaded, InstanaOptions)
    except (yaml.YamlError, msgspec.ValidationError) as error:
        raise UnusableOptions(f"{where}: {error}; {_PAGE}") from None
    for name in _OF_CLUSTERS if is_remote else ():
        if getattr(found, name) != getattr(NO_OPTIONS, name):
            field = next(each.encode_name for each in msgspec.structs.fields(found) if each.name == name)
            raise UnusableOptions(f"{where}: {field} is for an InstanaAgent: remove it; {_PAGE}")
    if found.download_cache.folder and found.download_cache.claim:
        raise UnusableOptions(f"{where}: downloadCache has a folder and a claim: keep one of them")
    if found.certificate is not None:
        _check_certificate(found.certificate, where, is_remote=is_remote)
    return found


def _check_certificate(certificate: AgentCertificate, where: str, *, is_remote: bool) -> None:
    """Raises UnusableOptions."""
    if [certificate.issuer is not None, certificate.openshift, certificate.own].count(True) != 1:
        raise UnusableOptions(f"{where}: certificate needs one of issuer, openshift: true and self: true; {_PAGE}")
    if certificate.own:
        _check_own_certificate(certificate, where)
    if certificate.openshift and is_remote:
        raise UnusableOptions(
            f"{where}: certificate.openshift needs a Service, which a Remote has not: name an issuer, or self: true"
        )
    if certificate.openshift and certificate != AgentCertificate(openshift=True):
        raise UnusableOptions(
            f"{where}: certificate: OpenShift chooses names and duration itself: remove dnsNames, duration, renewBefore"
        )


def _check_own_certificate(certificate: AgentCertificate, where: str) -> None:
    """Raises UnusableOptions."""
    if certificate.duration or certificate.renew_before:
        raise UnusableOptions(
            f"{where}: certificate: with self: true it is valid for 90 days: remove duration and renewBefore"
        )
    for name in certificate.dns_names:
        if not _DNS_NAME.fullmatch(name):
            raise UnusableOptions(f"{where}: certificate.dnsNames: {name!r} is no DNS name in lower case: correct it")
