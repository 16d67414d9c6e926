"""The simulated helm-controller: it installs the chart of each HelmRelease into the cluster of its kubeconfig.

It owns: the finalizer and status of HelmReleases; in their clusters the objects of charts, and helm's records.
It watches: HelmReleases and OCIRepositories. The Secret with the kubeconfig is read with each reconcile.
It never: touches a HelmRelease that is suspended, but for its finalizer when it is deleted.

It follows fluxcd/helm-controller, `internal/controller/helmrelease_controller.go`, where that decides over objects: a
chart with another name is uninstalled first, and what is deleted without being suspended is uninstalled.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from hortus.engine import Cache, Result, Trigger, remove_finalizer
from hortus.engine.applysets import UnknownKind
from hortus.engine.finalizers import add_finalizer, is_deleting
from hortus.kube import Client, durations, kubeconfig
from hortus.kube.clock import Clock
from hortus.kube.errors import KubeError, NotFound
from hortus.kube.objects import Object, ObjectKey, format_time, key_of
from hortus.render.helm import ChartError, ChartSource
from hortus.simulation.flux.helm import HelmCluster, HelmTarget
from hortus.simulation.flux.kinds import FINALIZER, HELM_RELEASES
from hortus.simulation.flux.reports import differs, is_requested, ready_of, report
from hortus.simulation.flux.settings import FluxSimulationSettings
from hortus.simulation.flux.sources import SECRETS, SourceController

_KEY: Final = "value"
"""Key of a kubeconfig in its Secret, where the HelmRelease names none."""
_FAILURES: Final = (KubeError, ChartError, UnknownKind)

BY_SOURCE: Final = "source"


class _ChartFails(ChartError):
    """A fault of the simulation."""


class HelmController:
    """Reconciles one HelmRelease at a time."""

    def __init__(
        self,
        client: Client,
        *,
        releases: Cache,
        repositories: Cache,
        sources: SourceController,
        settings: FluxSimulationSettings,
        clock: Clock,
    ) -> None:
        self._client = client
        self._releases = releases
        self._repositories = repositories
        self.charts = sources.charts
        self._settings = settings
        self._clock = clock
        self.failing: set[str] = set()
        """Names of charts that cannot be installed."""
        self.on_action: Callable[[str, str], None] = lambda action, chart: None
        """Called with install, upgrade or uninstall, and the name of the chart."""
        self.trigger = Trigger()
        sources.on_chart = self._chart_is_there

    async def reconcile(self, key: ObjectKey) -> Result | None:
        obj = self._releases.get(key)
        if obj is None:
            return None
        if is_deleting(obj):
            return await self._finalize(obj)
        obj = await add_finalizer(self._client, HELM_RELEASES, obj, FINALIZER)
        self._releases.learn(obj)
        if obj["spec"].get("suspend"):
            return None
        source = self._repositories.get(ObjectKey(key.namespace, (obj["spec"].get("chartRef") or {}).get("name", "")))
        digest = ((source or {}).get("status") or {}).get("artifact", {}).get("revision")
        if digest is None:
            message = f"{obj['spec'].get('chartRef')} is not ready: it has no artifact"
            await self._write(obj, reason="SourceNotReady", message=message, ready=False)
            return None
        if (chart := self.charts.get(digest)) is None:
            return None
        return await self._release(obj, chart, digest)

    async def _release(self, obj: Object, chart: ChartSource, digest: str) -> Result:
        name = chart.document("Chart.yaml")["name"]
        history = (obj.get("status") or {}).get("history") or []
        try:
            async with self._cluster(obj) as cluster:
                if name in self.failing:
                    raise _ChartFails(f"{name} cannot be installed")
                before = await cluster.record()
                if before is not None and history and history[0]["chartName"] != name:
                    await cluster.uninstall(before)
                    self.on_action("uninstall", history[0]["chartName"])
                    before = None
                if before is None or not _is_installed(obj, digest):
                    revision = await cluster.install(chart, obj["spec"].get("values") or {}, before)
                    self.on_action("upgrade" if before else "install", name)
                    await self._succeeded(obj, chart, digest, revision)
                else:
                    await cluster.repair(before)
                    await self._served(obj)
        except _FAILURES as error:
            reason = "UpgradeFailed" if history else "InstallFailed"
            await self._write(obj, reason=reason, message=str(error), ready=False)
            return Result(requeue_after=self._settings.retry)
        except kubeconfig.KubeconfigError as error:
            await self._write(obj, reason="RESTClientError", message=str(error), ready=False)
            return Result(requeue_after=self._settings.retry)
        return Result(requeue_after=durations.seconds(obj["spec"].get("interval") or "10m"))

    async def _finalize(self, obj: Object) -> Result | None:
        """Uninstall, unless it is suspended or its cluster is gone, and remove the finalizer."""
        if not obj["spec"].get("suspend"):
            try:
                async with self._cluster(obj) as cluster:
                    if (record := await cluster.record()) is not None:
                        await cluster.uninstall(record)
                        history = (obj.get("status") or {}).get("history") or [{}]
                        self.on_action("uninstall", history[0].get("chartName", ""))
            except _NoKubeconfig:
                pass
            except (*_FAILURES, kubeconfig.KubeconfigError) as error:
                await self._write(obj, reason="UninstallFailed", message=str(error), ready=False)
                return Result(requeue_after=self._settings.retry)
        await remove_finalizer(self._client, HELM_RELEASES, obj, FINALIZER)
        return None

    @asynccontextmanager
    async def _cluster(self, obj: Object) -> AsyncIterator[HelmCluster]:
        """The cluster of a HelmRelease. Raises KubeconfigError, KubeError."""
        target, now = HelmTarget.of(obj), self._clock.now()
        if not (ref := (obj["spec"].get("kubeConfig") or {}).get("secretRef")):
            yield HelmCluster(self._client, target, now=now)
            return
        namespace = key_of(obj).namespace
        origin = f"Secret {namespace}/{ref['name']}"
        try:
            secret = await self._client.get(SECRETS, ref["name"], namespace)
        except NotFound:
            raise _NoKubeconfig(f"{origin} does not exist") from None
        data = base64.b64decode((secret.get("data") or {}).get(ref.get("key") or _KEY) or "")
        access = kubeconfig.from_untrusted(data, origin=origin).access()
        async with Client(access) as client:
            yield HelmCluster(client, target, now=now)

    # The status.

    async def _succeeded(self, obj: Object, chart: ChartSource, digest: str, revision: int) -> None:
        target, metadata, time = HelmTarget.of(obj), chart.document("Chart.yaml"), format_time(self._clock.now())
        version = f"{metadata['version']}+{digest.partition(':')[2][:12]}"
        snapshot = {
            "name": target.name,
            "namespace": target.namespace,
            "version": revision,
            "chartName": metadata["name"],
            "chartVersion": version,
            "ociDigest": digest,
            "status": "deployed",
            "lastDeployed": time,
        }
        action = "install" if revision == 1 else "upgrade"
        done = f"Helm {action} succeeded for release {target.namespace}/{target.name}.v{revision}"
        await self._write(
            obj,
            reason=f"{action.capitalize()}Succeeded",
            message=f"{done} with chart {metadata['name']}@{version}",
            ready=True,
            history=[snapshot],
            storageNamespace=target.storage,
            lastAttemptedRevision=version,
            lastAttemptedRevisionDigest=digest,
            lastAttemptedReleaseAction=action,
        )

    async def _served(self, obj: Object) -> None:
        """Note a request of somebody that changed nothing."""
        if is_requested(obj):
            found = ready_of(obj)
            await self._write(obj, reason=found["reason"], message=found["message"], ready=True)

    async def _write(self, obj: Object, *, reason: str, message: str, ready: bool, **more: Any) -> None:
        patch = report(obj, now=self._clock.now(), reason=reason, message=message, ready=ready, **more)
        if not differs(obj, patch):
            return
        key = key_of(obj)
        try:
            written = await self._client.patch(HELM_RELEASES, key.name, patch, key.namespace, subresource="status")
        except NotFound:
            return
        self._releases.learn(written)

    def _chart_is_there(self, source: ObjectKey) -> None:
        for key in self._releases.keys_by(BY_SOURCE, str(source)):
            self.trigger.fire(key)


class _NoKubeconfig(kubeconfig.KubeconfigError):
    """The Secret is gone, and with it the cluster."""


def source_of(release: Object) -> list[str]:
    """The OCIRepository that a HelmRelease names: the index of their cache."""
    ref = (release.get("spec") or {}).get("chartRef") or {}
    return [f"{release['metadata']['namespace']}/{ref.get('name', '')}"]


def _is_installed(obj: Object, digest: str) -> bool:
    """Reports whether the last action installed this chart by this spec."""
    status = obj.get("status") or {}
    history = status.get("history") or [{}]
    seen = status.get("observedGeneration") == obj["metadata"].get("generation")
    return bool(seen and history[0].get("ociDigest") == digest and ready_of(obj).get("status") == "True")
