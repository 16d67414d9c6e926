"""Backends: the main one and the additional ones, each with its suffix and its key."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Final, NamedTuple

from hortus.domains.agents.types import InstanaBaseAgent

KEY: Final = "key"
DOWNLOAD_KEY: Final = "downloadKey"


class AgentBackend(NamedTuple):
    """A place that the agent reports to."""

    suffix: str
    """Empty for the main backend, `-1` for the first additional one."""
    host: str
    port: str
    inline_key: str
    """The key in the CR; empty where it has none."""

    @property
    def key_name(self) -> str:
        """Key of a Secret that holds the agent key of this backend."""
        return KEY + self.suffix

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def key(self, secret: Mapping[str, bytes] | None) -> bytes:
        """The agent key: that of the Secret, else that of the CR; empty where there is neither."""
        found = (secret or {}).get(self.key_name)
        return self.inline_key.encode() if found is None else found

    def checksum(self, agent: InstanaBaseAgent, secret: Mapping[str, bytes] | None) -> str:
        """The checksum of the k8sensor's pods. The key of the CR does not count where a Secret is named."""
        key = (secret or {}).get(self.key_name, b"") if agent.keys_secret else self.inline_key.encode()
        return sha256(f"{self.host}{self.port}".encode() + key).hexdigest()


def backends_of(agent: InstanaBaseAgent) -> tuple[AgentBackend, ...]:
    """The backends in their order, the main one first."""
    return (
        AgentBackend("", agent.endpoint_host, agent.endpoint_port, agent.key),
        *(
            AgentBackend(f"-{number}", each.endpoint_host, each.endpoint_port, each.key)
            for number, each in enumerate(agent.additional_backends, start=1)
        ),
    )
