"""The simulated topology, control plane and infrastructure controllers of Cluster API, in one.

It owns: the finalizer, the references, the endpoint and the status of Clusters with a topology; their control plane and
infrastructure objects; the annotation with pending hooks; workload clusters, their Secrets and their nodes.
It watches: Clusters, ClusterClasses, control plane and infrastructure objects of Clusters.
It never: touches a classic Cluster, changes a version while BeforeClusterUpgrade holds it up, or calls a hook twice
that was answered.

Progress lies in the objects: a version in the spec of the control plane and in its status, and the hooks that are still
to be called in an annotation of the Cluster, where Cluster API keeps them as well. Only durations begin again with the
process.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from hortus.engine import Cache, Result, remove_finalizer
from hortus.engine.finalizers import add_finalizer
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey, Resource, key_of
from hortus.simulation.capi import topology as decisions
from hortus.simulation.capi.definitions import MANAGER
from hortus.simulation.capi.extensions import HookError, Hooks
from hortus.simulation.capi.kinds import CLUSTER_FINALIZER, CLUSTERS, PENDING_HOOKS
from hortus.simulation.capi.settings import CapiSettings
from hortus.simulation.capi.status import ClusterPhase, StatusOf
from hortus.simulation.capi.topology import Topology, TopologyError
from hortus.simulation.capi.workload import CapiWorkloads

AFTER_INITIALIZED: Final = "AfterControlPlaneInitialized"
BEFORE_UPGRADE: Final = "BeforeClusterUpgrade"
AFTER_UPGRADE: Final = "AfterClusterUpgrade"
_PORT: Final = 6443


class _Parts(NamedTuple):
    """The objects of one Cluster during one reconcile."""

    cluster: Object
    topology: Topology
    cluster_class: Object
    infrastructure: Object
    control_plane: Object


class ClusterTopologyController:
    """Reconciles one Cluster at a time."""

    def __init__(
        self,
        client: Client,
        *,
        clusters: Cache,
        classes: Cache,
        hooks: Hooks,
        workloads: CapiWorkloads,
        settings: CapiSettings,
        clock: Clock,
    ) -> None:
        self._client = client
        self._clusters = clusters
        self._classes = classes
        self._hooks = hooks
        self._workloads = workloads
        self._settings = settings
        self._clock = clock
        self._begun: dict[tuple[str, str], float] = {}
        """By uid and step: the time at which it began."""

    async def reconcile(self, key: ObjectKey) -> Result | None:
        cluster = self._clusters.get(key)
        if cluster is None:
            return None
        if cluster["metadata"].get("deletionTimestamp"):
            await self._delete(cluster, key)
            return None
        found = decisions.topology_of(cluster)
        if found is None or decisions.is_paused(cluster):
            return None
        cluster = await self._hold(cluster)
        status = StatusOf(cluster, now=self._clock.now())
        try:
            result = await self._advance(cluster, found, status)
        except TopologyError as error:
            status.blocked("TopologyReconcileFailed", str(error))
            result = None
        except HookError as error:
            status.blocked("LifecycleHookFailed", str(error))
            result = Result(requeue_after=self._settings.retry)
        await self._write(key, status)
        return result

    async def _advance(self, cluster: Object, topology: Topology, status: StatusOf) -> Result | None:
        cluster_class = self._classes.get(topology.class_key)
        if cluster_class is None:
            raise TopologyError(f"ClusterClass {topology.class_key} does not exist: create it, or name another class")
        parts = await self._made(cluster, topology, cluster_class)
        parts = parts._replace(cluster=await self._referred(parts))
        wait = await self._provision(parts, status) or await self._initialize(parts, status)
        if wait is not None:
            return wait
        # Also later: the Secret is written again where it is gone or leads nowhere.
        await self._workloads.ensure(parts.cluster)
        if self._settings.nodes:
            await self._workloads.join_nodes(parts.cluster, parts.control_plane["status"]["version"])
        cluster = await self._call_pending(parts.cluster, AFTER_INITIALIZED)
        return await self._upgrade(parts._replace(cluster=cluster), status)

    # Objects.

    async def _made(self, cluster: Object, topology: Topology, cluster_class: Object) -> _Parts:
        infrastructure = await self._clone(cluster, topology, cluster_class, "infrastructure", "infrastructureRef")
        control_plane = await self._clone(cluster, topology, cluster_class, "controlPlane", "controlPlaneRef")
        return _Parts(cluster, topology, cluster_class, infrastructure, control_plane)

    async def _clone(self, cluster: Object, topology: Topology, cluster_class: Object, part: str, ref: str) -> Object:
        """The object of one part: the one that the Cluster refers to, or one made from the template of the class."""
        name, namespace = cluster["metadata"]["name"], cluster["metadata"]["namespace"]
        referred = decisions.referenced(cluster, ref)
        if referred is not None and (live := await self._live(*referred, namespace)) is not None:
            return live
        resource, template = decisions.template_of(cluster_class, part)
        source = await self._live(resource, template, topology.class_key.namespace)
        if source is None:
            raise TopologyError(f"{resource.kind} {topology.class_key.namespace}/{template} does not exist: create it")
        version = {"version": topology.version} if part == "controlPlane" else {}
        made = decisions.made_from(source, name, cluster, **version)
        kind = Resource(resource.group, resource.version, f"{made['kind'].lower()}s", made["kind"])
        if (live := await self._live(kind, name, namespace)) is not None:
            return live
        return await self._client.create(kind, made, field_manager=MANAGER)

    async def _live(self, resource: Resource, name: str, namespace: str) -> Object | None:
        try:
            return await self._client.get(resource, name, namespace)
        except NotFound:
            return None

    async def _referred(self, parts: _Parts) -> Object:
        """The Cluster with references to its objects."""
        wanted = {
            field: decisions.reference_to(obj, is_v1beta2=parts.topology.is_v1beta2)
            for field, obj in (("infrastructureRef", parts.infrastructure), ("controlPlaneRef", parts.control_plane))
        }
        spec = parts.cluster["spec"]
        missing = {field: value for field, value in wanted.items() if not spec.get(field)}
        return await self._patch(parts.cluster, {"spec": missing}) if missing else parts.cluster

    # Provisioning.

    async def _provision(self, parts: _Parts, status: StatusOf) -> Result | None:
        infrastructure = parts.infrastructure
        if _is_provisioned(infrastructure):
            status.infrastructure_ready()
            return None
        status.phase(ClusterPhase.PROVISIONING)
        wait = self._takes(parts.cluster, "infrastructure", self._settings.infrastructure)
        if wait > 0:
            return Result(requeue_after=wait)
        host = f"{parts.cluster['metadata']['name']}.{parts.cluster['metadata']['namespace']}.example.org"
        endpoint = {"spec": {"controlPlaneEndpoint": {"host": host, "port": _PORT}}}
        await self._patch(infrastructure, endpoint)
        await self._patch(
            infrastructure, {"status": {"ready": True, "initialization": {"provisioned": True}}}, subresource="status"
        )
        await self._patch(parts.cluster, endpoint)
        return Result(requeue_after=0)

    async def _initialize(self, parts: _Parts, status: StatusOf) -> Result | None:
        if _is_initialized(parts.control_plane):
            status.control_plane_ready()
            return None
        status.phase(ClusterPhase.PROVISIONING)
        wait = self._takes(parts.cluster, "control plane", self._settings.control_plane)
        if wait > 0:
            return Result(requeue_after=wait)
        await self._workloads.ensure(parts.cluster)
        version = parts.control_plane["spec"]["version"]
        await self._patch(
            parts.control_plane,
            {
                "status": {
                    "ready": True,
                    "initialized": True,
                    "initialization": {"controlPlaneInitialized": True},
                    "version": version,
                }
            },
            subresource="status",
        )
        return Result(requeue_after=0)

    # Upgrades.

    async def _upgrade(self, parts: _Parts, status: StatusOf) -> Result | None:
        wanted, plane = parts.topology.version, parts.control_plane
        at, towards = plane["status"]["version"], plane["spec"]["version"]
        if at != towards:
            status.upgrading(at, towards)
            wait = self._takes(parts.cluster, f"upgrade {towards}", self._settings.upgrade)
            if wait > 0:
                return Result(requeue_after=wait)
            await self._patch(plane, {"status": {"version": towards}}, subresource="status")
            return Result(requeue_after=0)
        if at == wanted:
            await self._call_pending(parts.cluster, AFTER_UPGRADE, kubernetesVersion=wanted)
            status.settled()
            return None
        version = decisions.next_version(at, wanted, parts.cluster_class)
        cluster = parts.cluster
        if AFTER_UPGRADE not in _pending(cluster):
            # Otherwise a further step of a chain that was let through as a whole.
            answer = await self._hooks.call(
                BEFORE_UPGRADE, cluster, fromKubernetesVersion=at, toKubernetesVersion=wanted
            )
            if answer.retry_after > 0:
                status.held(BEFORE_UPGRADE, answer.message)
                return Result(requeue_after=answer.retry_after * self._settings.hook_wait)
            await self._mark(cluster, {*_pending(cluster), AFTER_UPGRADE})
        status.upgrading(at, version)
        await self._patch(plane, {"spec": {"version": version}})
        return Result(requeue_after=0)

    async def _call_pending(self, cluster: Object, hook: str, **fields: Any) -> Object:
        """Call a hook that is pending, once: what was answered is not pending any more. Raises HookError."""
        pending = _pending(cluster)
        if hook not in pending:
            return cluster
        await self._hooks.call(hook, cluster, **fields)
        return await self._mark(cluster, pending - {hook})

    # The Cluster.

    async def _hold(self, cluster: Object) -> Object:
        metadata = cluster["metadata"]
        if CLUSTER_FINALIZER in (metadata.get("finalizers") or ()):
            return cluster
        # Before the finalizer: a new Cluster is recognised by its absence.
        cluster = await self._mark(cluster, {*_pending(cluster), AFTER_INITIALIZED})
        cluster = await add_finalizer(self._client, CLUSTERS, cluster, CLUSTER_FINALIZER)
        self._clusters.learn(cluster)
        return cluster

    async def _mark(self, cluster: Object, hooks: set[str]) -> Object:
        return await self._patch(
            cluster, {"metadata": {"annotations": {PENDING_HOOKS: ",".join(sorted(hooks)) or None}}}
        )

    async def _delete(self, cluster: Object, key: ObjectKey) -> None:
        if CLUSTER_FINALIZER not in (cluster["metadata"].get("finalizers") or ()):
            return
        status = StatusOf(cluster, now=self._clock.now())
        status.phase(ClusterPhase.DELETING)
        await self._write(key, status)
        # The control plane before its infrastructure, as Cluster API does.
        for field in ("controlPlaneRef", "infrastructureRef"):
            referred = decisions.referenced(cluster, field)
            if referred is not None and await self._live(*referred, key.namespace) is not None:
                await self._client.delete(referred[0], referred[1], key.namespace)
        await self._workloads.remove(key)
        uid = cluster["metadata"]["uid"]
        self._begun = {step: time for step, time in self._begun.items() if step[0] != uid}
        await remove_finalizer(self._client, CLUSTERS, cluster, CLUSTER_FINALIZER)

    async def _write(self, key: ObjectKey, status: StatusOf) -> None:
        cluster = self._clusters.get(key)
        if cluster is not None and status.differs(cluster):
            await self._patch(cluster, {"status": status.fields}, subresource="status")

    def _takes(self, cluster: Object, step: str, seconds: float) -> float:
        """Seconds that are left of a step, which begins when this is asked first."""
        now = self._clock.monotonic()
        return self._begun.setdefault((cluster["metadata"]["uid"], step), now) + seconds - now

    async def _patch(self, obj: Object, patch: Object, *, subresource: str = "") -> Object:
        group, _, version = obj["apiVersion"].rpartition("/")
        resource = Resource(group, version, f"{obj['kind'].lower()}s", obj["kind"])
        key = key_of(obj)
        written = await self._client.patch(
            resource, key.name, patch, key.namespace, subresource=subresource, field_manager=MANAGER
        )
        if resource == CLUSTERS:
            self._clusters.learn(written)
        return written


def _pending(cluster: Object) -> set[str]:
    annotations = cluster["metadata"].get("annotations") or {}
    return set(filter(None, annotations.get(PENDING_HOOKS, "").split(",")))


def _is_provisioned(infrastructure: Object) -> bool:
    return _has(infrastructure, "ready", "provisioned")


def _is_initialized(control_plane: Object) -> bool:
    return _has(control_plane, "initialized", "controlPlaneInitialized")


def _has(obj: Object, field: str, initialization: str) -> bool:
    """A fact of the status, in the form of v1beta1 or that of v1beta2."""
    status = obj.get("status") or {}
    return bool(status.get(field) or (status.get("initialization") or {}).get(initialization))
