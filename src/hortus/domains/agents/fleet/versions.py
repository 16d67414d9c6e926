"""The version of an AgentConfiguration: the one thing that rollouts spread.

It is a checksum of all that concerns every cluster: template, expression, options, the values of distributed Secrets,
and the version of the operator, with which the built objects may change. What differs between clusters, and who gets
the agent, is no part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Final

import msgspec
import orjson

from hortus.domains.agents.fleet.selection import agent_of
from hortus.domains.agents.options import OPTIONS_ANNOTATION
from hortus.domains.agents.types import AgentConfiguration, InstanaAgentSpec

_LENGTH: Final = 12
"""Digits of a version: 48 bits keep apart the versions that one configuration ever has."""


class _Reference(msgspec.Struct, frozen=True):
    name: str = ""


def secret_names(configuration: AgentConfiguration) -> tuple[str, ...]:
    """Names of the Secrets that are distributed to the clusters: those of the template without the local ones."""
    found = dict.fromkeys(_named(msgspec.convert(configuration.spec.template, InstanaAgentSpec)))
    return tuple(name for name in found if name not in configuration.spec.local_secrets)


def _named(spec: InstanaAgentSpec) -> Iterator[str]:
    agent, sensor = spec.agent, spec.k8s_sensor
    pulls = msgspec.convert(agent.image.pull_secrets or (), tuple[_Reference, ...])
    named = (
        agent.keys_secret,
        agent.tls.secret_name,
        sensor.etcd.ca.secret_name,
        sensor.rest_client.ca.secret_name,
        *(one.name for one in pulls),
    )
    yield from filter(None, named)


def version_of(
    configuration: AgentConfiguration, checksums: Mapping[str, Mapping[str, str]], *, operator_version: str
) -> str:
    """The version; `checksums` are those of the values of each Secret that is distributed, by its name and key."""
    spec = configuration.spec
    parts = [spec.template, spec.per_cluster, list(agent_of(configuration)), checksums, operator_version]
    if OPTIONS_ANNOTATION in configuration.metadata.annotations:
        # Not an empty part for all others: their version, and with it their clusters, would change for nothing.
        parts.append(configuration.metadata.annotations[OPTIONS_ANNOTATION])
    text = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)
    return sha256(text).hexdigest()[:_LENGTH]


def missing(names: Sequence[str], known: Mapping[str, object]) -> list[str]:
    """The Secrets that are to be distributed and do not exist."""
    return [name for name in names if name not in known]
