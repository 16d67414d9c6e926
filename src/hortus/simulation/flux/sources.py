"""The simulated source-controller: it fetches the chart of each OCIRepository.

It owns: the finalizer and status of OCIRepositories.
It watches: OCIRepositories. The credentials and authorities that one names are read with each fetch.
It never: keeps a chart over a restart. Until it is fetched again its releases stay as they are.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Final

from hortus.engine import Cache, Result, remove_finalizer
from hortus.engine.finalizers import add_finalizer, is_deleting
from hortus.kube import METADATA_NETWORKS, Client, durations
from hortus.kube.clock import Clock
from hortus.kube.errors import KubeError, NotFound
from hortus.kube.objects import Object, ObjectKey, Resource, format_time
from hortus.render.artifacts import ArtifactError, TransferSettings
from hortus.render.helm import ChartError, ChartSource
from hortus.render.oci import BadCredentials, BadReference, CredentialStore, OciClient, OciSettings, parse_reference
from hortus.simulation.flux.kinds import FINALIZER, OCI_REPOSITORIES
from hortus.simulation.flux.reports import differs, is_requested, report
from hortus.simulation.flux.settings import FluxSimulationSettings

SECRETS: Final = Resource("", "v1", "secrets", "Secret")
_DOCKER_CONFIG: Final = ".dockerconfigjson"


class SourceController:
    """Reconciles one OCIRepository at a time."""

    def __init__(self, client: Client, *, repositories: Cache, settings: FluxSimulationSettings, clock: Clock) -> None:
        self._client = client
        self._repositories = repositories
        self._settings = settings
        self._clock = clock
        self.charts: dict[str, ChartSource] = {}
        """By the digest of their manifest."""
        self.on_chart: Callable[[ObjectKey], None] = lambda key: None
        """Called when the chart of an OCIRepository is there."""

    async def reconcile(self, key: ObjectKey) -> Result | None:
        obj = self._repositories.get(key)
        if obj is None:
            self._forget_charts()
            return None
        if is_deleting(obj):
            await remove_finalizer(self._client, OCI_REPOSITORIES, obj, FINALIZER)
            return None
        obj = await add_finalizer(self._client, OCI_REPOSITORIES, obj, FINALIZER)
        self._repositories.learn(obj)
        spec = obj["spec"]
        if spec.get("suspend"):
            return None
        interval = Result(requeue_after=durations.seconds(spec.get("interval") or "10m"))
        pinned = (spec.get("ref") or {}).get("digest")
        if pinned in self.charts and _is_fetched(obj, pinned) and not is_requested(obj):
            return interval
        try:
            digest, size = await self._fetch(obj, key.namespace)
        except (ArtifactError, BadReference, BadCredentials, ChartError, KubeError) as error:
            await self._write(obj, reason="OCIArtifactPullFailed", message=str(error), ready=False)
            return Result(requeue_after=self._settings.retry)
        artifact = {"revision": digest, "digest": digest, "size": size, "lastUpdateTime": self._time_of(obj, digest)}
        await self._write(obj, message=f"stored artifact for digest '{digest}'", ready=True, artifact=artifact)
        self.on_chart(key)
        return interval

    async def _fetch(self, obj: Object, namespace: str) -> tuple[str, int]:
        spec = obj["spec"]
        pull = await self._part(spec.get("secretRef"), _DOCKER_CONFIG, namespace)
        ca = await self._part(spec.get("certSecretRef"), "ca.crt", namespace)
        named, ref = spec["url"].removeprefix("oci://"), spec.get("ref") or {}
        reference = parse_reference(f"{named}@{ref['digest']}" if "digest" in ref else f"{named}:{ref.get('tag')}")
        plain = frozenset({named.partition("/")[0]}) if spec.get("insecure") else frozenset()
        settings = OciSettings(transfer=TransferSettings(deny=METADATA_NETWORKS, ca=ca, plain_http=plain, attempts=1))
        store = CredentialStore.from_docker_config(pull) if pull else None
        async with OciClient(settings=settings, credentials=store) as registry:
            chart = await registry.chart(reference)
        self.charts[chart.digest] = ChartSource.from_archive(chart.content)
        return chart.digest, len(chart.content)

    def _forget_charts(self) -> None:
        """Drop the charts that no OCIRepository has any more."""
        living = {digest for obj in self._repositories.values() for digest in _digests(obj)}
        for digest in self.charts.keys() - living:
            del self.charts[digest]

    async def _part(self, ref: Object | None, name: str, namespace: str) -> bytes:
        """One value of the Secret that a field refers to; empty without a reference."""
        if not ref:
            return b""
        found = await self._client.get(SECRETS, ref["name"], namespace)
        return base64.b64decode((found.get("data") or {}).get(name) or "")

    def _time_of(self, obj: Object, digest: str) -> str:
        found = (obj.get("status") or {}).get("artifact") or {}
        return found["lastUpdateTime"] if found.get("revision") == digest else format_time(self._clock.now())

    async def _write(
        self, obj: Object, *, message: str, ready: bool, reason: str = "Succeeded", **more: Object
    ) -> None:
        patch = report(obj, now=self._clock.now(), reason=reason, message=message, ready=ready, **more)
        if not differs(obj, patch):
            return
        metadata = obj["metadata"]
        try:
            await self._client.patch(
                OCI_REPOSITORIES, metadata["name"], patch, metadata["namespace"], subresource="status"
            )
        except NotFound:
            return


def _digests(obj: Object) -> tuple[str | None, str | None]:
    """The digests of its chart that an OCIRepository asks for and has."""
    artifact = (obj.get("status") or {}).get("artifact") or {}
    return (obj["spec"].get("ref") or {}).get("digest"), artifact.get("revision")


def _is_fetched(obj: Object, digest: str) -> bool:
    status = obj.get("status") or {}
    seen = status.get("observedGeneration") == obj["metadata"].get("generation")
    return seen and (status.get("artifact") or {}).get("revision") == digest
