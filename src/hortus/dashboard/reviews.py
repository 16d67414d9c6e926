"""Permissions of a viewer, asked for with the viewer's own credential (SelfSubjectAccessReview).

They decide what is offered, not what is done: each call is judged by the API server again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from hortus.engine.pages import AccessNeed
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import KubeError, Unauthorized
from hortus.kube.objects import Resource

ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
SUBJECT_REVIEWS: Final = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)
_FRESH: Final = 30.0
"""Seconds for which an answer is used again; a binding that was made now counts after them."""
_AWAY: Final = 5.0
"""Seconds for which the last answer is used again when the API server does not answer."""
_KEPT: Final = 1000
"""Answers that are kept before those that are used no more are forgotten."""
_NEVER: Final = (float("-inf"), False)


class Reviews:
    """Answers for one viewer."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[AccessNeed | str, tuple[float, bool]] = {}
        """Each answer with the time until which it is used again."""

    async def all_allowed(self, needs: Iterable[AccessNeed]) -> bool:
        """Reports whether the viewer has all of these permissions. Raises KubeError."""
        return all(await asyncio.gather(*map(self.allowed, needs)))

    def are_fresh(self, needs: Iterable[AccessNeed]) -> bool:
        """Reports whether all of these were answered so lately that they are not asked for again."""
        now = self._clock.monotonic()
        return all(now < self._known.get(need, _NEVER)[0] for need in needs)

    async def allowed(self, need: AccessNeed) -> bool:
        """Reports whether the viewer has this permission. Raises KubeError."""
        attributes = {
            "verb": need.verb,
            "group": need.resource.group,
            "resource": need.resource.plural,
            "subresource": need.subresource,
            "namespace": need.namespace,
            "name": need.name,
        }
        return await self._asked(need, {"resourceAttributes": {key: text for key, text in attributes.items() if text}})

    async def allowed_path(self, path: str) -> bool:
        """Reports whether the viewer may get a path that is no resource, such as /metrics. Raises KubeError."""
        return await self._asked(path, {"nonResourceAttributes": {"path": path, "verb": "get"}})

    async def _asked(self, key: AccessNeed | str, spec: dict[str, Any]) -> bool:
        now = self._clock.monotonic()
        known = self._known.get(key)
        if known is not None and now < known[0]:
            return known[1]
        try:
            answer = await self._client.create(ACCESS_REVIEWS, {**_typed(ACCESS_REVIEWS), "spec": spec})
        except Unauthorized:
            raise
        except KubeError:
            if known is None:
                raise
            # The last answer stands while the API server is away.
            self._known[key] = self._clock.monotonic() + _AWAY, known[1]
            return known[1]
        if len(self._known) >= _KEPT:
            self._known = {key: one for key, one in self._known.items() if now < one[0]}
        allowed = (answer.get("status") or {}).get("allowed") is True
        self._known[key] = now + _FRESH, allowed
        return allowed


async def username_of(client: Client) -> tuple[str, tuple[str, ...]]:
    """The user and the groups that the API server takes the credential for. Raises KubeError."""
    answer = await client.create(SUBJECT_REVIEWS, _typed(SUBJECT_REVIEWS))
    user = (answer.get("status") or {}).get("userInfo") or {}
    return str(user.get("username") or ""), tuple(map(str, user.get("groups") or ()))


def _typed(resource: Resource) -> dict[str, Any]:
    return {"apiVersion": resource.api_version, "kind": resource.kind}
