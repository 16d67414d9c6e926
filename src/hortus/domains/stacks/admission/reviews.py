"""The reviews of this domain's webhooks: each reads the objects of a request and asks the rules."""

from __future__ import annotations

from hortus.domains.stacks.admission import rules
from hortus.domains.stacks.admission.lookups import Lookups
from hortus.domains.stacks.admission.registration import ADDON_PATH, CLUSTER_PATH, RELEASE_PATH, STACK_PATH
from hortus.domains.stacks.capi import read_cluster
from hortus.domains.stacks.types import ClusterAddon, ClusterStack, ClusterStackRelease
from hortus.engine import read
from hortus.engine.serving import ADMITTED, AdmissionVerdict, AdmissionWebhooks, ReviewRequest

_CREATE, _UPDATE, _DELETE = "CREATE", "UPDATE", "DELETE"


class AdmissionReviews:
    """Judges the objects of cluster stacks."""

    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups

    def add_to(self, webhooks: AdmissionWebhooks) -> None:
        """Serve them at the paths of the Go operator's webhooks."""
        webhooks.add(CLUSTER_PATH, self._cluster)
        webhooks.add(ADDON_PATH, self._addon)
        webhooks.add(STACK_PATH, self._stack)
        webhooks.add(RELEASE_PATH, self._release)

    async def _cluster(self, request: ReviewRequest) -> AdmissionVerdict:
        if request.operation not in (_CREATE, _UPDATE) or request.object is None:
            return ADMITTED
        old = read_cluster(request.old_object) if request.old_object else None
        new = read_cluster(request.object)
        if old is not None and new.metadata.deletion_timestamp is not None:
            return ADMITTED  # a finalizer must be removable, whatever the class has become
        return await rules.check_cluster(new, old, self._lookups)

    async def _addon(self, request: ReviewRequest) -> AdmissionVerdict:
        if request.operation not in (_CREATE, _UPDATE) or request.object is None:
            return ADMITTED
        old = read(ClusterAddon, request.old_object) if request.old_object else None
        return rules.check_addon(read(ClusterAddon, request.object), old)

    async def _stack(self, request: ReviewRequest) -> AdmissionVerdict:
        if request.operation == _DELETE and request.old_object:
            return await rules.check_stack_deletion(read(ClusterStack, request.old_object), self._lookups)
        if request.operation not in (_CREATE, _UPDATE) or request.object is None:
            return ADMITTED
        old = read(ClusterStack, request.old_object) if request.old_object else None
        return rules.check_stack(read(ClusterStack, request.object), old)

    async def _release(self, request: ReviewRequest) -> AdmissionVerdict:
        if request.operation != _DELETE or not request.old_object:
            return ADMITTED
        return await rules.check_release_deletion(read(ClusterStackRelease, request.old_object), self._lookups)
