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

In a test the controller runs on a cluster of its own, by the fixture `hortus_cluster` of `hortus.testing`.

- **What a controller is** (`kinds`, `context`, `typed`): a typed object in, a literal list of steps, one status write.
- **What a step returns** (`outcomes`): None to go on, `Result(requeue_after=seconds)` to end the reconcile. It raises
  `StepError`, which becomes condition, event, metric and time of the next attempt. Any other exception is retried with
  back-off.
- **What it reads** (`cache`): objects as they are in the cache, read only.
- **What makes it run** (`sources`, `predicates`): `Watch` of its own kind, `Watch(..., to=...)` of other kinds,
  `Trigger`, `Every`.
- **In which order** (`queue`): people before retries before the initial list before resyncs; one worker to an object.
- **What it writes** (`status`, `conditions`, `apply`, `owning`, `finalizers`): one status write at the end, only what
  differs, server-side apply that is skipped when nothing would change and refuses what others made, precise patches.
- **What it reports** (`events`, `logging`, `metrics`): nothing secret, by `redaction`; names that existing boards know.
- **In other clusters** (`remote`, `applysets`): thousands of connections and watches; sets applied and pruned.
- **Kubeconfig Secrets** (`kubeconfigs`): contents, writes, rotation, proof and repairs, for all domains.
- **In one process** (`hosting`, `manager`, `process`, `leases`, `shards`, `health`): start, stop, leadership, servers.
- **What it may do** (`rbac`, `manifests`): RBAC rules and CRDs that follow from its class, and its `permissions`.

The names below are for controllers and for programs that put their own together; a module's other names are its own.
docs/own-operator.md begins with a whole project.
'''

from typing import TYPE_CHECKING

from hortus.facade import lazy

if TYPE_CHECKING:
    from hortus.engine.apply import Applier
    from hortus.engine.backoff import Backoff
    from hortus.engine.cache import Cache, Change, copy_of
    from hortus.engine.caches import Caches
    from hortus.engine.conditions import FALSE, TRUE, UNKNOWN, ConditionStatus, find_condition, has_condition
    from hortus.engine.context import Announcement, ReconcileContext, Wiring
    from hortus.engine.controller import Controller
    from hortus.engine.events import NORMAL, WARNING, EventRecorder
    from hortus.engine.finalizers import has_finalizer, is_deleting, remove_finalizer
    from hortus.engine.hostflags import HOST_FLAGS
    from hortus.engine.hosting import Host, hosted, serve
    from hortus.engine.indexes import by_label, by_owner_uid, managed_fields_of, without_managed_fields
    from hortus.engine.kinds import KindController, Steps, add_kind, sources_of, wire
    from hortus.engine.logging import LogSettings, configure_logging
    from hortus.engine.manager import Manager
    from hortus.engine.outcomes import DONE, NEVER, Actor, Result, StepError
    from hortus.engine.owners import is_owned_by
    from hortus.engine.predicates import (
        annotations_changed,
        fields_changed,
        generation_changed,
        labels_changed,
        spec_or_metadata_changed,
    )
    from hortus.engine.process import cut_on_resume, run, run_manager
    from hortus.engine.queue import Priority
    from hortus.engine.rbac import Permission
    from hortus.engine.reflector import Selection
    from hortus.engine.runnables import LeadershipLost
    from hortus.engine.sources import Every, Source, Trigger, Watch, to_label, to_owner, to_same_name
    from hortus.engine.typed import NotReadable, TypedCache, metadata_of, read, resource_of
else:
    __getattr__ = lazy(
        __name__,
        {
            "apply": "Applier",
            "backoff": "Backoff",
            "cache": "Cache Change copy_of",
            "caches": "Caches",
            "conditions": "FALSE TRUE UNKNOWN ConditionStatus find_condition has_condition",
            "context": "Announcement ReconcileContext Wiring",
            "controller": "Controller",
            "events": "NORMAL WARNING EventRecorder",
            "finalizers": "has_finalizer is_deleting remove_finalizer",
            "hostflags": "HOST_FLAGS",
            "hosting": "Host hosted serve",
            "indexes": "by_label by_owner_uid managed_fields_of without_managed_fields",
            "kinds": "KindController Steps add_kind sources_of wire",
            "logging": "LogSettings configure_logging",
            "manager": "Manager",
            "outcomes": "DONE NEVER Actor Result StepError",
            "owners": "is_owned_by",
            "predicates": "annotations_changed fields_changed "
            "generation_changed labels_changed spec_or_metadata_changed",
            "process": "cut_on_resume run run_manager",
            "queue": "Priority",
            "rbac": "Permission",
            "reflector": "Selection",
            "runnables": "LeadershipLost",
            "sources": "Every Source Trigger Watch to_label to_owner to_same_name",
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
    "Announcement",
    "Applier",
    "Backoff",
    "Cache",
    "Caches",
    "Change",
    "ConditionStatus",
    "Controller",
    "EventRecorder",
    "Every",
    "Host",
    "KindController",
    "LeadershipLost",
    "LogSettings",
    "Manager",
    "NotReadable",
    "Permission",
    "Priority",
    "ReconcileContext",
    "Result",
    "Selection",
    "Source",
    "StepError",
    "Steps",
    "Trigger",
    "TypedCache",
    "Watch",
    "Wiring",
    "add_kind",
    "annotations_changed",
    "by_label",
    "by_owner_uid",
    "configure_logging",
    "copy_of",
    "cut_on_resume",
    "fields_changed",
    "find_condition",
    "generation_changed",
    "has_condition",
    "has_finalizer",
    "hosted",
    "is_deleting",
    "is_owned_by",
    "labels_changed",
    "managed_fields_of",
    "metadata_of",
    "read",
    "remove_finalizer",
    "resource_of",
    "run",
    "run_manager",
    "serve",
    "sources_of",
    "spec_or_metadata_changed",
    "to_label",
    "to_owner",
    "to_same_name",
    "wire",
    "without_managed_fields",
]
