"""A stand-in for Flux's source-controller and helm-controller: what they do with the objects that they are given.

It fetches charts over HTTPS with the credentials that the objects name, keeps helm's records inside the cluster, and
follows fluxcd/helm-controller, `internal/controller` and `internal/reconcile`, where that decides over objects: it
takes ownership of what exists, deletes on an upgrade what the chart before had, uninstalls first when the chart has
another name, and uninstalls on deletion unless the HelmRelease is suspended.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import orjson
from tests.domains.stacks.addons.world import HOME

from hortus.domains.stacks.flux.objects import HELM_RELEASES, REPOSITORIES
from hortus.engine import Cache, Manager, Watch, without_managed_fields
from hortus.engine.applysets import DiscoveredKinds
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube import Client, Resource
from hortus.kube.errors import NotFound
from hortus.kube.objects import GroupVersionKind, Object, ObjectKey, key_of
from hortus.render.artifacts import TransferSettings
from hortus.render.helm import Capabilities, ChartOptions, ChartSource, Release, load_files, render_chart
from hortus.render.oci import CredentialStore, OciClient, OciSettings, parse_reference

FINALIZER = "finalizers.fluxcd.io"
MANAGER = "helm-controller"
NOW = "2026-01-01T00:00:00Z"


class FluxDouble:
    """Both controllers of one management cluster. `inside` is the workload cluster of every HelmRelease."""

    def __init__(self, client: Client, inside: Client) -> None:
        self.client = client
        self.inside = inside
        self.actions: list[tuple[str, str]] = []
        """install, upgrade and uninstall, with the chart's name."""
        self.failing: set[str] = set()
        """Charts that cannot be installed."""
        self.pulled: list[str] = []
        self._charts: dict[str, ChartSource] = {}
        self._kinds = DiscoveredKinds(inside)
        self._releases: Cache
        self._repositories: Cache

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        manager = Manager(self.client, grace=0.0)
        self._releases = manager.cache(HELM_RELEASES, transform=without_managed_fields)
        self._repositories = manager.cache(REPOSITORIES, transform=without_managed_fields)
        manager.controller("source-controller", _Reconciler(self._pull), sources=[Watch(self._repositories)])
        to = Watch(self._repositories, to=lambda obj: list(self._releases.keys()))
        manager.controller(MANAGER, _Reconciler(self._release), sources=[to, Watch(self._releases)], workers=1)
        async with manager.running():
            yield

    # The source.

    async def _pull(self, key: ObjectKey) -> None:
        obj = self._repositories.get(key)
        if obj is None or obj.get("status", {}).get("observedGeneration") == obj["metadata"]["generation"]:
            return
        spec = obj["spec"]
        pull = await self.client.get(SECRETS, spec["secretRef"]["name"], key.namespace)
        trust = await self.client.get(SECRETS, spec["certSecretRef"]["name"], key.namespace)
        assert pull["type"] == "kubernetes.io/dockerconfigjson"
        settings = OciSettings(transfer=TransferSettings(deny=(), ca=base64.b64decode(trust["data"]["ca.crt"])))
        store = CredentialStore.from_docker_config(base64.b64decode(pull["data"][".dockerconfigjson"]))
        reference = parse_reference(f"{spec['url'].removeprefix('oci://')}@{spec['ref']['digest']}")
        async with OciClient(settings=settings, credentials=store) as registry:
            chart = await registry.chart(reference)
        self.pulled.append(spec["url"])
        self._charts[chart.digest] = ChartSource.from_archive(chart.content)
        await self._report(REPOSITORIES, obj, "Succeeded", artifact={"revision": chart.digest})

    # The release.

    async def _release(self, key: ObjectKey) -> None:
        obj = self._releases.get(key)
        if obj is None:
            return
        metadata, spec = obj["metadata"], obj["spec"]
        if metadata.get("deletionTimestamp"):
            if not spec.get("suspend"):
                await self._uninstall(obj)
            with suppress(NotFound):
                await self.client.patch(HELM_RELEASES, key.name, {"metadata": {"finalizers": None}}, HOME)
            return
        if FINALIZER not in metadata.get("finalizers", ()):
            await self.client.patch(HELM_RELEASES, key.name, {"metadata": {"finalizers": [FINALIZER]}}, HOME)
            return
        if not spec.get("suspend"):
            await self._installed(obj)

    async def _installed(self, obj: Object) -> None:
        spec, status = obj["spec"], obj.get("status", {})
        source = self._repositories.get(ObjectKey(key_of(obj).namespace, spec["chartRef"]["name"]))
        digest = (source or {}).get("status", {}).get("artifact", {}).get("revision")
        chart = self._charts.get(digest or "")
        if chart is None:
            await self._report(HELM_RELEASES, obj, "SourceNotReady", ready=False, seen=False)
            return
        name = chart.document("Chart.yaml")["name"]
        history = status.get("history") or [{}]
        if name in self.failing:
            await self._report(HELM_RELEASES, obj, "InstallFailed", ready=False, message=f"{name} cannot be installed")
            return
        seen = status.get("observedGeneration") == obj["metadata"]["generation"]
        if seen and history[0].get("ociDigest") == digest and status["conditions"][0]["status"] == "True":
            return
        if history[0].get("chartName") not in (None, name):
            await self._uninstall(obj)
        await self._install(obj, chart, name)
        await self._report(HELM_RELEASES, obj, "UpgradeSucceeded", history=[{"chartName": name, "ociDigest": digest}])

    async def _install(self, obj: Object, chart: ChartSource, name: str) -> None:
        spec = obj["spec"]
        secret = await self.client.get(SECRETS, spec["kubeConfig"]["secretRef"]["name"], key_of(obj).namespace)
        assert spec["kubeConfig"]["secretRef"]["key"] in secret["data"]
        rendered = render_chart(
            load_files(list(chart.files)),
            spec.get("values") or {},
            release=Release(spec["releaseName"], spec["targetNamespace"]),
            capabilities=Capabilities("v1.33.1", ()),
            options=ChartOptions(include_crds=True),
        )
        before = await self._record(obj)
        self.actions.append(("upgrade" if before is not None else "install", name))
        made = [_labelled(one, spec) for one in rendered.objects]
        for one in made:
            await self.inside.apply(await self._resource(one), one, field_manager=MANAGER)
        for one in before or ():
            if _identity(one) not in map(_identity, made):
                await self._delete(one)
        data = {"release": base64.b64encode(orjson.dumps(made)).decode()}
        metadata = {
            "name": f"sh.helm.release.v1.{spec['releaseName']}.v1",
            "namespace": spec["storageNamespace"],
            "labels": {"owner": "helm", "name": spec["releaseName"]},
        }
        await self.inside.apply(SECRETS, {"metadata": metadata, "data": data}, field_manager=MANAGER)

    async def _uninstall(self, obj: Object) -> None:
        objects = await self._record(obj)
        if objects is None:
            return
        self.actions.append(("uninstall", obj["metadata"]["annotations"]["fleet.hortus.dev/chart"]))
        for one in objects:
            await self._delete(one)
        spec = obj["spec"]
        await self.inside.delete_collection(SECRETS, spec["storageNamespace"], labels="owner=helm")

    async def _record(self, obj: Object) -> list[Object] | None:
        spec = obj["spec"]
        try:
            found = await self.inside.get(
                SECRETS, f"sh.helm.release.v1.{spec['releaseName']}.v1", spec["storageNamespace"]
            )
        except NotFound:
            return None
        objects: list[Object] = orjson.loads(base64.b64decode(found["data"]["release"]))
        return objects

    async def _delete(self, obj: Object) -> None:
        with suppress(NotFound):
            await self.inside.delete(await self._resource(obj), obj["metadata"]["name"], obj["metadata"]["namespace"])

    async def _resource(self, obj: Object) -> Resource:
        group, _, version = obj["apiVersion"].rpartition("/")
        return await self._kinds.resource(GroupVersionKind(group, version, obj["kind"]))

    async def _report(
        self, resource: Resource, obj: Object, reason: str, *, ready: bool = True, seen: bool = True, **more: Any
    ) -> None:
        condition = {
            "type": "Ready",
            "status": str(ready),
            "reason": reason,
            "message": more.pop("message", "as wanted" if ready else "not as wanted"),
            "lastTransitionTime": NOW,
        }
        status = {"conditions": [condition], **more}
        if seen:
            status["observedGeneration"] = obj["metadata"]["generation"]
        key = key_of(obj)
        with suppress(NotFound):
            await self.client.patch(resource, key.name, {"status": status}, key.namespace, subresource="status")


class _Reconciler:
    def __init__(self, work: Any) -> None:
        self._work = work

    async def reconcile(self, key: ObjectKey) -> None:
        await self._work(key)


def _labelled(obj: Object, spec: Object) -> Object:
    metadata = obj["metadata"]
    labels = {**metadata.get("labels", {}), **spec["commonMetadata"]["labels"]}
    place = metadata.get("namespace") or spec["targetNamespace"]
    return {**obj, "metadata": {**metadata, "namespace": place, "labels": labels}}


def _identity(obj: Object) -> tuple[str, ...]:
    return obj["apiVersion"], obj["kind"], obj["metadata"]["namespace"], obj["metadata"]["name"]


def definitions() -> list[Object]:
    """CRDs of the kinds, which keep every field: the fields are held against Flux's own types elsewhere."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    return [
        {
            "metadata": {"name": f"{one.plural}.{one.group}"},
            "spec": {
                "group": one.group,
                "scope": "Namespaced",
                "names": {"kind": one.kind, "plural": one.plural, "singular": one.kind.lower()},
                "versions": [
                    {
                        "name": one.version,
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": schema},
                        "subresources": {"status": {}},
                    }
                ],
            },
        }
        for one in (HELM_RELEASES, REPOSITORIES)
    ]
