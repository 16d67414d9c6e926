"""Charts in a cluster as helm-controller installs them: objects, and helm's records of them.

A record is a Secret in helm's own form (helm.sh/helm, `pkg/storage/driver/secrets.go`); the last one of a release is
kept. Objects that exist are taken over, and those of the record that the new chart does not have are deleted.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from hortus.engine.applysets import DiscoveredKinds, UnknownKind
from hortus.kube import Client, yaml
from hortus.kube.errors import AlreadyExists, NotFound
from hortus.kube.objects import GroupVersionKind, Object, Resource, format_time
from hortus.render.helm import Capabilities, ChartOptions, ChartSource, Release, load_files, render_chart
from hortus.simulation.flux.kinds import HELM_CONTROLLER, HELM_LABEL_GROUP

_SECRETS: Final = Resource("", "v1", "secrets", "Secret")
_RECORD_TYPE: Final = "helm.sh/release.v1"


class HelmTarget(NamedTuple):
    """The place of a release, as the spec of its HelmRelease says."""

    owner: str
    """Namespace and name of the HelmRelease."""
    name: str
    namespace: str
    storage: str
    """The namespace of helm's records."""
    labels: Mapping[str, str]

    @classmethod
    def of(cls, obj: Object) -> HelmTarget:
        metadata, spec = obj["metadata"], obj["spec"]
        namespace = spec.get("targetNamespace") or metadata["namespace"]
        common = (spec.get("commonMetadata") or {}).get("labels") or {}
        origin = {f"{HELM_LABEL_GROUP}/{field}": metadata[field] for field in ("name", "namespace")}
        name = spec.get("releaseName") or "-".join(filter(None, (spec.get("targetNamespace"), metadata["name"])))
        storage = spec.get("storageNamespace") or metadata["namespace"]
        return cls(f"{metadata['namespace']}/{metadata['name']}", name, namespace, storage, {**origin, **common})


class HelmRecord(NamedTuple):
    """The last record of a release."""

    revision: int
    objects: list[Object]


class HelmCluster:
    """One cluster. `target` is the release in it."""

    def __init__(self, client: Client, target: HelmTarget, *, now: float) -> None:
        self._client = client
        self._target = target
        self._now = now
        self._kinds = DiscoveredKinds(client)

    async def record(self) -> HelmRecord | None:
        """The last record; None where the release is not installed."""
        found = await self._client.list(_SECRETS, self._target.storage, labels=self._selector)
        last = max(found.items, key=lambda one: int(one["metadata"]["labels"]["version"]), default=None)
        if last is None:
            return None
        document = orjson.loads(gzip.decompress(base64.b64decode(base64.b64decode(last["data"]["release"]))))
        return HelmRecord(document["version"], list(yaml.load_all(document["manifest"])))

    async def install(self, chart: ChartSource, values: dict[str, Any], before: HelmRecord | None) -> int:
        """Install the chart, or upgrade to it; the revision of its record. Raises ChartError, KubeError."""
        objects = await self._rendered(chart, values, before)
        for one in objects:
            resource = await self._resource(one)
            await self._client.apply(resource, self._marked(one, resource), field_manager=HELM_CONTROLLER)
        staying = {self._identity(one) for one in objects}
        await self._delete(one for one in (before.objects if before else ()) if self._identity(one) not in staying)
        revision = before.revision + 1 if before else 1
        await self._store(chart, values, objects, revision)
        return revision

    async def repair(self, record: HelmRecord) -> None:
        """Make the objects of a record as they were installed. Raises KubeError."""
        for one in record.objects:
            resource = await self._resource(one)
            await self._client.apply(resource, self._marked(one, resource), field_manager=HELM_CONTROLLER)

    async def uninstall(self, record: HelmRecord) -> None:
        """Delete the objects of the last record, and all records. Raises KubeError."""
        await self._delete(record.objects)
        await self._client.delete_collection(_SECRETS, self._target.storage, labels=self._selector)

    # Parts.

    @property
    def _selector(self) -> str:
        return f"owner=helm,name={self._target.name}"

    async def _rendered(self, chart: ChartSource, values: dict[str, Any], before: HelmRecord | None) -> list[Object]:
        served = orjson.loads((await self._client.request("GET", "/version")).body)
        versions = await self._kinds.api_versions()
        rendered = render_chart(
            load_files(list(chart.files)),
            values,
            release=Release(
                self._target.name, self._target.namespace, before.revision + 1 if before else 1, before is not None
            ),
            capabilities=Capabilities(served["gitVersion"], tuple(sorted(versions))),
            options=ChartOptions(include_crds=True),
        )
        return list(rendered.objects)

    async def _resource(self, obj: Object) -> Resource:
        group, _, version = obj["apiVersion"].rpartition("/")
        gvk = GroupVersionKind(group, version, obj["kind"])
        try:
            return await self._kinds.resource(gvk)
        except UnknownKind:
            # A definition of the same chart may have brought it.
            return await self._kinds.resource(gvk, fresh=True)

    def _marked(self, obj: Object, resource: Resource) -> Object:
        metadata = dict(obj["metadata"])
        metadata["labels"] = {
            **(metadata.get("labels") or {}),
            "app.kubernetes.io/managed-by": "Helm",
            **self._target.labels,
        }
        metadata["annotations"] = {
            **(metadata.get("annotations") or {}),
            "meta.helm.sh/release-name": self._target.name,
            "meta.helm.sh/release-namespace": self._target.namespace,
        }
        if resource.namespaced:
            metadata["namespace"] = metadata.get("namespace") or self._target.namespace
        return {**obj, "metadata": metadata}

    def _identity(self, obj: Object) -> tuple[str, str, str, str]:
        group = obj["apiVersion"].rpartition("/")[0]
        place = obj["metadata"].get("namespace") or self._target.namespace
        return group, obj["kind"], place, obj["metadata"]["name"]

    async def _delete(self, objects: Iterable[Object]) -> None:
        for one in objects:
            with suppress(NotFound, UnknownKind):
                resource = await self._resource(one)
                place = self._identity(one)[2] if resource.namespaced else ""
                await self._client.delete(resource, one["metadata"]["name"], place)

    async def _store(self, chart: ChartSource, values: Object, objects: list[Object], revision: int) -> None:
        metadata = chart.document("Chart.yaml")
        time = format_time(self._now)
        info = {"first_deployed": time, "last_deployed": time, "deleted": "", "status": "deployed"}
        document = {
            "name": self._target.name,
            "namespace": self._target.namespace,
            "version": revision,
            "info": info,
            "chart": {"metadata": metadata},
            "config": values,
            "manifest": yaml.dump_all(objects),
        }
        packed = base64.b64encode(gzip.compress(msgspec.json.encode(document), mtime=0))
        labels = {"owner": "helm", "name": self._target.name, "status": "deployed", "version": str(revision)}
        name = f"sh.helm.release.v1.{self._target.name}.v{revision}"
        secret = {
            "metadata": {"name": name, "namespace": self._target.storage, "labels": labels},
            "type": _RECORD_TYPE,
            "data": {"release": base64.b64encode(packed).decode()},
        }
        with suppress(AlreadyExists):
            await self._client.create(_SECRETS, secret)
        await self._client.delete_collection(
            _SECRETS, self._target.storage, labels=f"{self._selector},version!={revision}"
        )
