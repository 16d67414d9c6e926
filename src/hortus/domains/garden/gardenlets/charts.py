"""Charts of gardenlets: pulled from OCI registries by digest, and rendered.

A tag is looked up once for each use, and everything after that goes by the digest that it stands for. A chart that was
pulled is kept by its digest. Where the operator has keys, one must have signed this digest, as is checked at each use:
a signature that was withdrawn counts no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from hortus.domains.garden.gardenlets.reading import value_of
from hortus.domains.garden.gardenlets.settings import GardenletSettings
from hortus.domains.garden.kinds.gardenlet import GARDEN_NAMESPACE, ChartRepository, Gardenlet
from hortus.engine import Actor, StepError
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.objects import Object
from hortus.render.artifacts import AccessDenied, ArtifactError, Digest, PolicyRefused, TransferSettings
from hortus.render.bounded import Bounded
from hortus.render.helm import Capabilities, ChartError, ChartRenderer, ChartSource, Release, RenderRequest
from hortus.render.oci import (
    BadCredentials,
    BadReference,
    CredentialStore,
    OciClient,
    OciSettings,
    Reference,
    parse_reference,
)

RELEASE: Final = Release("gardenlet", GARDEN_NAMESPACE)
"""The release of every gardenlet."""
PULL_LABELS: Final = {"gardener.cloud/role": "helm-pull-secret"}
CA_LABELS: Final = {"gardener.cloud/role": "oci-ca-bundle"}
_DOCKER_CONFIG: Final = ".dockerconfigjson"
_CA_KEY: Final = "bundle.crt"
_FIELD: Final = "spec.deployment.helm.ociRepository"
_KEPT: Final = 64 << 20
"""Bytes of charts that are kept."""


class FetchedChart(NamedTuple):
    """A chart and the digest of its manifest."""

    source: ChartSource
    digest: str


class GardenletCharts:
    """Pulls and renders charts."""

    def __init__(self, secrets: Client, renderer: ChartRenderer, settings: GardenletSettings, clock: Clock) -> None:
        """`secrets` is the cluster with the Gardenlets and the Secrets that they name."""
        self._secrets = secrets
        self._renderer = renderer
        self._settings = settings
        self._clock = clock
        self._kept: Bounded[str, ChartSource] = Bounded(_KEPT, _size)

    async def fetch(self, gardenlet: Gardenlet, *, labelled: bool = False) -> FetchedChart:
        """The chart of a Gardenlet; `labelled` Secrets alone serve a gardenlet itself. Raises StepError, KubeError."""
        place = gardenlet.spec.deployment.helm.oci_repository
        config, ca = await self._access(place, gardenlet.metadata.namespace, labelled=labelled)
        try:
            reference = parse_reference(place.url)
            if self._settings.by_digest and reference.digest is None:
                raise StepError(
                    f"{_FIELD}: {place.url} names a tag; this operator takes charts by digest alone",
                    reason="ChartNotPinned",
                    actor=Actor.USER,
                )
            credentials = CredentialStore.from_docker_config(config) if config else None
            async with OciClient(settings=self._oci(ca), credentials=credentials, clock=self._clock) as client:
                digest = await client.resolve(reference)
                if self._settings.keys:
                    await self._check(client, reference, digest)
                known = self._kept.get(digest)
                if known is None:
                    archive = (await client.chart(reference.at(digest))).content
                    known = await asyncio.to_thread(ChartSource.from_archive, archive, name=place.url)
                    self._kept.put(digest, known)
                return FetchedChart(known, digest)
        except (BadReference, BadCredentials, ChartError, AccessDenied, PolicyRefused) as error:
            raise StepError(f"{_FIELD}: {error}", reason="ChartRefused", actor=Actor.USER) from error
        except ArtifactError as error:
            raise StepError(
                f"{_FIELD}: {error}", reason="ChartUnavailable", actor=Actor.PROVIDER, after=error.retry_after
            ) from error

    async def _check(self, client: OciClient, reference: Reference, digest: Digest) -> None:
        """Raises StepError for a chart that nobody of the operator's has signed, ArtifactError."""
        # The files are read each time: a key that is replaced counts at once.
        from hortus.domains.garden.gardenlets.signing import NotSigned, check_signature, read_keys

        try:
            keys = await asyncio.to_thread(read_keys, self._settings.keys)
        except (OSError, ValueError) as error:
            raise StepError(
                f"--gardenlet-chart-keys: {error}", reason="ChartKeysUnreadable", actor=Actor.OPERATOR
            ) from error
        try:
            await check_signature(client, reference, digest, keys)
        except NotSigned as error:
            raise StepError(f"{_FIELD}: {error}", reason="ChartNotSigned", actor=Actor.USER) from error

    async def render(self, chart: FetchedChart, values: Mapping[str, Any], *, version: str) -> list[Object]:
        """The objects of a gardenlet on a cluster of a Kubernetes version. Raises StepError."""
        request = RenderRequest(chart.source, dict(values), RELEASE, Capabilities(version))
        try:
            rendered = await self._renderer.render(request)
        except ChartError as error:
            raise StepError(f"chart {chart.digest}: {error}", reason="ChartFailed", actor=Actor.USER) from error
        return [*rendered.objects, *(hook.object for hook in rendered.hooks)]

    async def _access(self, place: ChartRepository, namespace: str, *, labelled: bool) -> tuple[bytes, bytes]:
        config = ca = b""
        if place.pull_secret_ref is not None:
            labels = PULL_LABELS if labelled else {}
            config = await value_of(
                self._secrets,
                namespace,
                place.pull_secret_ref.name,
                _DOCKER_CONFIG,
                field=f"{_FIELD}.pullSecretRef",
                labels=labels,
            )
        if place.ca_bundle_secret_ref is not None:
            labels = CA_LABELS if labelled else {}
            ca = await value_of(
                self._secrets,
                namespace,
                place.ca_bundle_secret_ref.name,
                _CA_KEY,
                field=f"{_FIELD}.caBundleSecretRef",
                labels=labels,
            )
        return config, ca

    def _oci(self, ca: bytes) -> OciSettings:
        return OciSettings(
            transfer=TransferSettings(
                connect_timeout=5.0,
                whole_timeout=120.0,
                attempts=2,  # a reconcile waits for it, and is retried
                plain_http=self._settings.plain_registries,
                local_hosts=self._settings.local_registries,
                ca=ca,
            )
        )


def _size(digest: str, chart: ChartSource) -> int:
    return sum(len(data) for _, data in chart.files)
