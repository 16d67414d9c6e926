"""Installs and removes the chart's objects by server-side apply, and waits until they work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from hortus.kube import Client, Resource
from hortus.kube.discovery import Discovery, UnknownResource
from hortus.kube.errors import NotFound
from hortus.kube.objects import GroupVersionKind, Object
from hortus.terminal import EXIT_TIMEOUT, CommandError

FIELD_MANAGER = "hortus-install"
KEEP = "helm.sh/resource-policy"
_CRDS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")

Tell = Callable[[str], None]


class Installation:
    """The objects of one installation on one cluster."""

    def __init__(self, client: Client, objects: Sequence[Object], tell: Tell) -> None:
        self._client = client
        self._objects = objects
        self._tell = tell

    async def apply(self, namespace: str = "") -> None:
        """Make every object as it should be, and `namespace` before them. Raises KubeError, CommandError."""
        if namespace and await self._lacks(namespace):
            await self._client.apply(_NAMESPACES, {"metadata": {"name": namespace}}, field_manager=FIELD_MANAGER)
            self._tell(f"namespace/{namespace} created")
        served = await Discovery.look(self._client)
        for obj in self._objects:
            resource = self._resource(served, obj)
            before = await self._version(resource, obj)
            after = await self._client.apply(resource, obj, field_manager=FIELD_MANAGER, force=True)
            self._tell(f"{_title(obj)} {_verb(before, after['metadata']['resourceVersion'])}")

    async def remove(self) -> None:
        """Delete every object but those that are to be kept. Raises KubeError."""
        served = await Discovery.look(self._client)
        for obj in reversed(self._objects):
            metadata = obj["metadata"]
            if (metadata.get("annotations") or {}).get(KEEP) == "keep":
                self._tell(f"{_title(obj)} kept")
                continue
            try:
                resource = self._resource(served, obj)
                await self._client.delete(resource, metadata["name"], metadata.get("namespace", ""))
            except (NotFound, CommandError):
                self._tell(f"{_title(obj)} was not there")
            else:
                self._tell(f"{_title(obj)} deleted")

    async def ready(self, timeout: float) -> None:
        """Return when the CRDs are served and the Deployment is rolled out. Raises CommandError after `timeout` s."""
        waiting = ""
        try:
            async with asyncio.timeout(timeout):
                for obj in self._objects:
                    waiting = _title(obj)
                    if obj["kind"] == _CRDS.kind:
                        await self._until(_CRDS, obj, _established)
                    elif obj["kind"] == _DEPLOYMENTS.kind:
                        self._tell(f"waiting for {waiting}")
                        await self._until(_DEPLOYMENTS, obj, _rolled_out)
        except TimeoutError:
            raise CommandError(
                f"{waiting} was not ready within {timeout:g} s; see: kubectl describe and kubectl logs of its pods",
                code=EXIT_TIMEOUT,
            ) from None

    async def _until(self, resource: Resource, obj: Object, holds: Callable[[Object], bool]) -> None:
        metadata = obj["metadata"]
        place = metadata.get("namespace", "")
        async with self._client.watch(resource, place, name=metadata["name"], initial_events=True) as events:
            async for event in events:
                if event.type in ("ADDED", "MODIFIED") and holds(event.object):
                    return

    async def _lacks(self, namespace: str) -> bool:
        try:
            await self._client.get(_NAMESPACES, namespace, metadata_only=True)
        except NotFound:
            return True
        return False

    async def _version(self, resource: Resource, obj: Object) -> str:
        metadata = obj["metadata"]
        try:
            found = await self._client.get(
                resource, metadata["name"], metadata.get("namespace", ""), metadata_only=True
            )
        except NotFound:
            return ""
        return str(found["metadata"]["resourceVersion"])

    def _resource(self, served: Discovery, obj: Object) -> Resource:
        group, _, version = obj["apiVersion"].rpartition("/")
        try:
            return served.kind(GroupVersionKind(group, version, obj["kind"])).resource
        except UnknownResource:
            raise CommandError(
                f"{_title(obj)}: the cluster has no kind {obj['kind']} of {obj['apiVersion']}; install what brings it, "
                "or turn off the value that asks for it"
            ) from None


def _established(crd: Object) -> bool:
    return _holds(crd, "Established")


def _rolled_out(deployment: Object) -> bool:
    """As `kubectl rollout status` judges."""
    status, wanted = deployment.get("status") or {}, deployment["spec"].get("replicas", 1)
    return bool(
        status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
        and status.get("updatedReplicas", 0) >= wanted
        and status.get("replicas", 0) <= status.get("updatedReplicas", 0)
        and status.get("availableReplicas", 0) >= wanted
    )


def _holds(obj: Object, condition: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(found["type"] == condition and found["status"] == "True" for found in conditions)


def _title(obj: Object) -> str:
    metadata = obj["metadata"]
    where = f" in {metadata['namespace']}" if metadata.get("namespace") else ""
    return f"{obj['kind'].lower()}/{metadata['name']}{where}"


def _verb(before: str, after: str) -> str:
    return "created" if not before else "unchanged" if before == after else "configured"
