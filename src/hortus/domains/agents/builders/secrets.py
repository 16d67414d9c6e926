"""Secrets of an agent: configuration, keys, credentials to pull images, certificate."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping

from hortus.domains.agents.builders import names, proxy
from hortus.domains.agents.builders.backends import DOWNLOAD_KEY, KEY, backends_of
from hortus.domains.agents.builders.configuration import HTTPS_PROXY, config_files
from hortus.domains.agents.builders.facts import InstanaFacts
from hortus.domains.agents.builders.metadata import AGENT, REMOTE, common_labels, namespaced
from hortus.domains.agents.builders.names import AnyAgent
from hortus.domains.agents.types import InstanaAgentRemote, InstanaBaseAgent, InstanaTls
from hortus.engine.serving import ServingPair, values_of
from hortus.kube.objects import Object

AGENT_KEY_FILE = "INSTANA_AGENT_KEY"
DOWNLOAD_KEY_FILE = "INSTANA_DOWNLOAD_KEY"
CREDENTIAL_FILES = {
    "proxyUser": "INSTANA_AGENT_PROXY_USER",
    "proxyPassword": "INSTANA_AGENT_PROXY_PASSWORD",
    "mirrorReleaseRepoUsername": "AGENT_RELEASE_REPOSITORY_MIRROR_USERNAME",
    "mirrorReleaseRepoPassword": "AGENT_RELEASE_REPOSITORY_MIRROR_PASSWORD",
    "mirrorSharedRepoUsername": "INSTANA_SHARED_REPOSITORY_MIRROR_USERNAME",
    "mirrorSharedRepoPassword": "INSTANA_SHARED_REPOSITORY_MIRROR_PASSWORD",
}
"""Keys of a Secret with credentials, and the file or variable by which the agent knows each."""
PROXY_KEY = "httpsProxy"


def config_secret(agent: AnyAgent, facts: InstanaFacts) -> Object:
    """The Secret with the agent's configuration."""
    return _secret(agent, facts, names.config_secret(agent), config_files(agent, facts))


def keys_secret(agent: AnyAgent, facts: InstanaFacts) -> Object | None:
    """The Secret with keys and passwords of the CR; None where the user names a Secret."""
    if agent.spec.agent.keys_secret:
        return None
    return _secret(agent, facts, agent.metadata.name, {name: text.encode() for name, text in _keys(agent)})


def pull_secret(agent: AnyAgent, facts: InstanaFacts) -> Object | None:
    """The Secret to pull images with the download key, else the agent key; None where no key is known or needed."""
    wanted, known = agent.spec.agent, facts.keys_secret or {}
    key = known.get(DOWNLOAD_KEY) or known.get(KEY) or (wanted.download_key or wanted.key).encode()
    if not (key and names.pulls_by_key(agent)):
        return None
    access = base64.b64encode(b"_:" + key).decode()
    document = json.dumps({"auths": {names.PULL_REGISTRY: {"auth": access}}}, separators=(",", ":"))
    data = {".dockerconfigjson": document.encode()}
    return _secret(agent, facts, names.pull_secret(agent), data, "kubernetes.io/dockerconfigjson")


def tls_secret(agent: AnyAgent, facts: InstanaFacts) -> Object | None:
    """The Secret with the certificate of the CR; None where the CR has none or names a Secret."""
    data = _certificate(agent.spec.agent.tls)
    return _secret(agent, facts, names.tls_secret(agent), data, "kubernetes.io/tls") if data else None


def of_pair(agent: AnyAgent, facts: InstanaFacts, name: str, pair: ServingPair) -> Object:
    """The Secret that keeps a certificate with its key."""
    return _secret(agent, facts, name, values_of(pair), "kubernetes.io/tls")


def own_credentials(agent: AnyAgent) -> dict[str, bytes]:
    """Keys, passwords and certificate that are in the CR."""
    keys = {} if agent.spec.agent.keys_secret else {name: text.encode() for name, text in _keys(agent)}
    return {**keys, **_certificate(agent.spec.agent.tls)}


def mounted_certificate(agent: AnyAgent, facts: InstanaFacts) -> str:
    """The Secret with the certificate that the agent serves with; empty where it has none."""
    tls = agent.spec.agent.tls
    if tls.secret_name or (tls.certificate and tls.key):
        return names.tls_secret(agent)
    issued = facts.options.certificate is not None and names.is_certificate(facts.tls_secret)
    return names.issued_secret(agent) if issued else ""


def credentials_of(agent: InstanaBaseAgent) -> dict[str, str]:
    """The credentials of the CR that are set, by their key of a Secret, in the order of the agent's own files."""
    found = {
        "proxyUser": agent.proxy_user,
        "proxyPassword": agent.proxy_password,
        "mirrorReleaseRepoUsername": agent.agent_release_repo_mirror_username,
        "mirrorReleaseRepoPassword": agent.agent_release_repo_mirror_password,
        "mirrorSharedRepoUsername": agent.instana_shared_repo_mirror_username,
        "mirrorSharedRepoPassword": agent.instana_shared_repo_mirror_password,
    }
    return {name: text for name, text in found.items() if text}


def _keys(agent: AnyAgent) -> Iterator[tuple[str, str]]:
    wanted, mounted = agent.spec.agent, agent.spec.use_secret_mounts
    remote = isinstance(agent, InstanaAgentRemote)
    if wanted.download_key:
        yield DOWNLOAD_KEY, wanted.download_key
        if mounted:
            yield DOWNLOAD_KEY_FILE, wanted.download_key
    if mounted:
        for name, text in credentials_of(wanted).items():
            yield name if remote else CREDENTIAL_FILES[name], text
        if wanted.proxy_host:
            yield PROXY_KEY if remote else HTTPS_PROXY, proxy.quoted_url(wanted)
    for backend in backends_of(wanted):
        if backend.inline_key:
            yield backend.key_name, backend.inline_key
            if mounted:
                yield AGENT_KEY_FILE + backend.suffix, backend.inline_key


def _certificate(tls: InstanaTls) -> dict[str, bytes]:
    if tls.secret_name or not (tls.certificate and tls.key):
        return {}
    return {"tls.crt": _decoded(tls.certificate), "tls.key": _decoded(tls.key)}


def _secret(agent: AnyAgent, facts: InstanaFacts, name: str, data: Mapping[str, bytes], kind: str = "Opaque") -> Object:
    component = REMOTE if isinstance(agent, InstanaAgentRemote) else AGENT
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": namespaced(agent, name, common_labels(agent, component, facts.operator_version)),
        "type": kind,
        "data": {key: base64.b64encode(data[key]).decode() for key in sorted(data)},
    }


def _decoded(text: str) -> bytes:
    """The bytes that the CR holds as base64; a text that is none is handed on as it is."""
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return text.encode()
