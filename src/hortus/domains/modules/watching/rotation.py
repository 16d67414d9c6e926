"""The watcher's authority and the Secret by which the gateway serves, in the order that breaks no connection.

A new authority enters the bundle first, so that both sides trust what it signs. Agents' certificates follow: each Kyma
orders its own again (`installation`). After the grace period the gateway itself shows the new certificate. Expired
authorities leave the bundle. `next_gateway` and `root_is_due` decide.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Final, NamedTuple

import structlog
from cryptography import x509

from hortus.domains.modules.names import (
    GATEWAY_SECRET,
    MANAGED_BY_LIFECYCLE_MANAGER,
    ROOT_SECRET,
    Annotation,
    FieldOwner,
    Label,
)
from hortus.domains.modules.watching.authorities import certificates, ends, new_authority, pem_of
from hortus.domains.modules.watching.metrics import WatcherMetrics
from hortus.domains.modules.watching.secrets import TlsSecret, read_tls, time_of
from hortus.domains.modules.watching.settings import SELF, WatcherSettings
from hortus.engine import Actor, Result, StepError
from hortus.engine.remote import SECRETS
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import KubeError, NotFound
from hortus.kube.objects import Object, ObjectKey, format_time

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

NAME: Final = "istio-gateway-secret"
_DAY: Final = 86400.0
ROOT_DURATION: Final = 90 * _DAY
ROOT_RENEW_BEFORE: Final = 61 * _DAY
"""Lifetime and renewal of an authority that Hortus makes: those of the Go system's cert-manager set-up."""


class GatewayContent(NamedTuple):
    """The content of the gateway's Secret."""

    bundle: bytes
    certificate: bytes
    key: bytes
    added_at: str
    """The time at which the youngest authority entered the bundle, RFC 3339."""


def content_of(secret: TlsSecret) -> GatewayContent:
    """The content of a Secret that is there."""
    added_at = secret.metadata.annotations.get(Annotation.CA_ADDED_TO_BUNDLE_AT, "")
    return GatewayContent(secret.value("ca.crt"), secret.value("tls.crt"), secret.value("tls.key"), added_at)


def next_gateway(root: TlsSecret, gateway: GatewayContent | None, *, now: float, switch_after: float) -> GatewayContent:
    """The content that the gateway's Secret shall have now. Raises ValueError for a root that cannot be read."""
    certificate, key = root.value("tls.crt"), root.value("tls.key")
    roots = certificates(certificate)
    if not roots or not key:
        raise ValueError("tls.crt and tls.key must hold a certificate and its key")
    if gateway is None:
        return GatewayContent(root.value("ca.crt") or certificate, certificate, key, format_time(now))
    known = _readable(gateway.bundle)
    added_at = gateway.added_at
    if roots[0] not in known or not time_of(added_at):
        added_at = format_time(now)
    bundle = [one for one in dict.fromkeys([*([] if roots[0] in known else roots[:1]), *known]) if ends(one) > now]
    switch = now > time_of(added_at) + switch_after
    return GatewayContent(
        pem_of(bundle),
        certificate if switch else gateway.certificate,
        key if switch else gateway.key,
        added_at,
    )


def root_is_due(root: TlsSecret | None, names: Iterable[str], *, now: float) -> bool:
    """Returns whether Hortus makes another authority: there is none, it ends soon, or serves under other names."""
    found = _readable(root.value("tls.crt")) if root is not None else []
    if not found:
        return True
    return now > ends(found[0]) - ROOT_RENEW_BEFORE or not set(names) <= _names(found[0])


class GatewaySecretController:
    """Reconciles the gateway's Secret; one key."""

    def __init__(self, client: Client, *, settings: WatcherSettings, metrics: WatcherMetrics, clock: Clock) -> None:
        self._client = client
        self._settings = settings
        self._metrics = metrics
        self._clock = clock
        self.key = ObjectKey(settings.certificates.namespace, GATEWAY_SECRET)

    async def reconcile(self, key: ObjectKey) -> Result | None:
        certificates_ = self._settings.certificates
        try:
            root = await self._root()
            gateway = await self._secret(GATEWAY_SECRET)
            await self._write(root, gateway)
        except (KubeError, ValueError) as error:
            raise StepError(
                f"Secret {self.key}: {error}",
                reason="GatewaySecretFailed",
                actor=Actor.OPERATOR,
                after=certificates_.look_again,
            ) from error
        return Result(requeue_after=certificates_.look_every)

    async def _root(self) -> TlsSecret:
        """The authority; Hortus makes it where nothing else does."""
        root = await self._secret(ROOT_SECRET)
        settings, now = self._settings, self._clock.now()
        if settings.certificates.api == SELF:
            names = [settings.direct_address.rpartition(":")[0].strip("[]"), *settings.certificates.names]
            if root_is_due(root, names, now=now):
                pair = new_authority(names, now=now, seconds=ROOT_DURATION)
                values = {"ca.crt": pair.certificate, "tls.crt": pair.certificate, "tls.key": pair.key}
                root = await self._applied(ROOT_SECRET, values, {})
                _log.info("a new authority of the watcher was made", secret=ROOT_SECRET)
        if root is None:
            raise ValueError(f"Secret {ROOT_SECRET} with the authority does not exist yet")
        return root

    async def _write(self, root: TlsSecret, gateway: TlsSecret | None) -> None:
        now, settings = self._clock.now(), self._settings.certificates
        before = content_of(gateway) if gateway is not None else None
        after = next_gateway(root, before, now=now, switch_after=settings.switch_after)
        if after != before:
            values = {"ca.crt": after.bundle, "tls.crt": after.certificate, "tls.key": after.key}
            await self._applied(GATEWAY_SECRET, values, {Annotation.CA_ADDED_TO_BUNDLE_AT: after.added_at})
            _log.info("the gateway's Secret was written", secret=GATEWAY_SECRET)
        served = _readable(after.certificate)
        closing = not served or now > ends(served[0]) - settings.expiry_window
        self._metrics.closing.set(int(closing))

    async def _secret(self, name: str) -> TlsSecret | None:
        try:
            return read_tls(await self._client.get(SECRETS, name, self.key.namespace))
        except NotFound:
            return None

    async def _applied(self, name: str, values: dict[str, bytes], annotations: dict[str, str]) -> TlsSecret:
        config: Object = {
            "metadata": {
                "name": name,
                "namespace": self.key.namespace,
                "labels": {Label.MANAGED_BY: MANAGED_BY_LIFECYCLE_MANAGER},
                **({"annotations": annotations} if annotations else {}),
            },
            "data": {key: base64.b64encode(value).decode() for key, value in values.items()},
        }
        return read_tls(await self._client.apply(SECRETS, config, field_manager=FieldOwner.LIFECYCLE))


def _readable(pem: bytes) -> list[x509.Certificate]:
    try:
        return certificates(pem)
    except ValueError:
        return []


def _names(certificate: x509.Certificate) -> set[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return set()
    addresses = {str(address) for address in found.get_values_for_type(x509.IPAddress)}
    return set(found.get_values_for_type(x509.DNSName)) | addresses
