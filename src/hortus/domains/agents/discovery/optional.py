"""The facts that options of an agent ask for, read from a cluster of the fleet. Without options there is no request."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final

import msgspec

from hortus.domains.agents.builders import InstanaFacts, issued_secret, options_of
from hortus.domains.agents.discovery.facts import CONFIG_MAPS, SECRETS
from hortus.domains.agents.discovery.making import with_own_certificate
from hortus.domains.agents.options import CONFIG_KEY, CONFIG_LABEL, NO_OPTIONS, InstanaOptions
from hortus.domains.agents.types import InstanaAgent
from hortus.engine.typed import metadata_of
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Resource, shaped

_NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)
_LABELLED: Final = f"{CONFIG_LABEL}=true"


class _Data(msgspec.Struct):
    data: dict[str, str] | None = None


async def with_options(
    facts: InstanaFacts, client: Client, agent: InstanaAgent, secrets: Mapping[str, Mapping[str, bytes]], *, now: float
) -> InstanaFacts:
    """The facts with those of the agent's options; `secrets` are the values that are distributed to the cluster.

    Raises KubeError, UnusableOptions.
    """
    options = options_of(agent)
    if options == NO_OPTIONS:
        return facts
    found = facts._replace(
        options=options,
        node_zones=await _zones(client, options.zone_label),
        config_sources=await _configurations(client, agent.metadata.namespace) if options.merge_configurations else {},
        tls_secret=await _certificate(client, agent, options, secrets),
    )

    async def live(name: str) -> Mapping[str, bytes] | None:
        return await _values(client, name, agent.metadata.namespace)

    return await with_own_certificate(found, agent, live, live, now=now)


async def _zones(client: Client, label: str) -> frozenset[str]:
    """The values of a label on all nodes, an empty one where a node lacks it."""
    if not label:
        return frozenset()
    nodes = (await client.list(_NODES, metadata_only=True)).items
    return frozenset(metadata_of(node).labels.get(label, "") for node in nodes)


async def _configurations(client: Client, namespace: str) -> Mapping[str, str]:
    """The labelled ConfigMaps of a namespace that hold a configuration."""
    found = {}
    for obj in (await client.list(CONFIG_MAPS, namespace, labels=_LABELLED)).items:
        data = (shaped(obj, _Data) or _Data()).data or {}
        if CONFIG_KEY in data:
            found[metadata_of(obj).name] = data[CONFIG_KEY]
    return found


async def _certificate(
    client: Client, agent: InstanaAgent, options: InstanaOptions, secrets: Mapping[str, Mapping[str, bytes]]
) -> Mapping[str, bytes] | None:
    tls = agent.spec.agent.tls
    name = tls.secret_name if options.restart_on_change else ""
    if options.certificate is not None and not (tls.secret_name or (tls.certificate and tls.key)):
        name = issued_secret(agent)
    if not name or name in secrets:
        return secrets.get(name)
    return await _values(client, name, agent.metadata.namespace)


async def _values(client: Client, name: str, namespace: str) -> Mapping[str, bytes] | None:
    """The values of a Secret; None where it is not there or they cannot be read."""
    try:
        found = shaped(await client.get(SECRETS, name, namespace), _Data)
    except NotFound:
        return None
    try:
        values = (found.data if found is not None else None) or {}
        return {key: base64.b64decode(value, validate=True) for key, value in values.items()}
    except (binascii.Error, ValueError):
        return None
