"""Variables and volumes of the k8sensor.

There is one entry for each name, of which server-side apply would refuse two: what was found in the cluster wins over
the operator's own variables, and these over `agent.env`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hortus.domains.agents.builders import environment, etcd, names, proxy, volumes
from hortus.domains.agents.builders.backends import AgentBackend
from hortus.domains.agents.builders.configuration import HTTPS_PROXY, lacks_proxy_key
from hortus.domains.agents.builders.environment import Variables, field, secret_key, text, texts
from hortus.domains.agents.builders.facts import SECRETS_VOLUME, EtcdTargets, InstanaFacts, OpenShiftEtcd
from hortus.domains.agents.builders.secrets import AGENT_KEY_FILE, PROXY_KEY
from hortus.domains.agents.builders.volumes import GROUP_READS, OWNER_READS, SECRETS_PATH, Mounted, items
from hortus.domains.agents.types import InstanaAgent, InstanaCaFile
from hortus.kube.objects import Object

PROXY_FILE: Final = f"{SECRETS_PATH}/{HTTPS_PROXY}"
_ACCOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_FOUND_CA_PATH: Final = "/var/run/secrets/etcd"
_BUNDLE_PATH: Final = "/etc/etcd-metrics-ca"
_CLIENT_PATH: Final = "/etc/etcd-client"
_OPENSHIFT_URL: Final = "https://etcd.openshift-etcd.svc.cluster.local:9978/metrics"
_CA: Final = "ca.crt"
_ETCD_CA: Final = "etcd-ca"


def key_file(backend: AgentBackend) -> str:
    """The mounted file with the agent key of a backend."""
    return f"{SECRETS_PATH}/{AGENT_KEY_FILE}{backend.suffix}"


def mounts_proxy(agent: InstanaAgent, facts: InstanaFacts) -> bool:
    """Reports whether the proxy's URL is a mounted file: a key that the Secret lacks would keep the pod from
    starting."""
    mounted = agent.spec.use_secret_mounts and agent.spec.agent.proxy_host
    return bool(mounted and not lacks_proxy_key(agent, facts))


def variables_of(agent: InstanaAgent, facts: InstanaFacts, backend: AgentBackend) -> list[Object]:
    """The variables of the k8sensor. `agent.pod.env` is for the agent alone."""
    return environment.merged(
        texts(agent.spec.agent.env),
        _own(agent, backend),
        _settings(agent),
        _credentials(agent, facts, backend),
        _etcd(agent, facts),
    )


def _own(agent: InstanaAgent, backend: AgentBackend) -> Variables:
    address: Object = {"name": names.sensor(agent), "key": f"backend{backend.suffix}"}
    return {
        "BACKEND": {"name": "BACKEND", "valueFrom": {"configMapKeyRef": address}},
        "BACKEND_URL": text("BACKEND_URL", "https://$(BACKEND)"),
        "AGENT_ZONE": text("AGENT_ZONE", agent.spec.cluster.name or agent.spec.zone.name),
        "CONFIG_PATH": text("CONFIG_PATH", environment.CONFIG_PATH),
        "POD_UID": field("POD_UID", "metadata.uid"),
        "POD_NAMESPACE": field("POD_NAMESPACE", "metadata.namespace"),
        "POD_NAME": field("POD_NAME", "metadata.name"),
        "POD_IP": field("POD_IP", "status.podIP"),
    }


def _settings(agent: InstanaAgent) -> Variables:
    wanted = agent.spec.k8s_sensor
    found = {"ETCD_INSECURE": "true" if wanted.etcd.insecure else "false"}
    if agent.spec.agent.proxy_host:
        found["NO_PROXY"] = "kubernetes.default.svc"
    if redacted := agent.spec.agent.redact_kubernetes_secrets:
        found["INSTANA_KUBERNETES_REDACT_SECRETS"] = redacted
    if path := wanted.rest_client.ca.mount_path:
        found["CONTROL_PLANE_CA_FILE"] = f"{path}/{_CA}"
    if hosts := wanted.rest_client.host_allowlist:
        found["REST_CLIENT_HOST_ALLOWLIST"] = ",".join(hosts)
    return texts(found)


def _credentials(agent: InstanaAgent, facts: InstanaFacts, backend: AgentBackend) -> Variables:
    """Key and proxy, as far as they are no mounted files."""
    found: Variables = {}
    if not agent.spec.use_secret_mounts:
        found["AGENT_KEY"] = secret_key("AGENT_KEY", names.keys_secret(agent), backend.key_name)
        if agent.spec.agent.proxy_host:
            found[HTTPS_PROXY] = text(HTTPS_PROXY, proxy.raw_url(agent.spec.agent))
    elif lacks_proxy_key(agent, facts):
        found[HTTPS_PROXY] = secret_key(HTTPS_PROXY, names.config_secret(agent), HTTPS_PROXY)
    return found


def _etcd(agent: InstanaAgent, facts: InstanaFacts) -> Variables:
    wanted, found = agent.spec.k8s_sensor.etcd, facts.etcd
    values = {"ETCD_CA_FILE": f"{_ca_path(wanted.ca)}/{_CA}"}
    if isinstance(found, OpenShiftEtcd) and etcd.is_complete(found):
        if not wanted.ca.secret_name:
            values["ETCD_CA_FILE"] = f"{_BUNDLE_PATH}/{etcd.BUNDLE_KEY}"
        certificate, key = (f"{_CLIENT_PATH}/{name}" for name in etcd.CLIENT_KEYS)
        values |= {"ETCD_METRICS_URL": _OPENSHIFT_URL, "ETCD_REQUEST_TIMEOUT": "15s"}
        values |= {"ETCD_CERT_FILE": certificate, "ETCD_KEY_FILE": key}
    elif _uses_found_ca(agent, facts):
        values["ETCD_CA_FILE"] = f"{_FOUND_CA_PATH}/{_CA}"
    if targets := _targets(agent, facts):
        values["ETCD_TARGETS"] = ",".join(targets)
    return texts(values)


def _targets(agent: InstanaAgent, facts: InstanaFacts) -> tuple[str, ...]:
    """The CR's list as it is, else what was found, sorted."""
    if given := agent.spec.k8s_sensor.etcd.targets:
        return given
    return tuple(sorted(facts.etcd.targets)) if isinstance(facts.etcd, EtcdTargets) else ()


def _uses_found_ca(agent: InstanaAgent, facts: InstanaFacts) -> bool:
    """Reports whether the Secret `etcd-ca` in the namespace is mounted: with targets that were found, and no other
    authority in the CR."""
    wanted, found = agent.spec.k8s_sensor.etcd, facts.etcd
    if wanted.targets or wanted.ca.secret_name or not isinstance(found, EtcdTargets):
        return False
    return bool(found.targets and found.ca_secret)


def _ca_path(wanted: InstanaCaFile) -> str:
    """The folder of the authorities. A Secret is never mounted over the account's token, its default place."""
    hides_token = wanted.secret_name and wanted.mount_path in ("", _ACCOUNT_PATH)
    return _FOUND_CA_PATH if hides_token else wanted.mount_path or _ACCOUNT_PATH


def volumes_of(agent: InstanaAgent, facts: InstanaFacts, backend: AgentBackend) -> Iterator[Mounted]:
    """The volumes of the k8sensor."""
    wanted = agent.spec.k8s_sensor
    yield volumes.config(agent)
    if wanted.rest_client.ca.secret_name and wanted.rest_client.ca.mount_path:
        yield _authorities("control-plane-ca", wanted.rest_client.ca, wanted.rest_client.ca.mount_path)
    yield from _etcd_volumes(agent, facts)
    if agent.spec.use_secret_mounts:
        yield _keys(agent, facts, backend)


def _etcd_volumes(agent: InstanaAgent, facts: InstanaFacts) -> Iterator[Mounted]:
    wanted = agent.spec.k8s_sensor.etcd.ca
    copied = isinstance(facts.etcd, OpenShiftEtcd) and etcd.is_complete(facts.etcd)
    if wanted.secret_name:
        yield _authorities(_ETCD_CA, wanted, _ca_path(wanted))
    elif copied:
        bundle: Object = {"name": etcd.BUNDLE, "items": items([(etcd.BUNDLE_KEY,) * 2]), "defaultMode": GROUP_READS}
        yield Mounted(_ETCD_CA, {"configMap": bundle}, _BUNDLE_PATH, read_only=True)
    elif _uses_found_ca(agent, facts):
        found: Object = {"secretName": _ETCD_CA, "items": items([(_CA, _CA)])}
        yield Mounted(_ETCD_CA, {"secret": found}, _FOUND_CA_PATH, read_only=True)
    if copied:
        pair = items((key, key) for key in etcd.CLIENT_KEYS)
        client: Object = {"secretName": etcd.CLIENT, "items": pair, "defaultMode": GROUP_READS}
        yield Mounted("etcd-client-cert", {"secret": client}, _CLIENT_PATH, read_only=True)


def _authorities(name: str, wanted: InstanaCaFile, path: str) -> Mounted:
    source: Object = {
        "secretName": wanted.secret_name,
        "items": items([(wanted.filename or _CA, _CA)]),
        "defaultMode": GROUP_READS,
    }
    return Mounted(name, {"secret": source}, path, read_only=True)


def _keys(agent: InstanaAgent, facts: InstanaFacts, backend: AgentBackend) -> Mounted:
    """The key of this backend alone, and the proxy's URL."""
    file = AGENT_KEY_FILE + backend.suffix
    own = not agent.spec.agent.keys_secret
    wanted = [(file if own else backend.key_name, file)]
    if mounts_proxy(agent, facts):
        wanted.append((HTTPS_PROXY if own else PROXY_KEY, HTTPS_PROXY))
    source: Object = {
        "secretName": names.keys_secret(agent),
        "items": items(wanted),
        "defaultMode": OWNER_READS,
    }
    return Mounted(SECRETS_VOLUME, {"secret": source}, SECRETS_PATH, read_only=True)
