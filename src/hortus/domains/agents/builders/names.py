"""Names of the objects of an agent and of the Secrets that its pods use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hortus.domains.agents.types import InstanaAgent, InstanaAgentRemote
from hortus.kube.objects import Object

PULL_REGISTRY: Final = "containers.instana.io"
"""The registry that takes agent keys as passwords; the CRD names it at spec.agent.image.pullSecrets."""
_PAIR: Final = ("tls.crt", "tls.key")
_RESERVED: Final = "system:"
REMOTE_ACCOUNT: Final = "instana-agent-remote"

AnyAgent = InstanaAgent | InstanaAgentRemote


def base(agent: AnyAgent) -> str:
    """The name that config Secret, pull Secret and workload of an agent begin with."""
    name = agent.metadata.name
    return f"instana-agent-r-{name}" if isinstance(agent, InstanaAgentRemote) else name


def sensor(agent: InstanaAgent) -> str:
    """Name of the objects of the k8sensor."""
    return f"{agent.metadata.name}-k8sensor"


def config_secret(agent: AnyAgent) -> str:
    return f"{base(agent)}-config"


def keys_secret(agent: AnyAgent) -> str:
    """The Secret with the keys: the user's, else our own."""
    return agent.spec.agent.keys_secret or agent.metadata.name


def tls_secret(agent: AnyAgent) -> str:
    """The Secret with the agent's certificate: the user's, else our own."""
    return agent.spec.agent.tls.secret_name or f"{agent.metadata.name}-tls"


def issued_secret(agent: AnyAgent) -> str:
    """The Secret with the certificate that options ask for."""
    return f"{agent.metadata.name}-certificate"


def authority_secret(agent: AnyAgent) -> str:
    """The Secret with our own authority for that certificate. No pod mounts it."""
    return f"{agent.metadata.name}-certificate-authority"


def is_certificate(data: Mapping[str, bytes] | None) -> bool:
    """Reports whether a Secret has a certificate and its key."""
    return data is not None and all(data.get(key) for key in _PAIR)


def namespaces_map(agent: InstanaAgent) -> str:
    return f"{agent.metadata.name}-namespaces"


def headless(agent: InstanaAgent) -> str:
    return f"{agent.metadata.name}-headless"


def account(agent: InstanaAgent) -> str:
    """The ServiceAccount of the agent's pods, which names the agent's ClusterRole too."""
    wanted = agent.spec.service_account
    return wanted.name or (agent.metadata.name if wanted.create else "default")


def cluster_names(agent: InstanaAgent) -> tuple[str, str]:
    """The names of the ClusterRoles and their bindings."""
    return account(agent), sensor(agent)


def reserved_name(agent: InstanaAgent) -> str:
    """The reason for which the names of an agent may not be used; "" for none."""
    name = account(agent)
    if not name.startswith(_RESERVED):
        return ""
    return (
        f"spec.serviceAccount.name is {name!r}, which names a ClusterRole too: names that begin with {_RESERVED} are "
        "Kubernetes' own; choose another"
    )


def pull_secret(agent: AnyAgent) -> str:
    """The Secret that is made to pull from the registry that takes agent keys."""
    return f"{base(agent)}-containers-instana-io"


def pulls_by_key(agent: AnyAgent) -> bool:
    """Reports whether images are pulled with a Secret that is made of the agent key."""
    image = agent.spec.agent.image
    return image.pull_secrets is None and image.name.startswith(PULL_REGISTRY)


def pull_secrets(agent: AnyAgent) -> list[Object]:
    """imagePullSecrets of all pods. The image of the agent decides for those of the k8sensor too."""
    if pulls_by_key(agent):
        return [{"name": pull_secret(agent)}]
    return list(agent.spec.agent.image.pull_secrets or ())
