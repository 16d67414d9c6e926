'''The controller engine: watches in, reconciles out, and everything a process of controllers needs around that.

A complete controller, small but with all the parts. It gives each Greeting a ConfigMap and says so in its status:

    from hortus.engine import Manager, Result, Terminal, Watch, generation_changed, to_owner
    from hortus.kube import Client, Object, ObjectKey, Resource

    GREETINGS = Resource("example.org", "v1", "greetings", "Greeting")
    CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")


    class GreetingReconciler:
        """Owns the ConfigMap of the same name. Never touches the spec of a Greeting."""

        def __init__(self, client: Client, greetings: Cache, configmaps: Cache) -> None:
            self._client = client
            self._greetings = greetings
            self._configmaps = configmaps

        async def reconcile(self, key: ObjectKey) -> Result | None:
            greeting = self._greetings.get(key)  # read only, and maybe a moment old
            if greeting is None:
                return None  # gone; the garbage collector takes the ConfigMap
            text = greeting["spec"].get("text")
            if not text:
                raise Terminal("spec.text is empty: give it a text", reason="NoText")
            if key not in self._configmaps:
                made = await self._client.create(CONFIGMAPS, configmap_for(greeting))
                self._configmaps.learn(made)
            return Result(requeue_after=3600)


    async def run(client: Client) -> None:
        manager = Manager(client)
        greetings = manager.cache(GREETINGS, namespace="default")
        configmaps = manager.cache(CONFIGMAPS, namespace="default")
        manager.controller(
            "greeting",
            GreetingReconciler(client, greetings, configmaps),
            sources=[
                Watch(greetings, when=generation_changed),
                Watch(configmaps, to=to_owner(GREETINGS)),
            ],
            workers=10,
        )
        await manager.run()  # until manager.stop()

In a test the same manager runs on `hortus.testing.FakeClock`, inside `async with manager.running():`.

- **What a reconcile may answer** (`outcomes`): `None` or `Result(requeue_after=seconds)`; `Retry` and `Terminal` are
  raised. Whatever else is raised is retried with back-off. A timed answer replaces the one of the run before.
- **What it reads** (`cache`): objects as they are in the cache, read only. `learn` the answers to your own writes.
- **What makes it run** (`sources`, `predicates`): `Watch` of its own kind, `Watch(..., to=...)` of other kinds,
  `Trigger`, `Every`.
- **In which order** (`queue`): people before retries before the initial list before resyncs; one worker to an object.
- **In one process** (`manager`): start, stop, leadership, servers.
'''

from hortus.engine.backoff import Backoff, spread
from hortus.engine.cache import Cache, Change, copy_of
from hortus.engine.caches import Caches, Selection
from hortus.engine.controller import Assignment, Controller, Reconciler
from hortus.engine.indexes import (
    by_annotation,
    by_label,
    by_namespace,
    by_owner_uid,
    managed_fields_of,
    without_managed_fields,
)
from hortus.engine.lanes import Flows
from hortus.engine.manager import LeadershipLost, Manager
from hortus.engine.metrics import EngineMetrics
from hortus.engine.outcomes import DONE, Actor, DeadlineExceeded, ReconcileError, Result, Retry, Terminal
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
from hortus.engine.queue import Priority, Queue, QueueClosed
from hortus.engine.sources import Every, Source, Trigger, Watch, to_label, to_owner, to_same_name

__all__ = [
    "DONE",
    "Actor",
    "Assignment",
    "Backoff",
    "Cache",
    "Caches",
    "Change",
    "Controller",
    "DeadlineExceeded",
    "EngineMetrics",
    "Every",
    "Flows",
    "LeadershipLost",
    "Manager",
    "Predicate",
    "Priority",
    "Queue",
    "QueueClosed",
    "ReconcileError",
    "Reconciler",
    "Result",
    "Retry",
    "Selection",
    "Source",
    "Terminal",
    "Trigger",
    "Watch",
    "annotation_changed",
    "annotations_changed",
    "by_annotation",
    "by_label",
    "by_namespace",
    "by_owner_uid",
    "copy_of",
    "fields_changed",
    "finalizers_changed",
    "generation_changed",
    "labels_changed",
    "managed_fields_of",
    "spec_or_metadata_changed",
    "spread",
    "to_label",
    "to_owner",
    "to_same_name",
    "without_managed_fields",
]
