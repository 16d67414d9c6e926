"""Subresources of pods: the actions `eviction` and `binding`, and pages that a pod serves (`proxy`).

An action gets the sent body, which admission reviews like any creation, and answers with a Status.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from hortus.apiserver.pods.binding import bind
from hortus.apiserver.pods.eviction import evict
from hortus.apiserver.pods.proxying import PROXY, PodNetwork, PodPage, proxied
from hortus.apiserver.resources.context import OperationContext
from hortus.apiserver.resources.scope import RequestScope, WriteOptions
from hortus.kube.objects import Object

PodAction = Callable[[OperationContext, RequestScope, Object, WriteOptions], Awaitable[None]]

ACTIONS: Mapping[str, PodAction] = {"binding": bind, "eviction": evict}
"""By subresource of pods."""
DONE_STATUS: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}

__all__ = ["ACTIONS", "DONE_STATUS", "PROXY", "PodNetwork", "PodPage", "bind", "proxied"]
