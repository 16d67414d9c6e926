"""What every operation needs, composed once by the server and handed down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from hortus.apiserver.resources.definition import WriteContext
from hortus.apiserver.resources.joined import JoinedLists
from hortus.apiserver.resources.registry import Registry
from hortus.apiserver.resources.scope import DeleteOptions, Scope, WriteOptions
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.tenants import tenant_of
from hortus.apiserver.turns import Pace, Turns
from hortus.kube.clock import Clock
from hortus.kube.objects import Object


class Admission(Protocol):
    """Judges writes after the schema was checked and before they are stored; the seam of webhooks and policies."""

    async def admit(
        self, scope: Scope, operation: str, obj: Object | None, old: Object | None, *, dry_run: bool
    ) -> bool:
        """Reports whether `obj` was changed in place (and is to be validated again). Raises an ApiError to refuse."""


class Review(Protocol):
    """The judgement of one write by those whom the cluster's own objects name."""

    async def mutate(self, obj: Object | None, old: Object | None) -> bool:
        """Reports whether `obj` was changed in place; called before the kind's own rules. Raises an ApiError to
        refuse."""

    async def validate(self, obj: Object | None, old: Object | None) -> None:
        """Look at what is about to be stored. Raises an ApiError to refuse."""


class Reviewer(Protocol):
    """Webhooks and policies."""

    def awake(self, cluster: str) -> bool:
        """Reports whether writes in the cluster may have to be judged."""

    async def begin(self, scope: Scope, operation: str, options: WriteOptions | DeleteOptions) -> Review | None:
        """The judgement of a write; None when nobody asked for one."""


class NamespaceGate(Protocol):
    """Says whether objects may be created in a namespace."""

    async def check(self, scope: Scope) -> None:
        """Raises NotFound, or Forbidden while the namespace is being terminated."""


class CreateGuard(Protocol):
    async def check_create(self, scope: Scope) -> None:
        """Raise Forbidden unless the user may create what an update or apply is about to create."""


class Context(msgspec.Struct, frozen=True):
    storage: Storage
    registry: Registry
    clock: Clock
    namespaces: NamespaceGate
    admission: Sequence[Admission] = ()
    creation: CreateGuard | None = None
    """Asked when a PUT or apply creates; None lets everybody."""
    reviewer: Reviewer | None = None
    turns: Turns = msgspec.field(default_factory=Turns)
    """Turns of the event loop, for work that can take long."""
    lists: JoinedLists = msgspec.field(default_factory=JoinedLists)

    def pace(self, scope: Scope) -> Pace:
        """For work on a request of this scope."""
        return Pace(self.turns, tenant_of(scope.cluster, scope.user.username))


async def review_of(ctx: Context, scope: Scope, operation: str, options: WriteOptions | DeleteOptions) -> Review | None:
    """Who wants to judge this write."""
    return None if ctx.reviewer is None else await ctx.reviewer.begin(scope, operation, options)


def write_context(scope: Scope, now: float, *, dry_run: bool) -> WriteContext:
    return WriteContext(scope.cluster, scope.namespace, scope.user, now, dry_run, scope.subresource)
