"""Actions on pods through subresources: `eviction` and `binding`.

An action gets the sent body, which admission reviews like any creation, and answers with a Status.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from hortus.apiserver.pods.binding import bind
from hortus.apiserver.pods.eviction import evict
from hortus.apiserver.resources.context import Context
from hortus.apiserver.resources.scope import Scope, WriteOptions
from hortus.kube.objects import Object

Action = Callable[[Context, Scope, Object, WriteOptions], Awaitable[None]]

ACTIONS: Mapping[str, Action] = {"binding": bind, "eviction": evict}
"""By subresource of pods."""
DONE: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}

__all__ = ["ACTIONS", "DONE", "Action", "bind", "evict"]
