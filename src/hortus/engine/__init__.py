'''The controller engine: watches in, reconciles out, and everything a process of controllers needs around that.

A complete program. It gives each Greeting a ConfigMap with its text, says so in the condition Ready, and puts back what
somebody edits or deletes. Metrics, health, leader election, signals, logs and the pod's own account are `serve`'s:

    import sys

    from hortus.engine import NEVER, Actor, KindController, ReconcileContext, StepError, Steps, serve
    from hortus.kube import Resource
    from hortus.schema import Fields, Kind, kind

    CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")


    class GreetingSpec(Fields, frozen=True):
        text: str = ""


    @kind(group="example.org", version="v1", status=True)
    class Greeting(Kind, frozen=True):
        spec: GreetingSpec


    class Greeter(KindController[ReconcileContext[Greeting]]):
        """Owns the ConfigMap of the same name and the condition Ready. Never touches the spec of a Greeting."""

        kind = Greeting
        owns = (CONFIG_MAPS,)
        field_manager = "greeter"

        def steps(self, context: ReconcileContext[Greeting]) -> Steps:
            return (self._provide,)

        async def _provide(self, context: ReconcileContext[Greeting]) -> None:
            text = context.object.spec.text
            if not text:
                raise StepError("spec.text is empty: give it a text", reason="NoText", actor=Actor.USER, after=NEVER)
            await context.apply(CONFIG_MAPS, {"data": {"text": text}})
            context.ready("Greeted")


    if __name__ == "__main__":
        sys.exit(serve(Greeter))

In a test the controller runs on `hortus.testing.FakeClock` in a manager of the test: `add_kind`, `manager.running()`.

- **What a controller is** (`kinds`, `context`, `typed`): a typed object in, a literal list of steps, one status write.
- **What a step returns** (`outcomes`): None to go on, `Result(requeue_after=seconds)` to end the reconcile. It raises
  `StepError`, which becomes condition, event, metric and time of the next attempt. Any other exception is retried with
  back-off.
- **What it reads** (`cache`): objects as they are in the cache, read only.
- **What makes it run** (`sources`, `predicates`): `Watch` of its own kind, `Watch(..., to=...)` of other kinds,
  `Trigger`, `Every`.
- **In which order** (`queue`): people before retries before the initial list before resyncs; one worker to an object.
- **What it writes** (`status`, `conditions`, `apply`, `finalizers`, `owners`): one status write at the end and only
  what differs, server-side apply that is skipped when nothing would change, precise patches.
- **What it reports** (`events`, `logging`, `metrics`): nothing secret, by `redaction`; names that existing boards know.
- **In other clusters** (`remote`, `applysets`): thousands of connections and watches; sets applied and pruned.
- **Kubeconfig Secrets** (`kubeconfigs`): contents, writes, rotation, proof and repairs, for all domains.
- **In one process** (`hosting`, `manager`, `process`, `leases`, `shards`, `health`): start, stop, leadership, servers.
'''

from typing import TYPE_CHECKING

from hortus.engine.within import within
from hortus.facade import lazy

if TYPE_CHECKING:
    from hortus.engine.apply import Applied, Applier
    from hortus.engine.backoff import Backoff, spread
    from hortus.engine.cache import Cache, Change, copy_of
    from hortus.engine.caches import Caches
    from hortus.engine.conditions import (
        FALSE,
        TRUE,
        UNKNOWN,
        ConditionStatus,
        find_condition,
        has_condition,
        mark_ready,
        mark_reconciling,
        mark_stalled,
        remove_condition,
        set_condition,
    )
    from hortus.engine.context import Announcement, ReconcileContext, Wiring
    from hortus.engine.controller import Assignment, Controller, Reconciler
    from hortus.engine.events import NORMAL, WARNING, EventRecorder
    from hortus.engine.finalizers import add_finalizer, finalizers_of, has_finalizer, is_deleting, remove_finalizer
    from hortus.engine.health import Address, Checks, HealthServer, HttpServer, parse_address, serve_metrics
    from hortus.engine.hosting import HOST_FLAGS, Host, hosted, serve
    from hortus.engine.indexes import (
        by_annotation,
        by_label,
        by_namespace,
        by_owner_uid,
        managed_fields_of,
        without_managed_fields,
    )
    from hortus.engine.kinds import KindController, Steps, add_kind, sources_of, wire
    from hortus.engine.lanes import Flows
    from hortus.engine.leases import Elector, LeaseTimes
    from hortus.engine.logging import LogSettings, configure_logging
    from hortus.engine.manager import Manager
    from hortus.engine.metrics import EngineMetrics
    from hortus.engine.outcomes import DONE, NEVER, Actor, DeadlineExceeded, HandedOver, Result, StepError
    from hortus.engine.owners import controller_of, is_owned_by, own, owner_reference, owners_of
    from hortus.engine.predicates import (
        Predicate,
        annotation_changed,
        annotations_changed,
        fields_changed,
        finalizers_changed,
        generation_changed,
        labels_changed,
        spec_or_metadata_changed,
    )
    from hortus.engine.process import cut_on_resume, run, run_manager, stop_on_signals
    from hortus.engine.queue import Priority, Queue, QueueClosed
    from hortus.engine.redaction import redact, redact_text
    from hortus.engine.reflector import Selection
    from hortus.engine.runnables import LeadershipLost, PartEnded
    from hortus.engine.scope import current_scope
    from hortus.engine.shards import Shards
    from hortus.engine.sources import Every, Source, Trigger, Watch, to_label, to_owner, to_same_name
    from hortus.engine.status import StatusDraft
    from hortus.engine.typed import NotReadable, TypedCache, metadata_of, read, resource_of
else:
    __getattr__ = lazy(
        __name__,
        {
            "apply": "Applied Applier",
            "backoff": "Backoff spread",
            "cache": "Cache Change copy_of",
            "caches": "Caches",
            "conditions": "FALSE TRUE UNKNOWN ConditionStatus find_condition "
            "has_condition mark_ready mark_reconciling mark_stalled remove_condition set_condition",
            "context": "Announcement ReconcileContext Wiring",
            "controller": "Assignment Controller Reconciler",
            "events": "NORMAL WARNING EventRecorder",
            "finalizers": "add_finalizer finalizers_of has_finalizer is_deleting remove_finalizer",
            "health": "Address Checks HealthServer HttpServer parse_address serve_metrics",
            "hosting": "HOST_FLAGS Host hosted serve",
            "indexes": "by_annotation by_label by_namespace by_owner_uid managed_fields_of without_managed_fields",
            "kinds": "KindController Steps add_kind sources_of wire",
            "lanes": "Flows",
            "leases": "Elector LeaseTimes",
            "logging": "LogSettings configure_logging",
            "manager": "Manager",
            "metrics": "EngineMetrics",
            "outcomes": "DONE NEVER Actor DeadlineExceeded HandedOver Result StepError",
            "owners": "controller_of is_owned_by own owner_reference owners_of",
            "predicates": "Predicate annotation_changed annotations_changed fields_changed "
            "finalizers_changed generation_changed labels_changed spec_or_metadata_changed",
            "process": "cut_on_resume run run_manager stop_on_signals",
            "queue": "Priority Queue QueueClosed",
            "redaction": "redact redact_text",
            "reflector": "Selection",
            "runnables": "LeadershipLost PartEnded",
            "scope": "current_scope",
            "shards": "Shards",
            "sources": "Every Source Trigger Watch to_label to_owner to_same_name",
            "status": "StatusDraft",
            "typed": "NotReadable TypedCache metadata_of read resource_of",
        },
    )

__all__ = [
    "DONE",
    "FALSE",
    "HOST_FLAGS",
    "NEVER",
    "NORMAL",
    "TRUE",
    "UNKNOWN",
    "WARNING",
    "Actor",
    "Address",
    "Announcement",
    "Applied",
    "Applier",
    "Assignment",
    "Backoff",
    "Cache",
    "Caches",
    "Change",
    "Checks",
    "ConditionStatus",
    "Controller",
    "DeadlineExceeded",
    "Elector",
    "EngineMetrics",
    "EventRecorder",
    "Every",
    "Flows",
    "HandedOver",
    "HealthServer",
    "Host",
    "HttpServer",
    "KindController",
    "LeadershipLost",
    "LeaseTimes",
    "LogSettings",
    "Manager",
    "NotReadable",
    "PartEnded",
    "Predicate",
    "Priority",
    "Queue",
    "QueueClosed",
    "ReconcileContext",
    "Reconciler",
    "Result",
    "Selection",
    "Shards",
    "Source",
    "StatusDraft",
    "StepError",
    "Steps",
    "Trigger",
    "TypedCache",
    "Watch",
    "Wiring",
    "add_finalizer",
    "add_kind",
    "annotation_changed",
    "annotations_changed",
    "by_annotation",
    "by_label",
    "by_namespace",
    "by_owner_uid",
    "configure_logging",
    "controller_of",
    "copy_of",
    "current_scope",
    "cut_on_resume",
    "fields_changed",
    "finalizers_changed",
    "finalizers_of",
    "find_condition",
    "generation_changed",
    "has_condition",
    "has_finalizer",
    "hosted",
    "is_deleting",
    "is_owned_by",
    "labels_changed",
    "managed_fields_of",
    "mark_ready",
    "mark_reconciling",
    "mark_stalled",
    "metadata_of",
    "own",
    "owner_reference",
    "owners_of",
    "parse_address",
    "read",
    "redact",
    "redact_text",
    "remove_condition",
    "remove_finalizer",
    "resource_of",
    "run",
    "run_manager",
    "serve",
    "serve_metrics",
    "set_condition",
    "sources_of",
    "spec_or_metadata_changed",
    "spread",
    "stop_on_signals",
    "to_label",
    "to_owner",
    "to_same_name",
    "wire",
    "within",
    "without_managed_fields",
]
