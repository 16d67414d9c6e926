"""Volumes of the agent and their mounts, in the order of the Go operator: another order would replace all pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from hortus.domains.agents.builders import names
from hortus.domains.agents.builders.backends import DOWNLOAD_KEY, KEY
from hortus.domains.agents.builders.configuration import HTTPS_PROXY
from hortus.domains.agents.builders.environment import CONFIG_PATH, NAMESPACES_PATH, REMOTE_CONFIG_PATH
from hortus.domains.agents.builders.facts import SECRETS_VOLUME, InstanaFacts
from hortus.domains.agents.builders.secrets import (
    AGENT_KEY_FILE,
    CREDENTIAL_FILES,
    DOWNLOAD_KEY_FILE,
    PROXY_KEY,
    credentials_of,
    mounted_certificate,
)
from hortus.domains.agents.options import DownloadCache
from hortus.domains.agents.types import InstanaAgent, InstanaAgentRemote
from hortus.kube.objects import Object

SECRETS_PATH: Final = "/opt/instana/agent/etc/instana/secrets"
GROUP_READS: Final = 0o440
OWNER_READS: Final = 0o400
_CERTIFICATES_PATH: Final = "/opt/instana/agent/etc/certs"
_REPOSITORY_PATH: Final = "/opt/instana/agent/data/repo"
_HOST_FOLDERS: Final = (
    ("dev", "/dev", ""),
    ("run", "/run", ""),
    ("var-run", "/var/run", ""),
    ("var-run-kubo", "/var/vcap/sys/run/docker", "DirectoryOrCreate"),
    ("var-run-containerd", "/var/vcap/sys/run/containerd", "DirectoryOrCreate"),
    ("var-containerd-config", "/var/vcap/jobs/containerd/config", "DirectoryOrCreate"),
    ("sys", "/sys", ""),
    ("var-log", "/var/log", ""),
    ("var-lib-instana", "/var/lib/instana", "DirectoryOrCreate"),
    ("var-data", "/var/data", "DirectoryOrCreate"),
)
_NOT_ON_OPENSHIFT: Final = frozenset(("var-run-kubo", "var-run-containerd", "var-containerd-config"))


class Mounted(NamedTuple):
    """A volume and its mount."""

    name: str
    source: Object
    path: str
    read_only: bool = False
    propagation: str = ""

    @property
    def volume(self) -> Object:
        return {"name": self.name, **self.source}

    @property
    def mount(self) -> Object:
        found: Object = {"name": self.name, "mountPath": self.path}
        if self.read_only:
            found["readOnly"] = True
        if self.propagation:
            found["mountPropagation"] = self.propagation
        return found


def items(files: Iterable[tuple[str, str]]) -> list[Object]:
    """Keys of a Secret or ConfigMap, each with the name of its file."""
    return [{"key": key, "path": path} for key, path in files]


def config(agent: InstanaAgent) -> Mounted:
    """The configuration, in the agent and in the k8sensor."""
    return _config(names.config_secret(agent), CONFIG_PATH)


def _config(secret: str, path: str) -> Mounted:
    return Mounted("config", {"secret": {"secretName": secret, "defaultMode": GROUP_READS}}, path)


def of_daemon_set(agent: InstanaAgent, facts: InstanaFacts, *, corrected: bool) -> Iterator[Mounted]:
    """The volumes of the agent on a node, without those of the user."""
    for name, path, kind in _HOST_FOLDERS:
        if not (facts.openshift and name in _NOT_ON_OPENSHIFT):
            yield Mounted(name, _host(path, kind), path, propagation="HostToContainer")
    yield Mounted("machine-id", _host("/etc/machine-id"), "/etc/machine-id")
    yield config(agent)
    if secret := mounted_certificate(agent, facts):
        yield _certificate("instana-agent-tls", secret)
    if source := _downloads(agent, facts.options.download_cache):
        yield Mounted("repo", source, _REPOSITORY_PATH)
    labels: Object = {"name": names.namespaces_map(agent), "defaultMode": GROUP_READS}
    yield Mounted("namespaces-details", {"configMap": labels}, NAMESPACES_PATH)
    if agent.spec.use_secret_mounts:
        yield Mounted(SECRETS_VOLUME, _keys(agent, corrected=corrected), SECRETS_PATH, read_only=True)


def of_remote(agent: InstanaAgentRemote, facts: InstanaFacts) -> Iterator[Mounted]:
    """The volumes of an agent for what is outside of the cluster, without those of the user."""
    yield _config(names.config_secret(agent), REMOTE_CONFIG_PATH)
    if secret := mounted_certificate(agent, facts):
        yield _certificate("remote-agent-tls", secret)
    if claim := agent.spec.agent.host.repository:
        yield Mounted("repo", {"persistentVolumeClaim": {"claimName": claim}}, _REPOSITORY_PATH)
    if agent.spec.use_secret_mounts:
        keys: Object = {
            "secretName": names.keys_secret(agent),
            "items": items(_remote_keys(agent)),
            "defaultMode": OWNER_READS,
            "optional": False,
        }
        yield Mounted(SECRETS_VOLUME, {"secret": keys}, SECRETS_PATH, read_only=True)


def _host(path: str, kind: str = "") -> Object:
    return {"hostPath": {"path": path, "type": kind} if kind else {"path": path}}


def _downloads(agent: InstanaAgent, cache: DownloadCache) -> Object | None:
    """The source of the folder for downloads: the CR's, else that of the options; None where there is none."""
    if repository := agent.spec.agent.host.repository:
        return _host(repository)
    if cache.claim:
        return {"persistentVolumeClaim": {"claimName": cache.claim}}
    return _host(cache.folder, "DirectoryOrCreate") if cache.folder else None


def _certificate(name: str, secret: str) -> Mounted:
    source = {"secret": {"secretName": secret, "defaultMode": GROUP_READS}}
    return Mounted(name, source, _CERTIFICATES_PATH, read_only=True)


def _keys(agent: InstanaAgent, *, corrected: bool) -> Object:
    """The source of the agent's key files.

    Our own Secret has them under their names. Of the user's Secret the Go operator mounts the agent key alone;
    corrected pods get the other keys as well, where it has them, also when they are added later.
    """
    secret = names.keys_secret(agent)
    if not agent.spec.agent.keys_secret:
        return {"secret": {"secretName": secret, "defaultMode": OWNER_READS}}
    required = items([(KEY, AGENT_KEY_FILE)])
    if not corrected:
        return {"secret": {"secretName": secret, "items": required, "defaultMode": OWNER_READS}}
    others = items([(DOWNLOAD_KEY, DOWNLOAD_KEY_FILE), *CREDENTIAL_FILES.items(), (PROXY_KEY, HTTPS_PROXY)])
    sources: list[Object] = [
        {"secret": {"name": secret, "items": required}},
        {"secret": {"name": secret, "items": others, "optional": True}},
    ]
    return {"projected": {"sources": sources, "defaultMode": OWNER_READS}}


def _remote_keys(agent: InstanaAgentRemote) -> Iterator[tuple[str, str]]:
    wanted = agent.spec.agent
    given = credentials_of(wanted)
    yield KEY, AGENT_KEY_FILE
    if wanted.download_key:
        yield DOWNLOAD_KEY, DOWNLOAD_KEY_FILE
    proxied = [name for name in given if name.startswith("proxy")]
    if wanted.proxy_host:
        yield from ((name, CREDENTIAL_FILES[name]) for name in proxied)
        yield PROXY_KEY, HTTPS_PROXY
    yield from ((name, CREDENTIAL_FILES[name]) for name in given if name not in proxied)
