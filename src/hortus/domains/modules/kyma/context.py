"""One reconcile of a Kyma: the facts that its steps hand on, and the draft of its status."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from hortus.domains.modules.kyma.status import MESSAGES, REASON, KymaCondition
from hortus.domains.modules.names import State
from hortus.domains.modules.types import Kyma, ModuleStatus
from hortus.engine import FALSE, TRUE, UNKNOWN, Announcement, ReconcileContext, StepError
from hortus.engine.conditions import ConditionStatus
from hortus.engine.redaction import redact_text
from hortus.engine.remote import KubeconfigRef
from hortus.kube import Client
from hortus.kube.objects import Object, format_time

LONGEST_EVENT: Final = 100
"""Characters: of a longer message of a warning the last ones are kept."""
LONGEST_OPERATION: Final = 500
"""Characters of an error in the status; a part of it may come from an untrusted cluster."""


class Requeue:
    """Causes of requeues, as the metric has them."""

    NO_ACCESS: Final = "kyma_under_deletion_with_no_access_secret"
    DELETING: Final = "kyma_status_update_to_deleting"
    METADATA: Final = "labels_and_finalizers_update"
    CRDS: Final = "crds_sync"
    PULL_SECRET: Final = "image_pull_secret_sync"  # noqa: S105
    MANIFESTS: Final = "manifest_reconciliation"
    CATALOG: Final = "module_catalog_sync"
    WEBHOOK: Final = "skr_webhook_installation"
    INITIAL: Final = "initial_state_handling"
    CONTEXT: Final = "sync_context_retrieval"
    REMOTE_SPEC: Final = "spec_replacement_from_remote"
    REMOTE_STATUS: Final = "status_sync_to_remote"
    PROCESSING: Final = "processing_kyma_state"
    DELETION: Final = "kyma_deletion"
    RETRIEVAL: Final = "kyma_retrieval"
    UNAUTHORIZED: Final = "kyma_unauthorized"


class ModulesInError(StepError):
    """A Kyma whose state is Error: its status reports why, and the next attempt is the queue's."""


class KymaContext(ReconcileContext[Kyma]):
    """The facts that the steps of one reconcile share."""

    stage: str = Requeue.RETRIEVAL
    """The cause of a requeue if the present step fails."""
    place: KubeconfigRef | None = None
    """The place of the kubeconfig."""
    client: Client | None = None
    """The client of the cluster."""
    remote: Object | None = None
    """The Kyma in the cluster."""
    wanted: Kyma
    """The Kyma with modules and channel of the one in the cluster."""
    modules: Sequence[ModuleStatus] | None = None
    """The modules as found by this reconcile."""
    due: float | None = None
    """Time, in seconds since the epoch, at which something held back may go on."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.outcomes: dict[KymaCondition, bool] = {}

    def announcements(self, before: Object) -> Iterator[Announcement]:
        """Conditions bring no events: the contract has events of its own."""
        return iter(())

    def wait_until(self, due: float) -> None:
        """Reconcile the Kyma again at `due` at the latest."""
        self.due = due if self.due is None else min(self.due, due)

    def warn(self, reason: str, problem: object) -> None:
        """Record a warning with the end of a message."""
        self.event("Warning", reason, str(problem)[-LONGEST_EVENT:])

    # The draft of the status.

    def draft_state(self, state: State, operation: str) -> None:
        """Draft the state and the last operation."""
        self.set_status("state", state.value)
        known = self.object.status.last_operation
        text = redact_text(operation)[:LONGEST_OPERATION]
        if known is None or known.operation != text:
            self.set_status("lastOperation", {"operation": text, "lastUpdateTime": format_time(self.now)})

    def draft_conditions(self, required: Sequence[KymaCondition]) -> None:
        """Draft the conditions by the outcomes of this reconcile; what was not reached is Unknown."""
        for kind in required:
            outcome = self.outcomes.get(kind)
            status: ConditionStatus = UNKNOWN if outcome is None else TRUE if outcome else FALSE
            self.condition(kind, status, reason=REASON, message=MESSAGES[kind][status])

    def draft_modules(self, modules: Sequence[ModuleStatus]) -> None:
        """Draft the status of the modules, sorted by name."""
        found = tuple(sorted(modules, key=lambda module: module.name))
        if found != self.object.status.modules:
            self.set_status("modules", msgspec.to_builtins(found) if found else None)
