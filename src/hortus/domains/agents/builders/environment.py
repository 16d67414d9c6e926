"""Variables of the agent's container.

A later layer wins over an earlier one: `agent.env`, the operator's own variables, `agent.pod.env`. There is one entry
for a name, and entries are sorted by name; a reference such as `$(NAME)` to a name that sorts later stays unexpanded,
as with the Go operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from hortus.domains.agents.builders import names
from hortus.domains.agents.builders.backends import DOWNLOAD_KEY, KEY
from hortus.domains.agents.builders.facts import PERSIST_ID
from hortus.domains.agents.builders.names import AnyAgent
from hortus.domains.agents.builders.secrets import CREDENTIAL_FILES, credentials_of
from hortus.domains.agents.types import InstanaAgent, InstanaAgentRemote, InstanaBaseAgent, InstanaZone
from hortus.kube.objects import Object

CONFIG_PATH: Final = "/opt/instana/agent/etc/instana-config-yml"
REMOTE_CONFIG_PATH: Final = "/opt/instana/agent/etc/remote-config-yml"
NAMESPACES_PATH: Final = "/opt/instana/agent/etc/namespaces"
_ID_FILE: Final = "/var/lib/instana/instana-agent-id"

Variables = dict[str, Object]
"""Variables by name."""


def text(name: str, value: str) -> Object:
    """A variable with a fixed value. API servers leave out empty values, and so does this."""
    return {"name": name, "value": value} if value else {"name": name}


def texts(values: Mapping[str, str]) -> Variables:
    return {name: text(name, value) for name, value in values.items()}


def field(name: str, path: str) -> Object:
    """A variable with the value of a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def secret_key(name: str, secret: str, key: str, *, optional: bool = False) -> Object:
    """A variable with the value of a Secret's key."""
    selector: Object = {"name": secret, "key": key}
    return {"name": name, "valueFrom": {"secretKeyRef": {**selector, "optional": True} if optional else selector}}


def by_name(variables: Iterable[Object]) -> Variables:
    """The variables by their names, of two with one name the later; a variable without a name is none."""
    found: Variables = {}
    for variable in variables:
        match variable:
            case {"name": str(name)}:
                found[name] = variable
    return found


def merged(*layers: Variables) -> list[Object]:
    """One entry for each name, that of the last layer that has it, sorted by name."""
    together: Variables = {}
    for layer in layers:
        together |= layer
    return [together[name] for name in sorted(together)]


def of_daemon_set(agent: InstanaAgent, zone: InstanaZone | None, *, persists: bool) -> list[Object]:
    """The variables of the agent on a node."""
    persistence = {PERSIST_ID: "true", "INSTANA_AGENT_ID_FILE_PATH": _ID_FILE} if persists else {}
    return merged(
        texts(agent.spec.agent.env),
        _place(agent, zone),
        _shared(agent, CONFIG_PATH),
        _of_cluster(agent),
        texts(persistence),
        by_name(agent.spec.agent.pod.env),
    )


def of_remote(agent: InstanaAgentRemote) -> list[Object]:
    """The variables of an agent for what is outside of the cluster."""
    wanted = agent.spec.agent
    place = _set({"INSTANA_AGENT_MODE": wanted.mode, "INSTANA_ZONE": agent.spec.zone.name})
    return merged(texts(wanted.env), texts(place), _shared(agent, REMOTE_CONFIG_PATH), by_name(wanted.pod.env))


def _place(agent: InstanaAgent, zone: InstanaZone | None) -> Variables:
    """Mode and zone: those of the zone are always there, also when they are empty."""
    if zone is not None:
        return texts({"INSTANA_AGENT_MODE": zone.mode, "INSTANA_ZONE": zone.name})
    return texts(_set({"INSTANA_AGENT_MODE": agent.spec.agent.mode, "INSTANA_ZONE": agent.spec.zone.name}))


def _of_cluster(agent: InstanaAgent) -> Variables:
    service_domain = f"{names.headless(agent)}.{agent.metadata.namespace}.svc"
    mesh = "true" if agent.spec.agent.service_mesh.enabled else ""
    found = {"INSTANA_KUBERNETES_CLUSTER_NAME": agent.spec.cluster.name, "ENABLE_AGENT_SOCKET": mesh}
    return {
        **texts(_set(found)),
        **texts(
            {"K8S_SERVICE_DOMAIN": service_domain, "NAMESPACES_DETAILS_PATH": f"{NAMESPACES_PATH}/namespaces.yaml"}
        ),
        "NODE_NAME": field("NODE_NAME", "spec.nodeName"),
    }


def _shared(agent: AnyAgent, config_path: str) -> Variables:
    """The variables of an agent wherever it runs."""
    wanted = agent.spec.agent
    found = texts(_set(_settings(wanted)))
    found |= texts(
        {
            "INSTANA_AGENT_ENDPOINT": wanted.endpoint_host,
            "INSTANA_AGENT_ENDPOINT_PORT": wanted.endpoint_port,
            "CONFIG_PATH": config_path,
            "ENTRYPOINT_SKIP_BACKEND_TEMPLATE_GENERATION": "true",
        }
    )
    if not agent.spec.use_secret_mounts:
        secret = names.keys_secret(agent)
        found |= {
            CREDENTIAL_FILES[key]: text(CREDENTIAL_FILES[key], value) for key, value in credentials_of(wanted).items()
        }
        found["INSTANA_AGENT_KEY"] = secret_key("INSTANA_AGENT_KEY", secret, KEY)
        found["INSTANA_DOWNLOAD_KEY"] = secret_key("INSTANA_DOWNLOAD_KEY", secret, DOWNLOAD_KEY, optional=True)
    return {
        **found,
        "INSTANA_AGENT_POD_NAME": field("INSTANA_AGENT_POD_NAME", "metadata.name"),
        "POD_IP": field("POD_IP", "status.podIP"),
    }


def _settings(wanted: InstanaBaseAgent) -> dict[str, str]:
    """The variables that are set where the CR has a value for them."""
    return {
        "INSTANA_MVN_REPOSITORY_URL": wanted.instana_mvn_repo_url,
        "INSTANA_MVN_REPOSITORY_FEATURES_PATH": wanted.instana_mvn_repo_features_path,
        "INSTANA_MVN_REPOSITORY_SHARED_PATH": wanted.instana_mvn_repo_shared_path,
        "AGENT_RELEASE_REPOSITORY_MIRROR_URL": wanted.agent_release_repo_mirror_url,
        "INSTANA_SHARED_REPOSITORY_MIRROR_URL": wanted.instana_shared_repo_mirror_url,
        "INSTANA_AGENT_PROXY_HOST": wanted.proxy_host,
        "INSTANA_AGENT_PROXY_PORT": wanted.proxy_port,
        "INSTANA_AGENT_PROXY_PROTOCOL": wanted.proxy_protocol,
        "INSTANA_AGENT_PROXY_USE_DNS": "true" if wanted.proxy_use_dns else "",
        "INSTANA_AGENT_HTTP_LISTEN": wanted.listen_address,
        "INSTANA_KUBERNETES_REDACT_SECRETS": wanted.redact_kubernetes_secrets,
    }


def _set(values: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}
