"""Proof of a kubeconfig before it replaces another one: it is read as data, and its cluster must answer to it.

No credential is dropped for one that was never seen to work.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from hortus.kube import Client, ConnectionSettings
from hortus.kube.dialing import Network
from hortus.kube.errors import Forbidden, KubeError, TransportError, Unauthorized
from hortus.kube.kubeconfig import KubeconfigError, Trust, from_untrusted
from hortus.kube.objects import Resource

_SHORT_ANSWER = 1 << 20
"""Bytes; one namespace is asked for."""
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


class ProofFailed(Exception):
    """The kubeconfig does not work; the text is fit for a condition and holds no credential."""

    def __init__(self, text: str, *, unreachable: bool = False) -> None:
        super().__init__(text)
        self.unreachable = unreachable
        """True when the cluster did not answer at all, rather than refuse."""


class Advice(NamedTuple):
    """The owner of the next step and what to do, for each way in which a kubeconfig fails; ends its message."""

    unusable: str
    refused: str
    unreachable: str


class KubeconfigProof(Protocol):
    async def prove(self, kubeconfig: bytes, *, origin: str) -> None:
        """Return when `kubeconfig`, named `origin` in messages, works. Raises ProofFailed."""


class TrialClients:
    """Clients for kubeconfigs that are not proven yet: untrusted data, one connection, bounded answers."""

    def __init__(
        self,
        *,
        timeout: float,
        trust: Trust | None = None,
        deny: tuple[Network, ...] = (),
        longest_answer: int = _SHORT_ANSWER,
    ) -> None:
        """`timeout` in seconds, for connecting and answering together; `deny` as of `ConnectionSettings`."""
        self._trust = trust
        self._settings = ConnectionSettings(
            connections=1, timeout=timeout, connect_timeout=timeout, max_response=longest_answer, deny=deny
        )

    def open(self, kubeconfig: bytes, *, origin: str) -> Client:
        """A client as the kubeconfig's owner will be one; the caller closes it. Raises KubeconfigError, ValueError."""
        access = from_untrusted(kubeconfig, trust=self._trust, origin=origin).access()
        return Client(access, settings=self._settings)


class ClusterProof:
    """Asks the cluster itself: the credential must be allowed to list namespaces, as an admin's is."""

    def __init__(self, clients: TrialClients, *, advice: Advice) -> None:
        self._clients = clients
        self._advice = advice

    async def prove(self, kubeconfig: bytes, *, origin: str) -> None:
        try:
            client = self._clients.open(kubeconfig, origin=origin)
        except (KubeconfigError, ValueError) as error:
            raise _unusable(error, self._advice) from error
        async with client:
            try:
                await client.request("GET", _NAMESPACES.path(), query={"limit": "1"})
            except (KubeError, ValueError) as error:
                raise self._failure(error, client.host) from error

    def _failure(self, error: Exception, host: str) -> ProofFailed:
        """The failure of a well-formed kubeconfig whose cluster did not serve it."""
        match error:
            case Unauthorized() | Forbidden():
                return ProofFailed(f"the kubeconfig is refused by {host}: {error} ({self._advice.refused})")
            case TransportError(permanent=True):
                # Keys that do not fit or a CA that does not verify: no cluster, awake or asleep, would make it work.
                return _unusable(error, self._advice)
            case _:
                return ProofFailed(
                    f"the kubeconfig could not be tried against its cluster: {error} ({self._advice.unreachable})",
                    unreachable=True,
                )


class DocumentProof:
    """Checks the document alone, for an operator whose controller cannot reach the clusters."""

    def __init__(self, *, trust: Trust | None = None, advice: Advice) -> None:
        self._trust = trust
        self._advice = advice

    async def prove(self, kubeconfig: bytes, *, origin: str) -> None:
        try:
            from_untrusted(kubeconfig, trust=self._trust, origin=origin).access()
        except KubeconfigError as error:
            raise _unusable(error, self._advice) from error


def _unusable(error: Exception, advice: Advice) -> ProofFailed:
    return ProofFailed(f"the kubeconfig is not usable: {error} ({advice.unusable})")
