"""The parts of the server that every operation needs, composed once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from hortus.apiserver.resources.definition import WriteContext
from hortus.apiserver.resources.joined import JoinedLists
from hortus.apiserver.resources.registry import Registry
from hortus.apiserver.resources.scope import DeleteOptions, RequestScope, WriteOptions
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.tenants import tenant_of
from hortus.apiserver.turns import TurnPace, Turns
from hortus.kube.clock import Clock
from hortus.kube.objects import Object


class Admission(Protocol):
    """Reviews writes after validation and before they are stored; the interface of the server's own admission."""

    async def admit(
        self, scope: RequestScope, operation: str, obj: Object | None, old: Object | None, *, dry_run: bool
    ) -> bool:
        """Reports whether `obj` was changed in place (and is to be validated again). Raises an ApiError to refuse."""


class WriteReview(Protocol):
    """The review of one write by the webhooks and policies of its cluster."""

    async def mutate(self, obj: Object | None, old: Object | None) -> bool:
        """Reports whether `obj` was changed in place; called before the kind's own rules. Raises an ApiError to
        refuse."""

    async def validate(self, obj: Object | None, old: Object | None) -> None:
        """Validates the object that is about to be stored. Raises an ApiError to refuse."""


class Reviewer(Protocol):
    """Webhooks and policies."""

    def awake(self, cluster: str) -> bool:
        """Reports whether writes in the cluster may need a review."""

    async def begin(
        self, scope: RequestScope, operation: str, options: WriteOptions | DeleteOptions
    ) -> WriteReview | None:
        """The review of a write; None when no webhook or policy applies."""


class NamespaceGate(Protocol):
    """Decides on creation of objects in a namespace."""

    async def check(self, scope: RequestScope) -> None:
        """Raises NotFound, or Forbidden while the namespace is being terminated."""


class CreateGuard(Protocol):
    async def check_create(self, scope: RequestScope) -> None:
        """Raises Forbidden unless the user may create the object that an update or apply is about to create."""


class OperationContext(msgspec.Struct, frozen=True):
    storage: Storage
    registry: Registry
    clock: Clock
    namespaces: NamespaceGate
    admission: Sequence[Admission] = ()
    creation: CreateGuard | None = None
    """Called when a PUT or apply creates; None allows every user."""
    reviewer: Reviewer | None = None
    turns: Turns = msgspec.field(default_factory=Turns)
    """Turns of the event loop, for work that can take long."""
    lists: JoinedLists = msgspec.field(default_factory=JoinedLists)

    def pace(self, scope: RequestScope) -> TurnPace:
        """The pace of long work for this scope."""
        return TurnPace(self.turns, tenant_of(scope.cluster, scope.user.username))


async def review_of(
    ctx: OperationContext, scope: RequestScope, operation: str, options: WriteOptions | DeleteOptions
) -> WriteReview | None:
    """The review of this write, None without one."""
    return None if ctx.reviewer is None else await ctx.reviewer.begin(scope, operation, options)


def write_context(scope: RequestScope, now: float, *, dry_run: bool) -> WriteContext:
    return WriteContext(scope.cluster, scope.namespace, scope.user, now, dry_run, scope.subresource)
