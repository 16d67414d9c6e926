"""Puts the controllers of rollouts together for a process that has a `Manager`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from hortus.domains.inventory.types import CLUSTER_PROFILES
from hortus.domains.rollouts.controller import MANAGER, RolloutController
from hortus.domains.rollouts.executing import ObjectSetter
from hortus.domains.rollouts.fleet import FleetClusters
from hortus.domains.rollouts.installing import ChangeKindInstaller
from hortus.domains.rollouts.kindset import SYNC_TIME, ChangeKindController, KindSet
from hortus.domains.rollouts.metrics import RolloutMetrics
from hortus.domains.rollouts.order import RolloutOrder
from hortus.domains.rollouts.policies import PolicyController
from hortus.domains.rollouts.slices import SliceRecord
from hortus.domains.rollouts.starting import RolloutStarter
from hortus.engine import (
    Change,
    EventRecorder,
    Manager,
    Trigger,
    TypedCache,
    Watch,
    read,
    spec_or_metadata_changed,
    wire,
    without_managed_fields,
)
from hortus.engine.rollouts import readable
from hortus.engine.rollouts.types import PLACEMENT_DECISIONS, ROLLOUT_POLICIES, ChangeKind, Rollout, RolloutPolicy
from hortus.engine.sources import to_owner
from hortus.kube import Client
from hortus.kube.objects import Object, ObjectKey

NAME = "rollout-controller"
"""The controller's name in metrics, logs and events."""
INSTALLER = "change-kinds"
STARTER, KINDS, POLICIES = "rollout-starter", "change-kind-controller", "rollout-policy-controller"


def add_controllers(
    manager: Manager,
    client: Client,
    *,
    fleet_namespace: str,
    watched: str,
    change_kinds: Sequence[ChangeKind] = (),
    sync_time: float = SYNC_TIME,
) -> None:
    """Add the controllers to `manager`. `watched` is the namespace of the objects that change, empty for all.

    `change_kinds` are our own, which are created when the controllers begin.
    """
    manager.add(INSTALLER, ChangeKindInstaller(client, change_kinds, clock=manager.clock).run)
    events = EventRecorder(client, component=NAME, clock=manager.clock)
    manager.add_server(events)
    cache = partial(manager.cache, namespace=fleet_namespace, transform=without_managed_fields)
    policies, profiles = cache(ROLLOUT_POLICIES), cache(CLUSTER_PROFILES)
    rollout_wiring = wire(manager, RolloutController, client=client, events=events, namespace=fleet_namespace)
    kind_wiring = wire(manager, ChangeKindController, client=client, events=events)
    policy_wiring = wire(manager, PolicyController, client=client, events=events, namespace=fleet_namespace)
    rollouts, starts, checks, decide = rollout_wiring.cache.raw, Trigger(), Trigger(), Trigger()
    RolloutMetrics(manager.registry, rollout_wiring.cache, manager.clock)
    order = RolloutOrder(rollouts, field_manager=MANAGER)

    def announce(kind: str, subject: str) -> None:
        """Something of a change differs; without a subject, of all its subjects."""
        for key in order.keys_of(kind, subject):
            decide.fire(key)
        tracker = kinds.find(kind)
        for one in (subject,) if subject else () if tracker is None else tuple(tracker.subjects):
            starts.fire(ObjectKey(kind, one))
        if not subject:
            for key in policies:
                checks.fire(key)

    def decide_all() -> None:
        for key in order.under_way():
            decide.fire(key)

    objects = manager.caches_of(client)
    kinds = KindSet(
        lambda resource: objects.get(resource, namespace=watched, transform=without_managed_fields), announce
    )

    def on_policy(change: Change) -> None:
        for name in kinds.names:
            announce(name, "")

    policies.subscribe(on_policy)
    kind_wiring.cache.raw.subscribe(kinds.on_change)
    # Every controller finds the ChangeKinds compiled.
    compiled = Watch(kind_wiring.cache.raw, to=_nothing)

    def read_policies() -> Sequence[RolloutPolicy]:
        return tuple(readable(policies.values()))

    manager.controller(
        KINDS,
        ChangeKindController(kind_wiring, kinds, sync_time),
        sources=[Watch(kind_wiring.cache.raw, when=spec_or_metadata_changed)],
    )
    manager.controller(
        POLICIES,
        PolicyController(policy_wiring, kinds, read_policies),
        sources=[compiled, checks, Watch(policy_wiring.cache.raw, when=spec_or_metadata_changed)],
    )
    manager.controller(
        STARTER,
        RolloutStarter(client, fleet_namespace, kinds=kinds, order=order, policies=read_policies),
        sources=[compiled, starts, Watch(rollouts, to=_change_of, when=_phase_changed)],
    )
    manager.controller(
        NAME,
        RolloutController(
            rollout_wiring,
            kinds=kinds,
            fleet=FleetClusters(profiles, changed=decide_all),
            record=SliceRecord(client, cache(PLACEMENT_DECISIONS), field_manager=MANAGER),
            order=order,
            policies=TypedCache(RolloutPolicy, policies),
            execution=ObjectSetter(client, field_manager=MANAGER, clock=manager.clock),
        ),
        sources=[
            compiled,
            # The record and the fleet are complete before the first decision.
            Watch(cache(PLACEMENT_DECISIONS), to=to_owner(rollout_wiring.resource)),
            Watch(profiles, to=_nothing),
            Watch(policies, to=_nothing),
            Watch(rollouts, to=lambda one: order.keys_of(*_change_of(one)[0]), when=_made),
            Watch(rollouts, when=spec_or_metadata_changed),
            decide,
        ],
        workers=4,
    )


def _change_of(rollout: Object) -> tuple[ObjectKey, ...]:
    change = read(Rollout, rollout).spec.change
    return (ObjectKey(change.kind, change.subject),)


def _made(change: Change) -> bool:
    """A rollout that is new, or gone, changes the place of the others of its subject."""
    return change.old is None or change.new is None


def _phase_changed(change: Change) -> bool:
    if change.old is None or change.new is None:
        return True
    return read(Rollout, change.old).status.phase != read(Rollout, change.new).status.phase


def _nothing(obj: Object) -> Iterable[ObjectKey]:
    """Maps to no key: the cache must be complete before the first reconcile, and announces its changes itself."""
    return ()
