"""Changes in many remote clusters, as keys of the management cluster: a source for a controller.

The members are objects of the management cluster, each with the place of its kubeconfig. For each there is one cache of
what was asked for, one watch, and so one connection of its own (HTTP/1.1 carries one watch at a time) while it can be
reached. A rotation resumes the watch where it stopped; a cluster that was created again is listed from nothing, and
objects that it does not hold any more are reported as gone. A member that disappears takes its cache along: all objects
in it are reported as gone, and by default its own key. By default a first list without objects reports that key, too:
the member is seen whole then, and it has none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from random import Random

from hortus.engine.backoff import Backoff
from hortus.engine.cache import Cache, Change, Transform
from hortus.engine.queue import Priority
from hortus.engine.reflector import RETRY, Reflector, Selection
from hortus.engine.remote.credentials import KubeconfigRef
from hortus.engine.remote.pool import RemotePool
from hortus.engine.remote.states import Phase, RemoteState, RemoteUnavailable
from hortus.engine.scope import start_shared
from hortus.engine.sources import Add, Detach
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.objects import Object, ObjectKey, key_of

RemoteMapper = Callable[[ObjectKey, Object], Iterable[ObjectKey]]
"""The keys of the management cluster that an object in the cluster of a member (its key) concerns."""


def to_member(member: ObjectKey, obj: Object) -> Iterable[ObjectKey]:
    """Every object concerns its member."""
    return (member,)


class _Follower:
    """One member: its cache, kept current by a task."""

    __slots__ = ("cache", "client", "place", "reflector", "task")

    def __init__(self, place: KubeconfigRef, cache: Cache, client: Client, reflector: Reflector) -> None:
        self.place = place
        self.cache = cache
        self.client = client
        self.reflector = reflector
        self.task = start_shared(self._run(), name=f"watch {place}")

    async def _run(self) -> None:
        try:
            await self.reflector.run()
        finally:
            await self.client.close()


class RemoteWatch:
    """A source: the objects that `selection` selects, in the cluster of every member."""

    def __init__(
        self,
        pool: RemotePool,
        members: Cache,
        *,
        place: Callable[[Object], KubeconfigRef | None],
        selection: Selection | Callable[[ObjectKey], Selection],
        transform: Transform | None = None,
        to: RemoteMapper = to_member,
        when: Callable[[Change], bool] | None = None,
        holds: Callable[[ObjectKey], bool] | None = None,
        random: Random | None = None,
        optional: Backoff | None = None,
    ) -> None:
        """`place` says where a member's kubeconfig lies, if anywhere; `transform` what is kept of objects.

        `selection` is one for all members, or a function that gives each its own, the same as long as it is a member.

        `optional` is for a resource that a cluster need not serve: how often those that do not are asked again.

        `holds` says which members are this replica's, as `Shards.holds` does: only their clusters are watched. Then
        `Shards.on_gain(watch.reconsider)` makes the watches follow the members that move.
        """
        self._pool = pool
        self._members = members
        self.awaited = (members,)
        self._place = place
        self._selection = (lambda _: selection) if isinstance(selection, Selection) else selection
        self._transform = transform
        self._to = to
        self._when = when
        self._holds = holds
        self._random = random or Random()  # noqa: S311 - jitter, not secrecy
        self._optional = optional
        self._followers: dict[ObjectKey, _Follower] = {}
        self._at: dict[KubeconfigRef, set[ObjectKey]] = {}
        self._adds: list[Add] = []
        self._undo: list[Callable[[], None]] = []
        self._ended: set[asyncio.Task[None]] = set()
        self._lost: list[Callable[[ObjectKey], None]] = []

    # For reconcilers.

    def cache(self, member: ObjectKey) -> Cache | None:
        """The objects in a member's cluster as last seen; None when it is no member or has no credential.

        `has_synced` says whether the cluster was ever seen whole, `problem` why it is not being seen now.
        """
        follower = self._followers.get(member)
        return follower.cache if follower is not None else None

    def problem(self, member: ObjectKey) -> Exception | None:
        """The reason why a member's cache is not kept current now."""
        follower = self._followers.get(member)
        if follower is None or follower.reflector.problem is not None:
            return follower.reflector.problem if follower is not None else None
        state = self._pool.state(follower.place)
        return None if state.phase is Phase.READY else RemoteUnavailable(follower.place, state, None)

    def on_lost(self, listener: Callable[[ObjectKey], None]) -> Callable[[], None]:
        """Call `listener` with each member whose watch fails again and again; returns what ends that.

        A cluster that cannot be used at all is reported by `RemoteStates`, too.
        """
        self._lost.append(listener)
        return lambda: self._lost.remove(listener)

    def __len__(self) -> int:
        """The number of members that are followed."""
        return len(self._followers)

    # The source.

    def attach(self, add: Add, clock: Clock) -> Detach:
        for member, follower in self._followers.items():
            for obj in follower.cache.values():
                self._notify(member, Change(key_of(obj), None, obj, initial=True), (add,))
            self._notify_empty(member, follower.cache, (add,))
        self._adds.append(add)
        if not self._undo:
            self._undo = [
                self._members.subscribe(self._member_changed),
                self._pool.on_recreated(self._recreated),
            ]
        return lambda: self._detach(add)

    async def ready(self) -> None:
        """Members are awaited, their clusters are not: some of thousands are always away."""
        await self._members.synced()

    def _detach(self, add: Add) -> None:
        self._adds.remove(add)
        if not self._adds:
            for undo in self._undo:
                undo()
            self._undo = []
            for member in list(self._followers):
                self._leave(member)

    async def closed(self) -> None:
        """Return when the watches that a detach ended are over."""
        await asyncio.gather(*self._ended, return_exceptions=True)

    # Members.

    def reconsider(self, gained: object = None) -> int:
        """Look again at which members are ours; returns how many are watched that were not before."""
        before = self._followers.keys() - ()
        if self._adds:
            for member in list(self._members):
                self._consider(member, self._members.get(member))
        return len(self._followers.keys() - before)

    def _member_changed(self, change: Change) -> None:
        self._consider(change.key, change.new)

    def _consider(self, member: ObjectKey, obj: Object | None) -> None:
        ours = obj is not None and (self._holds is None or self._holds(member))
        place = self._place(obj) if obj is not None and ours else None
        follower = self._followers.get(member)
        if follower is not None and follower.place != place:
            self._leave(member)
            follower = None
        if follower is None and place is not None:
            self._follow(member, place)

    def _follow(self, member: ObjectKey, place: KubeconfigRef) -> None:
        cache = Cache(str(self._selection(member)), transform=self._transform)
        self._at.setdefault(place, set()).add(member)
        self._pool.hold(place)
        cache.subscribe(lambda change: self._notify(member, change, self._adds))
        cache.on_sync(lambda: self._notify_empty(member, cache, self._adds))
        self._followers[member] = self._follower(member, place, cache)

    def _follower(self, member: ObjectKey, place: KubeconfigRef, cache: Cache) -> _Follower:
        client = self._pool.watcher(place)
        reflector = Reflector(
            client,
            self._selection(member),
            cache,
            clock=self._pool.clock,
            random=self._random,
            unserved_backoff=self._optional or RETRY,
            optional=self._optional is not None,
            largest=self._pool.settings.max_list,
            on_problem=lambda: self._tell_lost(member),
        )
        return _Follower(place, cache, client, reflector)

    def _leave(self, member: ObjectKey) -> None:
        follower = self._followers.pop(member)
        members = self._at[follower.place]
        members.discard(member)
        if not members:
            del self._at[follower.place]
        self._end(follower)
        self._pool.release(follower.place)
        # Objects that were seen there are reported as gone, so that `to` says whom that concerns.
        follower.cache.reset()
        if self._to is to_member:
            for add in self._adds:
                add(member, Priority.EVENT)

    def _end(self, follower: _Follower) -> None:
        follower.task.cancel()
        self._ended.add(follower.task)
        follower.task.add_done_callback(self._ended.discard)

    def _recreated(self, place: KubeconfigRef) -> None:
        """Another cluster answers there: what its predecessor held is gone, and its versions mean nothing."""
        for member in tuple(self._at.get(place, ())):
            follower = self._followers[member]
            self._end(follower)
            follower.cache.reset()
            self._followers[member] = self._follower(member, place, follower.cache)

    def _tell_lost(self, member: ObjectKey) -> None:
        for listener in tuple(self._lost):
            listener(member)

    def _notify_empty(self, member: ObjectKey, cache: Cache, adds: Sequence[Add]) -> None:
        """A list without objects brings no change by which its member could hear of it."""
        if self._to is to_member and cache.has_synced and not cache:
            for add in adds:
                add(member, int(Priority.INITIAL))

    def _notify(self, member: ObjectKey, change: Change, adds: Sequence[Add]) -> None:
        if self._when is not None and not self._when(change):
            return
        priority = int(Priority.INITIAL if change.initial else Priority.EVENT)
        for obj in (change.new, change.old):
            if obj is not None:
                for key in self._to(member, obj):
                    for add in adds:
                        add(key, priority)


class RemoteStates:
    """A source: members whose cluster has become usable, or is not any more."""

    def __init__(self, pool: RemotePool, *, to: Callable[[KubeconfigRef], Iterable[ObjectKey]]) -> None:
        """`to` gives the keys of the management cluster that a place concerns."""
        self._pool = pool
        self._to = to

    def attach(self, add: Add, clock: Clock) -> Detach:
        def on_state(place: KubeconfigRef, before: RemoteState, after: RemoteState) -> None:
            if before.usable != after.usable or (before.reason != after.reason and not after.usable):
                for key in self._to(place):
                    add(key, int(Priority.EVENT))

        return self._pool.subscribe(on_state)

    async def ready(self) -> None:
        return


class LostWatches:
    """A source: members whose watch fails, so that it does not tell what changes."""

    def __init__(self, watch: RemoteWatch, *, to: Callable[[ObjectKey], Iterable[ObjectKey]]) -> None:
        """`to` gives the keys of the management cluster that a member concerns."""
        self._watch = watch
        self._to = to

    def attach(self, add: Add, clock: Clock) -> Detach:
        def on_lost(member: ObjectKey) -> None:
            for key in self._to(member):
                add(key, int(Priority.RETRY))

        return self._watch.on_lost(on_lost)

    async def ready(self) -> None:
        return
