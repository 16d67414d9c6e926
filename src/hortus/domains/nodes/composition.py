"""Puts the controller together for a process that has a `Manager`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hortus.domains.nodes.changes import NODE_CHANGE
from hortus.domains.nodes.controller import NodeRolloutController
from hortus.domains.nodes.members import NodeMembers
from hortus.domains.nodes.settings import NodeSettings
from hortus.engine import EventRecorder, Manager, Watch, spec_or_metadata_changed, wire
from hortus.engine.remote import RemotePool
from hortus.engine.rollouts import RolloutGate
from hortus.kube import Client
from hortus.kube.objects import ObjectKey

NAME: Final = "node-rollout-controller"
"""The controller's name in metrics and logs."""


def add_controller(
    manager: Manager,
    *,
    client: Client,
    pool: RemotePool,
    gate: RolloutGate,
    namespace: str,
    settings: NodeSettings,
) -> None:
    """Add it to `manager`. `client` is the management cluster, with ClusterProfiles in `namespace`."""
    events = EventRecorder(client, component=NAME, clock=manager.clock)
    wiring = wire(manager, NodeRolloutController, client=client, events=events, namespace=namespace)
    profiles = wiring.cache.raw
    members = NodeMembers(pool, profiles, holds=manager.holds)
    controller = NodeRolloutController(wiring, members, gate, settings)

    def keys_of(cluster: str) -> Iterable[ObjectKey]:
        return (ObjectKey(namespace, cluster),)

    manager.controller(
        NAME,
        controller,
        sources=[
            *members.sources,
            gate.source(NODE_CHANGE, keys_of=keys_of, waiting=controller.waiting),
            Watch(profiles, when=spec_or_metadata_changed),
        ],
        workers=settings.workers,
    )
    manager.on_handover(members.reconsider)
