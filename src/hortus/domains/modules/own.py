"""The one cluster of the in-cluster form, in which Kyma, catalog, Manifests and modules lie.

There is no kubeconfig Secret, so there is nothing to find, to rotate or to lose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hortus.engine.applysets import DiscoveredKinds
from hortus.engine.flags import FlagError
from hortus.engine.remote import KubeconfigRef, MemberIdentity, RemoteState
from hortus.engine.remote.states import CONNECTED
from hortus.kube import Client

FLAG: Final = "in-kcp-mode"
"""The flag of Kyma's lifecycle-manager, up to version 1.2."""


class OwnCluster:
    """The cluster of the process, in the place of those of Kymas."""

    def __init__(self, client: Client) -> None:
        """`client` has the permissions of the namespace of modules."""
        self._client = client
        self._kinds = DiscoveredKinds(client)

    def place(self, kyma: str, namespace: str) -> KubeconfigRef:
        return KubeconfigRef(namespace, "", "")

    async def permit(self, place: KubeconfigRef) -> None:
        """Everything is permitted that the client may do."""

    def client(self, place: KubeconfigRef) -> Client:
        return self._client

    def kinds(self, place: KubeconfigRef) -> DiscoveredKinds:
        return self._kinds

    def state(self, place: KubeconfigRef) -> RemoteState:
        return CONNECTED

    def identity(self, place: KubeconfigRef) -> MemberIdentity:
        return MemberIdentity()  # its Manifests never outlive it


def check(values: Mapping[str, Any]) -> None:
    """Raises FlagError for choices that the in-cluster form excludes."""
    if values[FLAG]:
        return
    shared, watched = values["sync-namespace"], values["watch-namespace"]
    if watched not in ("", shared):
        raise FlagError(
            f"flag --{FLAG}=false needs --watch-namespace={shared}, the namespace of --sync-namespace; it is {watched}"
        )
    if values["skr-watcher-image-tag"]:
        raise FlagError(f"flag --{FLAG}=false excludes --skr-watcher-image-tag: a cluster for itself has no agent")
