"""Agents' certificates: ordered from cert-manager or from Gardener's certificate management, or issued here.

Each Kyma has one, named `<kyma>-webhook-tls`, as is the Secret that holds it. With the first two the Certificate object
is applied, and the other system keeps the Secret; otherwise Hortus writes the Secret itself, signed by the authority
in the Secret `klm-watcher`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from hortus.domains.modules.names import ROOT_SECRET, FieldOwner
from hortus.domains.modules.watching.authorities import IssuedPair, issued_client
from hortus.domains.modules.watching.secrets import ISSUED_AT, LABELS, CertificateSecret, read_outline, read_tls
from hortus.domains.modules.watching.settings import CERT_MANAGER, CertificateSettings
from hortus.engine import Applier, Cache, metadata_of
from hortus.engine.deputies import Action
from hortus.engine.remote import SECRETS
from hortus.kube import Client, PatchKind, durations
from hortus.kube.clock import Clock
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey, Resource, format_time

CERT_MANAGER_CERTIFICATES: Final = Resource("cert-manager.io", "v1", "certificates", "Certificate")
GARDENER_CERTIFICATES: Final = Resource("cert.gardener.cloud", "v1alpha1", "certificates", "Certificate")
SUBJECT: Final = {
    "organizationalUnits": ["BTP Kyma Runtime"],
    "organizations": ["SAP SE"],
    "localities": ["Walldorf"],
    "provinces": ["Baden-Württemberg"],
    "countries": ["DE"],
}
_ISSUING: Final = "Issuing"


class WantedCertificate(msgspec.Struct, frozen=True):
    """The certificate of one agent."""

    name: str
    """Name of the certificate and its Secret."""
    common_name: str
    """The runtime id."""
    dns_names: tuple[str, ...]


class CertificateIssuer(Protocol):
    """The system that issues agents' certificates."""

    @property
    def action(self) -> Action:
        """The request by which a certificate is made."""

    async def ensure(self, wanted: WantedCertificate) -> None:
        """Order the certificate, unless it is there. Raises KubeError."""

    async def renew(self, wanted: WantedCertificate) -> None:
        """Order it again, from the authority of the moment. Raises KubeError."""

    async def delete(self, name: str) -> bool:
        """Delete certificate and Secret; returns whether any of them was there. Raises KubeError."""


def certificate_name(kyma: str) -> str:
    """The name of the certificate of a Kyma's agent."""
    return f"{kyma}-webhook-tls"


def cert_manager_certificate(wanted: WantedCertificate, settings: CertificateSettings) -> Object:
    """The Certificate of cert-manager."""
    return {
        "apiVersion": CERT_MANAGER_CERTIFICATES.api_version,
        "kind": "Certificate",
        "metadata": {"name": wanted.name, "namespace": settings.namespace},
        "spec": {
            **_common(wanted, settings),
            "subject": SUBJECT,
            "secretTemplate": {"labels": LABELS},
            "issuerRef": {"name": settings.issuer, "kind": "Issuer"},
            "isCA": False,
            "usages": ["digital signature", "key encipherment"],
            "privateKey": {
                "rotationPolicy": "Always",
                "encoding": "PKCS1",
                "algorithm": "RSA",
                "size": settings.key_size,
            },
        },
    }


def gardener_certificate(wanted: WantedCertificate, settings: CertificateSettings) -> Object:
    """The Certificate of Gardener's certificate management."""
    return {
        "apiVersion": GARDENER_CERTIFICATES.api_version,
        "kind": "Certificate",
        "metadata": {"name": wanted.name, "namespace": settings.namespace},
        "spec": {
            **_common(wanted, settings),
            "secretLabels": LABELS,
            "issuerRef": {"name": settings.issuer, "namespace": settings.issuer_namespace},
            "privateKey": {"algorithm": "RSA", "size": settings.key_size},
        },
    }


def _common(wanted: WantedCertificate, settings: CertificateSettings) -> Object:
    return {
        "commonName": wanted.common_name,
        "dnsNames": list(wanted.dns_names),
        "duration": durations.from_seconds(settings.duration),
        "renewBefore": durations.from_seconds(settings.renew_before),
        "secretName": wanted.name,
    }


class OrderedCertificates:
    """Certificates of cert-manager or Gardener: `settings.api` says which."""

    def __init__(self, client: Client, cache: Cache, settings: CertificateSettings, *, clock: Clock) -> None:
        """`cache` holds the Certificates, with the managedFields of our manager."""
        self._client = client
        self._cache = cache
        self._settings = settings
        self._clock = clock
        self._applier = Applier(client, field_manager=FieldOwner.UNMANAGED)
        self._resource = resource_of_api(settings.api)
        self._make: Callable[[WantedCertificate, CertificateSettings], Object] = (
            cert_manager_certificate if settings.api == CERT_MANAGER else gardener_certificate
        )

    @property
    def action(self) -> Action:
        return Action("create", self._resource.group, self._resource.plural, self._settings.namespace)

    async def ensure(self, wanted: WantedCertificate) -> None:
        await self._applier.apply(self._resource, self._make(wanted, self._settings), cache=self._cache)

    async def renew(self, wanted: WantedCertificate) -> None:
        found = self._cache.get(ObjectKey(self._settings.namespace, wanted.name))
        if found is None:
            return
        if self._settings.api == CERT_MANAGER:
            await self._mark_issuing(found)
        else:
            await self._patch(found, {"spec": {"renew": True}})

    async def delete(self, name: str) -> bool:
        found = [await _deleted(self._client, one, name, self._settings.namespace) for one in (self._resource, SECRETS)]
        return any(found)

    async def _mark_issuing(self, found: Object) -> None:
        """Set cert-manager's condition Issuing, as `cmctl renew` does."""
        certificate = msgspec.convert(found, _Certificate)
        if any(one == _Condition(_ISSUING, "True") for one in _read_conditions(certificate)):
            return
        condition = {
            "type": _ISSUING,
            "status": "True",
            "reason": "ManuallyTriggered",
            "message": "Certificate re-issuance manually triggered",
            "observedGeneration": certificate.metadata.generation,
            "lastTransitionTime": format_time(self._clock.now()),
        }
        known = zip(certificate.status.conditions, _read_conditions(certificate), strict=True)
        others = [raw for raw, one in known if one.type != _ISSUING]
        await self._patch(found, {"status": {"conditions": [*others, condition]}}, subresource="status")

    async def _patch(self, found: Object, patch: Object, *, subresource: str = "") -> None:
        metadata = metadata_of(found)
        # The version guards the list of conditions, which is replaced as a whole.
        versioned = {**patch, "metadata": {"resourceVersion": metadata.resource_version}}
        written = await self._client.patch(
            self._resource,
            metadata.name,
            versioned,
            metadata.namespace,
            PatchKind.MERGE,
            subresource,
            FieldOwner.UNMANAGED,
        )
        self._cache.learn(written)


class SelfIssuedCertificates:
    """Certificates that Hortus signs by the authority in the Secret `klm-watcher`."""

    def __init__(self, client: Client, secrets: Cache, settings: CertificateSettings, *, clock: Clock) -> None:
        """`secrets` holds the outlines of agents' Secrets."""
        self._client = client
        self._secrets = secrets
        self._settings = settings
        self._clock = clock

    @property
    def action(self) -> Action:
        return Action("create", SECRETS.group, SECRETS.plural, self._settings.namespace)

    async def ensure(self, wanted: WantedCertificate) -> None:
        found = self._secrets.get(ObjectKey(self._settings.namespace, wanted.name))
        if found is not None and not self._is_due(read_outline(found), wanted):
            return
        await self.renew(wanted)

    async def renew(self, wanted: WantedCertificate) -> None:
        settings = self._settings
        try:
            root = read_tls(await self._client.get(SECRETS, ROOT_SECRET, settings.namespace))
        except NotFound:
            return  # the authority comes first; the next reconcile finds it
        authority = IssuedPair(root.value("tls.crt"), root.value("tls.key"))
        pair = issued_client(
            authority, wanted.common_name, wanted.dns_names, now=self._clock.now(), seconds=settings.duration
        )
        values = {"ca.crt": authority.certificate, "tls.crt": pair.certificate, "tls.key": pair.key}
        written = await self._client.apply(
            SECRETS,
            {
                "metadata": {
                    "name": wanted.name,
                    "namespace": settings.namespace,
                    "labels": LABELS,
                    "annotations": {NAMES: _names(wanted), ISSUED_AT: format_time(self._clock.now())},
                },
                "type": "kubernetes.io/tls",
                "data": {name: base64.b64encode(value).decode() for name, value in values.items()},
            },
            field_manager=FieldOwner.UNMANAGED,
        )
        self._secrets.learn(written)

    async def delete(self, name: str) -> bool:
        return await _deleted(self._client, SECRETS, name, self._settings.namespace)

    def _is_due(self, found: CertificateSecret, wanted: WantedCertificate) -> bool:
        expiring = self._clock.now() > found.ends - self._settings.renew_before
        return expiring or found.metadata.annotations.get(NAMES) != _names(wanted)


NAMES: Final = "watcher.hortus.dev/names"
"""Annotation of a Secret that Hortus issued: the names in its certificate."""


class _CertificateMetadata(msgspec.Struct, frozen=True):
    generation: int = 0


class _CertificateStatus(msgspec.Struct, frozen=True):
    conditions: tuple[dict[str, object], ...] = ()


class _Certificate(msgspec.Struct, frozen=True):
    metadata: _CertificateMetadata
    status: _CertificateStatus = _CertificateStatus()


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str


def _read_conditions(certificate: _Certificate) -> list[_Condition]:
    return msgspec.convert(certificate.status.conditions, list[_Condition])


def resource_of_api(api: str) -> Resource:
    """The resource of the Certificates of an API."""
    return CERT_MANAGER_CERTIFICATES if api == CERT_MANAGER else GARDENER_CERTIFICATES


def _names(wanted: WantedCertificate) -> str:
    return ",".join((wanted.common_name, *wanted.dns_names))


async def _deleted(client: Client, resource: Resource, name: str, namespace: str) -> bool:
    try:
        await client.delete(resource, name, namespace)
    except NotFound:
        return False
    return True
