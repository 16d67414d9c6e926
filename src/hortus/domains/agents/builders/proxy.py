"""The proxy between agent and backend, as URLs and as lines of the agent's configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from hortus.domains.agents.types import InstanaBaseAgent

_PORT: Final = "80"
_USERINFO: Final = "$&+,;="
"""Characters that Go's net/url leaves in user names and passwords, besides letters, digits and `-._~`."""


def raw_url(agent: InstanaBaseAgent) -> str:
    """The URL of the proxy with user name and password as they are; both or neither."""
    return _url(agent, agent.proxy_user, agent.proxy_password)


def quoted_url(agent: InstanaBaseAgent) -> str:
    """The URL of the proxy with user name and password percent-encoded; both or neither."""
    return _url(agent, quote(agent.proxy_user, safe=_USERINFO), quote(agent.proxy_password, safe=_USERINFO))


def _url(agent: InstanaBaseAgent, user: str, password: str) -> str:
    credentials = f"{user}:{password}@" if user and password else ""
    return f"{agent.proxy_protocol or 'http'}://{credentials}{agent.proxy_host}:{agent.proxy_port or _PORT}"


def lines(agent: InstanaBaseAgent) -> Iterator[str]:
    """The lines of a backend's file. DNS and credentials stand there also without a host."""
    if agent.proxy_host:
        yield f"proxy.type={agent.proxy_protocol or 'HTTP'}"
        yield f"proxy.host={agent.proxy_host}"
        yield f"proxy.port={agent.proxy_port or _PORT}"
    if agent.proxy_use_dns:
        yield "proxy.dns=true"
    if agent.proxy_user and agent.proxy_password:
        yield f"proxy.user={agent.proxy_user}"
        yield f"proxy.password={agent.proxy_password}"
