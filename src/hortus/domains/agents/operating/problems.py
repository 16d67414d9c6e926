"""The parts of a spec that lead to less than it asks for, which the Go operator passes over in silence.

The objects stay those that it builds; the condition ConfigurationComplete and an event say what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from hortus.domains.agents.builders import InstanaFacts, cluster_names, missing_certificate
from hortus.domains.agents.builders.pods import AGENT_PORT
from hortus.domains.agents.defaults import defaulted
from hortus.domains.agents.operating.shared_nodes import agents_on_same_nodes, zones_on_same_nodes
from hortus.domains.agents.types import InstanaAgent, InstanaAgentRemote, InstanaBaseAgent

KEY_MISSING: Final = "KeyMissing"
NAME_MISSING: Final = "ClusterNameMissing"
SECRET_MISSING: Final = "SecretMissing"  # noqa: S105 - a reason
KEY_NOT_IN_SECRET: Final = "KeyNotInSecret"  # noqa: S105 - a reason
PATH_MISSING: Final = "MountPathMissing"
NAME_SHARED: Final = "NameShared"
ZONE_TWICE: Final = "ZoneTwice"
ZONES_OVERLAP: Final = "ZonesOverlap"
TWO_AGENTS: Final = "TwoAgents"
NOT_ISSUED: Final = "CertificateNotIssued"
_NAMED: Final = 5
"""Pairs of zones, or agents, that a message names."""

Exists = Callable[[str], bool]
"""Reports whether the namespace of the agent has a Secret of that name."""


def problems_of_agent(
    agent: InstanaAgent, *, exists: Exists, keys: Mapping[str, bytes] | None, others: Collection[InstanaAgent]
) -> dict[str, str]:
    """Messages by reason. `keys` is the data of the keysSecret, `others` are the other agents of the cluster."""
    spec = agent.spec
    found = _problems_of(spec.agent, exists=exists, keys=keys)
    if spec.zones and not spec.cluster.name:
        found[NAME_MISSING] = "no agent is deployed: set spec.cluster.name, which zones need"
    elif not (spec.cluster.name or spec.zone.name):
        found[NAME_MISSING] = "no agent is deployed: set spec.cluster.name or spec.zone.name"
    found |= _problems_of_zones(agent)
    authority = spec.k8s_sensor.rest_client.ca
    if authority.secret_name and not authority.mount_path:
        found[PATH_MISSING] = (
            "spec.k8s_sensor.restClient.ca has a secretName and no mountPath: it is not mounted; set mountPath"
        )
    for field, name in (
        ("restClient.ca", authority.secret_name),
        ("etcd.ca", spec.k8s_sensor.etcd.ca.secret_name),
    ):
        _require(found, exists, f"spec.k8s_sensor.{field}.secretName", name)
    return found | _problems_with_others(agent, others)


def _problems_of_zones(agent: InstanaAgent) -> dict[str, str]:
    found: dict[str, str] = {}
    names = [zone.name for zone in agent.spec.zones]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        found[ZONE_TWICE] = f"spec.zones names {', '.join(twice)} more than once: the last of them counts; rename one"
    if pairs := zones_on_same_nodes(agent):
        named = _some([f"{first} and {second}" for first, second in pairs], "; ")
        found[ZONES_OVERLAP] = (
            f"spec.zones puts two agents on nodes that are of two zones, and both want port {AGENT_PORT}: "
            f"{named}; give each zone an affinity to nodes of its own"
        )
    return found


def _problems_with_others(agent: InstanaAgent, others: Collection[InstanaAgent]) -> dict[str, str]:
    found: dict[str, str] = {}
    if namesakes := sorted(_wanting_same_roles(agent, others)):
        found[NAME_SHARED] = (
            f"InstanaAgents {_some(namesakes)} want a ClusterRole of the same name too, out of "
            f"{' and '.join(cluster_names(agent))}; the first has it: rename one, or its spec.serviceAccount.name"
        )
    if sharing := agents_on_same_nodes(agent, others):
        found[TWO_AGENTS] = (
            f"nodes of this InstanaAgent get a second agent, and both want port {AGENT_PORT}, from {_some(sharing)}: "
            "delete one of them, or give each nodes of its own by spec.agent.pod.nodeSelector"
        )
    return found


def _wanting_same_roles(agent: InstanaAgent, others: Collection[InstanaAgent]) -> Iterator[str]:
    """The agents of other namespaces with a cluster-wide name of this one; those of its own may share an account."""
    names = frozenset(cluster_names(agent))
    for other in others:
        metadata = other.metadata
        if metadata.namespace != agent.metadata.namespace and not names.isdisjoint(cluster_names(defaulted(other))):
            yield f"{metadata.namespace}/{metadata.name}"


def _some(texts: Sequence[str], separator: str = ", ") -> str:
    more = len(texts) - _NAMED
    return separator.join(texts[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def problems_of_remote(
    agent: InstanaAgentRemote, *, exists: Exists, keys: Mapping[str, bytes] | None
) -> dict[str, str]:
    """Messages by reason."""
    found = _problems_of(agent.spec.agent, exists=exists, keys=keys)
    if not agent.spec.zone.name:
        found[NAME_MISSING] = "no agent is deployed: set spec.zone.name"
    return found


def problems_of_certificate(agent: InstanaAgent | InstanaAgentRemote, facts: InstanaFacts) -> dict[str, str]:
    """Message by reason, where the cluster has not issued a certificate that options ask for."""
    message = missing_certificate(agent, facts)
    return {NOT_ISSUED: message} if message else {}


def _problems_of(agent: InstanaBaseAgent, *, exists: Exists, keys: Mapping[str, bytes] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    if not (agent.key or agent.keys_secret):
        found[KEY_MISSING] = "no agent is deployed: set spec.agent.keysSecret or spec.agent.key"
    if agent.keys_secret and not _require(found, exists, "spec.agent.keysSecret", agent.keys_secret):
        lacking = [name for name in _key_names(agent) if not (keys or {}).get(name)]
        if lacking:
            found[KEY_NOT_IN_SECRET] = (
                f"spec.agent.keysSecret: Secret {agent.keys_secret} has no {', '.join(lacking)}: add it to the Secret"
            )
    _require(found, exists, "spec.agent.tls.secretName", agent.tls.secret_name)
    return found


def _key_names(agent: InstanaBaseAgent) -> Iterable[str]:
    yield "key"
    for number, backend in enumerate(agent.additional_backends, start=1):
        if not backend.key:
            yield f"key-{number}"


def _require(found: dict[str, str], exists: Exists, field: str, name: str) -> bool:
    """Note a Secret that is named and not there; returns whether it was noted."""
    if not name or exists(name):
        return False
    before = found.get(SECRET_MISSING)
    text = f"{field}: there is no Secret {name}: create it"
    found[SECRET_MISSING] = f"{before}; {text}" if before else text
    return True
