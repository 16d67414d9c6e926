"""What every operation needs, composed once by the server and handed down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from hortus.apiserver.resources.definition import WriteContext
from hortus.apiserver.resources.registry import Registry
from hortus.apiserver.resources.scope import Scope
from hortus.apiserver.resources.storage import Storage
from hortus.kube.clock import Clock
from hortus.kube.objects import Object


class Admission(Protocol):
    """Judges writes after the schema was checked and before they are stored; the seam of webhooks and policies."""

    async def admit(
        self, scope: Scope, operation: str, obj: Object | None, old: Object | None, *, dry_run: bool
    ) -> bool:
        """Whether `obj` was changed in place (and is to be validated again). Raises an ApiError to refuse."""


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


def write_context(scope: Scope, now: float, *, dry_run: bool) -> WriteContext:
    return WriteContext(scope.cluster, scope.namespace, scope.user, now, dry_run, scope.subresource)
