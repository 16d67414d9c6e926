"""The certificate that Hortus issues to an agent: read where it is kept, made and renewed where it is due.

What is made here is written with the other objects of the agent, and is nowhere kept besides.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from hortus.domains.agents.builders import InstanaFacts, authority_secret, issued_secret, own_certificate_names
from hortus.domains.agents.types import InstanaAgent, InstanaAgentRemote
from hortus.engine.serving import KeptPairs, ServingPair, pair_from, renewed, values_of

ReadSecret = Callable[[str], Awaitable[Mapping[str, bytes] | None]]
"""The values of a Secret next to the agent; None where there is none."""
_FILES = ("tls.crt", "tls.key")


async def with_own_certificate(
    facts: InstanaFacts, agent: InstanaAgent | InstanaAgentRemote, read: ReadSecret, live: ReadSecret, *, now: float
) -> InstanaFacts:
    """The facts with the certificate that options have us issue. `read` may be behind, `live` not. Raises KubeError."""
    names = own_certificate_names(agent, facts.options)
    if names is None:
        return facts
    kept = await _kept(agent, read)
    found = renewed(kept, names, now=now)
    if KeptPairs(*found) != kept:
        # A cache that is behind, and a renewed authority would be replaced before anybody trusts it.
        found = renewed(await _kept(agent, live), names, now=now)
    facts = facts._replace(own_certificate=found)
    tls = agent.spec.agent.tls
    if tls.secret_name or (tls.certificate and tls.key):
        return facts
    # Without the authorities: agents do not restart for what only their clients read.
    values = values_of(found.serving)
    return facts._replace(tls_secret={file: values[file] for file in _FILES})


async def _kept(agent: InstanaAgent | InstanaAgentRemote, read: ReadSecret) -> KeptPairs:
    async def pair(name: str) -> ServingPair | None:
        values = await read(name)
        return pair_from(values) if values is not None else None

    return KeptPairs(await pair(authority_secret(agent)), await pair(issued_secret(agent)))


__all__ = ["ReadSecret", "with_own_certificate"]
