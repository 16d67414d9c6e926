"""The ExtensionConfig by which Cluster API finds the hook server, and trusts it.

Its clientConfig and namespaceSelector are kept here; what else it holds is somebody else's.
"""

from __future__ import annotations

from typing import Final

from hortus.engine.serving import ServerTrust, ServingEndpoint
from hortus.kube import Client
from hortus.kube.objects import Resource

EXTENSION_CONFIGS: Final = Resource(
    "runtime.cluster.x-k8s.io", "v1alpha1", "extensionconfigs", "ExtensionConfig", namespaced=False
)
MANAGER: Final = "hortus-stacks"


def extension_trust(client: Client, *, config: str, endpoint: ServingEndpoint) -> ServerTrust:
    """The function that keeps an ExtensionConfig. An empty `config` leaves it to somebody else."""

    async def trust(bundle: bytes) -> None:
        if not config:
            return
        spec = {"clientConfig": endpoint.client_config(bundle), "namespaceSelector": {}}
        await client.apply(EXTENSION_CONFIGS, {"metadata": {"name": config}, "spec": spec}, field_manager=MANAGER)

    return trust
