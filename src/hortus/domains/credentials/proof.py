"""A kubeconfig is proven before it replaces another one: it is read as data, and its cluster must answer to it.

Law of the house: no credential is dropped for one that was never seen to work.
"""

from __future__ import annotations

from typing import Protocol

from hortus.kube import Client, ConnectionSettings
from hortus.kube.dialing import Network
from hortus.kube.errors import Forbidden, KubeError, TransportError, Unauthorized
from hortus.kube.kubeconfig import KubeconfigError, Trust, from_untrusted
from hortus.kube.objects import Resource

_LONGEST_ANSWER = 1 << 20
"""Bytes; one namespace is asked for."""
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


class ProofFailed(Exception):
    """The kubeconfig does not work; the text is fit for a condition and holds no credential."""

    def __init__(self, text: str, *, unreachable: bool = False) -> None:
        super().__init__(text)
        self.unreachable = unreachable
        """Whether the cluster did not answer at all, rather than refuse."""


class Proof(Protocol):
    async def prove(self, kubeconfig: bytes, *, shoot: str) -> None:
        """Return when `kubeconfig` works. Raises ProofFailed."""


class ClusterProof:
    """Asks the cluster itself: the credential must be allowed to list namespaces, as an admin's is."""

    def __init__(self, *, timeout: float, plain_http: bool = False, deny: tuple[Network, ...] = ()) -> None:
        """`timeout` in seconds, for connecting and answering together; `deny` as of `ConnectionSettings`."""
        self._trust = Trust(plain_http=plain_http)
        self._settings = ConnectionSettings(
            connections=1, timeout=timeout, connect_timeout=timeout, max_response=_LONGEST_ANSWER, deny=deny
        )

    async def prove(self, kubeconfig: bytes, *, shoot: str) -> None:
        try:
            access = from_untrusted(kubeconfig, trust=self._trust, origin=f"kubeconfig of shoot {shoot}").access()
            client = Client(access, settings=self._settings)
        except (KubeconfigError, ValueError) as error:
            raise _unusable(error) from error
        async with client:
            try:
                await client.request("GET", _NAMESPACES.path(), query={"limit": "1"})
            except (KubeError, ValueError) as error:
                raise _failure(error, client.host) from error


class NoProof:
    """For an operator whose controller cannot reach the clusters: only the document itself is checked."""

    def __init__(self, *, plain_http: bool = False) -> None:
        self._trust = Trust(plain_http=plain_http)

    async def prove(self, kubeconfig: bytes, *, shoot: str) -> None:
        try:
            from_untrusted(kubeconfig, trust=self._trust, origin=f"kubeconfig of shoot {shoot}").access()
        except KubeconfigError as error:
            raise _unusable(error) from error


def _unusable(error: Exception) -> ProofFailed:
    return ProofFailed(f"the kubeconfig is not usable: {error} (garden operator: see what issues kubeconfigs)")


def _failure(error: Exception, host: str) -> ProofFailed:
    """Why the cluster behind a well-formed kubeconfig did not serve us."""
    match error:
        case Unauthorized() | Forbidden():
            return ProofFailed(
                f"the kubeconfig is refused by {host}: {error} (garden operator: its credential or the cluster's "
                "client CA is wrong)"
            )
        case TransportError(permanent=True):
            # Keys that do not fit or a CA that does not verify: no cluster, awake or asleep, would make it work.
            return _unusable(error)
        case _:
            return ProofFailed(
                f"the kubeconfig could not be tried against its cluster: {error} (cluster owner: see the shoot's "
                "conditions; tried again)",
                unreachable=True,
            )
