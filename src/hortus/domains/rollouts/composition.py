"""Puts the controllers of rollouts together for a process that has a `Manager`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
    Cache,
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
from hortus.engine.deputies import Deputies
from hortus.engine.rollouts import readable
from hortus.engine.rollouts.changekinds import ChangeKindSpec
from hortus.engine.rollouts.types import PLACEMENT_DECISIONS, ROLLOUT_POLICIES, ChangeKind, Rollout, RolloutPolicy
from hortus.engine.sources import to_owner
from hortus.kube import Client
from hortus.kube.objects import Object, ObjectKey, Resource

NAME = "rollout-controller"
"""The controller's name in metrics, logs and events."""
INSTALLER = "change-kinds"
STARTER, KINDS, POLICIES = "rollout-starter", "change-kind-controller", "rollout-policy-controller"
OBJECTS = "rollout-objects"


def add_controllers(
    manager: Manager,
    client: Client,
    *,
    fleet_namespace: str,
    watched: str,
    deputies: Deputies,
    change_kinds: Sequence[ChangeKind] = (),
    sync_time: float = SYNC_TIME,
) -> None:
    """Add the controllers to `manager`. `watched` is the namespace of the objects that change, empty for all.

    `change_kinds` are our own, which are created when the controllers begin. Objects of other ChangeKinds are read, and
    all objects are set, with the permissions that `deputies` has for the fleet's namespace.
    """
    manager.add(INSTALLER, ChangeKindInstaller(client, change_kinds, clock=manager.clock).run)
    assembly = _Assembly(manager, client, deputies, fleet_namespace, watched, change_kinds)
    assembly.add_change_kinds(sync_time)
    assembly.add_policies()
    assembly.add_starter()
    assembly.add_rollouts(sync_time)


class _Announcements:
    """Hands each change of what rollouts read to the controllers whose objects it concerns."""

    def __init__(
        self, cache: Callable[[ChangeKindSpec, Resource], Cache], policies: Cache, order: RolloutOrder
    ) -> None:
        """`cache` gives the cache of the objects of a ChangeKind with this spec."""
        self.kinds = KindSet(cache, self._announce)
        self.starts, self.checks, self.decisions = Trigger(), Trigger(), Trigger()
        self._policies = policies
        self._order = order
        policies.subscribe(self._on_policy)

    def on_fleet(self) -> None:
        """Has each rollout under way decided again."""
        for key in self._order.under_way():
            self.decisions.fire(key)

    def _announce(self, kind: str, subject: str) -> None:
        """Something of a change differs; without a subject, of all its subjects."""
        for key in self._order.keys_of(kind, subject):
            self.decisions.fire(key)
        tracker = self.kinds.find(kind)
        for one in (subject,) if subject else () if tracker is None else tuple(tracker.subjects):
            self.starts.fire(ObjectKey(kind, one))
        if not subject:
            for key in self._policies:
                self.checks.fire(key)

    def _on_policy(self, change: Change) -> None:
        for name in self.kinds.names:
            self._announce(name, "")


class _Assembly:
    """The caches that the controllers share, and the controllers made of them."""

    def __init__(
        self,
        manager: Manager,
        client: Client,
        deputies: Deputies,
        fleet_namespace: str,
        watched: str,
        change_kinds: Sequence[ChangeKind],
    ) -> None:
        self._manager, self._client, self._namespace = manager, client, fleet_namespace
        self._acting, self._account = deputies.client(fleet_namespace), deputies.account(fleet_namespace)
        self._ours = [one.spec for one in change_kinds]
        events = EventRecorder(client, component=NAME, clock=manager.clock)
        manager.add_server(events)
        cache = partial(manager.cache, namespace=fleet_namespace, transform=without_managed_fields)
        self._policies, self._profiles = cache(ROLLOUT_POLICIES), cache(CLUSTER_PROFILES)
        self._slices = cache(PLACEMENT_DECISIONS)
        self._rollout_wiring = wire(manager, RolloutController, client=client, events=events, namespace=fleet_namespace)
        self._kind_wiring = wire(manager, ChangeKindController, client=client, events=events)
        self._policy_wiring = wire(manager, PolicyController, client=client, events=events, namespace=fleet_namespace)
        self._rollouts = self._rollout_wiring.cache.raw
        self._order = RolloutOrder(self._rollouts, field_manager=MANAGER)
        own, others = manager.caches_of(client), manager.caches_of(self._acting)

        def objects(spec: ChangeKindSpec, resource: Resource) -> Cache:
            caches = own if self._is_ours(spec) else others
            return caches.get(resource, namespace=watched, transform=without_managed_fields)

        self._announcements = _Announcements(objects, self._policies, self._order)
        self._kinds = self._announcements.kinds
        self._kind_wiring.cache.raw.subscribe(self._kinds.on_change)
        # Every controller finds the ChangeKinds compiled.
        self._compiled = Watch(self._kind_wiring.cache.raw, to=_nothing)

    def add_change_kinds(self, sync_time: float) -> None:
        self._manager.controller(
            KINDS,
            ChangeKindController(
                self._kind_wiring,
                self._kinds,
                sync_time,
                reader=lambda spec: "Hortus" if self._is_ours(spec) else self._account,
            ),
            sources=[Watch(self._kind_wiring.cache.raw, when=spec_or_metadata_changed)],
        )

    def add_policies(self) -> None:
        self._manager.controller(
            POLICIES,
            PolicyController(self._policy_wiring, self._kinds, self._read_policies),
            sources=[
                self._compiled,
                self._announcements.checks,
                Watch(self._policy_wiring.cache.raw, when=spec_or_metadata_changed),
            ],
        )

    def add_starter(self) -> None:
        self._manager.controller(
            STARTER,
            RolloutStarter(
                self._client, self._namespace, kinds=self._kinds, order=self._order, policies=self._read_policies
            ),
            sources=[
                self._compiled,
                self._announcements.starts,
                Watch(self._rollouts, to=_change_of, when=_phase_changed),
            ],
        )

    def add_rollouts(self, sync_time: float) -> None:
        RolloutMetrics(self._manager.registry, self._rollout_wiring.cache, self._manager.clock)
        clock, assigned = self._manager.clock, Trigger()
        setter = ObjectSetter(
            self._acting,
            field_manager=MANAGER,
            clock=clock,
            assigned=assigned.fire,
            refused=self._announcements.decisions.fire,
        )
        self._manager.controller(OBJECTS, setter, sources=[assigned], workers=4)
        controller = RolloutController(
            self._rollout_wiring,
            kinds=self._kinds,
            fleet=FleetClusters(self._profiles, changed=self._announcements.on_fleet),
            record=SliceRecord(self._client, self._slices, field_manager=MANAGER, clock=clock),
            order=self._order,
            policies=TypedCache(RolloutPolicy, self._policies),
            execution=setter,
            sync_time=sync_time,
        )
        self._manager.controller(
            NAME,
            controller,
            sources=[
                self._compiled,
                # The record and the fleet are complete before the first decision.
                Watch(self._slices, to=to_owner(self._rollout_wiring.resource)),
                Watch(self._profiles, to=_nothing),
                Watch(self._policies, to=_nothing),
                Watch(self._rollouts, to=lambda one: self._order.keys_of(*_change_of(one)[0]), when=_made),
                Watch(self._rollouts, when=spec_or_metadata_changed),
                self._announcements.decisions,
            ],
            workers=4,
        )

    def _is_ours(self, spec: ChangeKindSpec) -> bool:
        """A ChangeKind of ours that somebody has edited is theirs."""
        return spec in self._ours

    def _read_policies(self) -> Sequence[RolloutPolicy]:
        return tuple(readable(self._policies.values()))


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
