'''The controller engine: watches in, reconciles out, and everything a process of controllers needs around that.

A complete controller, small but with all the parts. It gives each Greeting a ConfigMap and says so in its status:

    import sys

    from hortus.engine import Cache, EventRecorder, Manager, NORMAL, Result, StatusDraft, Terminal, Watch
    from hortus.engine import own, run, run_manager, spec_or_metadata_changed, to_owner
    from hortus.kube import Client, Object, ObjectKey, Resource

    GREETINGS = Resource("example.org", "v1", "greetings", "Greeting")
    CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")


    class GreetingReconciler:
        """Owns the ConfigMap of the same name and the condition Ready. Never touches the spec of a Greeting."""

        def __init__(self, manager: Manager, client: Client, recorder: EventRecorder) -> None:
            self._client = client
            self._recorder = recorder
            self._clock = manager.clock
            self.greetings = manager.cache(GREETINGS, namespace="default")
            self.configmaps = manager.cache(CONFIGMAPS, namespace="default")

        async def reconcile(self, key: ObjectKey) -> Result | None:
            greeting = self.greetings.get(key)  # read only, and maybe a moment old
            if greeting is None:
                return None  # gone; the garbage collector takes the ConfigMap
            draft = StatusDraft(greeting, clock=self._clock)
            try:
                await self._provide(key, greeting)
                draft.ready(reason="Greeted")
            except Terminal as error:
                draft.stalled(reason=error.reason, message=error.message)
                raise
            finally:
                await draft.write(self._client, GREETINGS, cache=self.greetings)  # no call when nothing differs
            return Result(requeue_after=3600)

        async def _provide(self, key: ObjectKey, greeting: Object) -> None:
            text = greeting["spec"].get("text")
            if not text:
                raise Terminal("spec.text is empty: give it a text", reason="NoText")
            if key in self.configmaps:
                return
            wanted: Object = {"metadata": {"name": key.name, "namespace": key.namespace}, "data": {"text": text}}
            own(wanted, greeting)
            self.configmaps.learn(await self._client.create(CONFIGMAPS, wanted))
            self._recorder.event(greeting, NORMAL, "Created", "Created the ConfigMap of the same name")


    def greeter(client: Client) -> Manager:
        manager = Manager(client)
        recorder = EventRecorder(client, component="greeting-controller", clock=manager.clock)
        manager.add_server(recorder)
        reconciler = GreetingReconciler(manager, client, recorder)
        manager.controller(
            "greeting",
            reconciler,
            sources=[
                Watch(reconciler.greetings, when=spec_or_metadata_changed),
                Watch(reconciler.configmaps, to=to_owner(GREETINGS)),
            ],
            workers=10,
        )
        return manager


    async def main() -> int:
        async with Client.from_kubeconfig() as client:
            return await run_manager(greeter(client))  # until SIGTERM


    if __name__ == "__main__":
        sys.exit(run(main))

In a test the same manager runs on `hortus.testing.FakeClock`, inside `async with manager.running():`.

- **What a reconcile may answer** (`outcomes`): `None` or `Result(requeue_after=seconds)`; `Retry` and `Terminal` are
  raised. Whatever else is raised is retried with back-off. A timed answer replaces the one of the run before.
- **What it reads** (`cache`): objects as they are in the cache, read only. `learn` the answers to your own writes.
- **What makes it run** (`sources`, `predicates`): `Watch` of its own kind, `Watch(..., to=...)` of other kinds,
  `Trigger`, `Every`.
- **In which order** (`queue`): people before retries before the initial list before resyncs; one worker to an object.
- **What it writes** (`status`, `conditions`, `apply`, `finalizers`, `owners`): one status write at the end and only
  what differs, server-side apply that is skipped when nothing would change, precise patches.
- **What it says** (`events`, `logging`, `metrics`): nothing secret, by `redaction`; names that existing boards know.
- **In other clusters** (`remote`, `applysets`): thousands of connections and watches; sets applied and pruned.
- **In one process** (`manager`, `process`, `leases`, `shards`, `health`, `shutdown`): start, stop, leadership, servers.
'''

from hortus.engine.apply import Applied, Applier
from hortus.engine.backoff import Backoff, spread
from hortus.engine.cache import Cache, Change, copy_of
from hortus.engine.caches import Caches, Selection
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
from hortus.engine.controller import Assignment, Controller, Reconciler
from hortus.engine.events import NORMAL, WARNING, EventRecorder
from hortus.engine.finalizers import add_finalizer, finalizers_of, has_finalizer, is_deleting, remove_finalizer
from hortus.engine.health import Address, Checks, HealthServer, HttpServer, parse_address, serve_metrics
from hortus.engine.indexes import (
    by_annotation,
    by_label,
    by_namespace,
    by_owner_uid,
    managed_fields_of,
    without_managed_fields,
)
from hortus.engine.lanes import Flows
from hortus.engine.leases import Elector, LeaseTimes
from hortus.engine.logging import LogSettings
from hortus.engine.logging import configure as configure_logging
from hortus.engine.manager import LeadershipLost, Manager, PartEnded
from hortus.engine.metrics import EngineMetrics
from hortus.engine.outcomes import DONE, Actor, DeadlineExceeded, HandedOver, ReconcileError, Result, Retry, Terminal
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
from hortus.engine.process import run, run_manager
from hortus.engine.queue import Priority, Queue, QueueClosed
from hortus.engine.redaction import redact, redact_text
from hortus.engine.scope import current_scope
from hortus.engine.shards import Shards
from hortus.engine.shutdown import cut_on_resume, stop_on_signals
from hortus.engine.sources import Every, Source, Trigger, Watch, to_label, to_owner, to_same_name
from hortus.engine.status import StatusDraft
from hortus.engine.within import within

__all__ = [
    "DONE",
    "FALSE",
    "NORMAL",
    "TRUE",
    "UNKNOWN",
    "WARNING",
    "Actor",
    "Address",
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
    "HttpServer",
    "LeadershipLost",
    "LeaseTimes",
    "LogSettings",
    "Manager",
    "PartEnded",
    "Predicate",
    "Priority",
    "Queue",
    "QueueClosed",
    "ReconcileError",
    "Reconciler",
    "Result",
    "Retry",
    "Selection",
    "Shards",
    "Source",
    "StatusDraft",
    "Terminal",
    "Trigger",
    "Watch",
    "add_finalizer",
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
    "is_deleting",
    "is_owned_by",
    "labels_changed",
    "managed_fields_of",
    "mark_ready",
    "mark_reconciling",
    "mark_stalled",
    "own",
    "owner_reference",
    "owners_of",
    "parse_address",
    "redact",
    "redact_text",
    "remove_condition",
    "remove_finalizer",
    "run",
    "run_manager",
    "serve_metrics",
    "set_condition",
    "spec_or_metadata_changed",
    "spread",
    "stop_on_signals",
    "to_label",
    "to_owner",
    "to_same_name",
    "within",
    "without_managed_fields",
]
