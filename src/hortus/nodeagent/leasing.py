"""The Lease by which the control plane sees that the agent lives. gardenlet reads it for EveryNodeReady."""

from __future__ import annotations

import structlog

from hortus.kube import Client, Clock, Object
from hortus.kube.errors import AlreadyExists, KubeError, NotFound
from hortus.kube.objects import format_micro_time
from hortus.nodeagent.cluster import LEASES, NAMESPACE, NodeView, SeenNode

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

DURATION = 40
"""Seconds after which the agent counts as gone."""
EVERY = DURATION / 4


def lease_of(node: SeenNode, now: float) -> Object:
    """The Lease of a node's agent, renewed at `now`."""
    name = f"gardener-node-agent-{node.name}"
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.metadata.uid, "controller": True}
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "ownerReferences": [owner]},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": DURATION, "renewTime": format_micro_time(now)},
    }


class NodeLease:
    """Renews the Lease as long as there is a Node. It owns the Lease, and reads no other."""

    def __init__(self, client: Client, view: NodeView, clock: Clock) -> None:
        self._client = client
        self._view = view
        self._clock = clock

    async def run(self) -> None:
        await self._view.synced()
        while True:
            node = self._view.node
            if node is not None:
                await self._renew(node)
            await self._clock.sleep(EVERY)

    async def _renew(self, node: SeenNode) -> None:
        lease = lease_of(node, self._clock.now())
        metadata = lease["metadata"]
        patch = {"metadata": {"ownerReferences": metadata["ownerReferences"]}, "spec": lease["spec"]}
        try:
            try:
                await self._client.patch(LEASES, metadata["name"], patch, NAMESPACE)
            except NotFound:
                await self._client.create(LEASES, lease)
        except AlreadyExists:
            # Made by somebody in between; the next renewal finds it.
            return
        except KubeError as error:
            _log.warning("the lease was not renewed", error=str(error))
