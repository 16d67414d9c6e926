"""The decision on one event: who sent it, which Kyma it concerns, and whether that is reconciled.

A sender is a cluster, known by its certificate: the runtime id is the common name, and the cluster's domain one of the
DNS names. An event counts for the Kyma of that runtime id alone. The certificate must be signed by the watcher's
authority, must name the domain of that Kyma, and must be that of the runtime which the event names, if it names one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple, Protocol

import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from hortus.domains.modules.names import Annotation
from hortus.domains.modules.types import Kyma
from hortus.domains.modules.watching.authorities import certificates, common_name, distrust, dns_names
from hortus.domains.modules.watching.events import Received, decode
from hortus.domains.modules.watching.metrics import LISTENER, WatcherMetrics
from hortus.kube.clock import Clock
from hortus.kube.objects import ObjectKey

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

REMEMBERED: Final = 10_000
"""Certificates that are known to be trusted; checking one costs more than all else here."""


class EventRefused(Exception):
    """A request is refused; the text is shown to the sender."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class EventSender(NamedTuple):
    """A cluster that has proven its identity."""

    runtime_id: str
    names: frozenset[str]


class AcceptEvent(Protocol):
    """Takes an event of a Kyma's cluster."""

    def __call__(self, kyma: ObjectKey, *, is_probe: bool) -> None: ...


class EventReceiver:
    """Judges senders and events."""

    def __init__(
        self,
        *,
        kymas: Callable[[str], Sequence[Kyma]],
        bundle: Callable[[], str],
        accept: AcceptEvent,
        metrics: WatcherMetrics,
        clock: Clock,
    ) -> None:
        """`kymas` returns those of a runtime id; `bundle` the authorities, PEM, or nothing before there are any."""
        self._kymas = kymas
        self._bundle = bundle
        self._accept = accept
        self._metrics = metrics
        self._clock = clock
        self._trusted: dict[bytes, str] = {}
        """The bundle that a certificate was accepted by, by fingerprint."""

    def identify(self, certificate: x509.Certificate) -> EventSender:
        """The sender that shows a certificate. Raises EventRefused."""
        self._verify(certificate)
        name = common_name(certificate)
        if not name:
            raise EventRefused(HTTPStatus.BAD_REQUEST, "the certificate has no common name")
        return EventSender(name, dns_names(certificate))

    def receive(self, sender: EventSender, body: bytes, *, path: str) -> None:
        """Take an event. Raises EventRefused."""
        try:
            received = decode(body)
        except ValueError as error:
            raise EventRefused(HTTPStatus.INTERNAL_SERVER_ERROR, f"the body is no event: {error}") from None
        if received.sender not in ("", sender.runtime_id):
            self._metrics.unverified.labels(LISTENER, path).inc()
            _log.warning("an event names another sender", sender=sender.runtime_id, named=received.sender)
            raise EventRefused(HTTPStatus.FORBIDDEN, "the event names another sender than the certificate")
        kyma = self._kyma(sender)
        if kyma is not None:
            self._check_domain(kyma, sender, path)
            self._hand_on(kyma, received)

    def _verify(self, certificate: x509.Certificate) -> None:
        bundle = self._bundle()
        fingerprint = certificate.fingerprint(hashes.SHA256())
        now = self._clock.now()
        if self._trusted.get(fingerprint) == bundle and now <= certificate.not_valid_after_utc.timestamp():
            return
        problem = distrust(certificate, certificates(bundle.encode()), now=now) if bundle else "there is no authority"
        if problem:
            self._trusted.pop(fingerprint, None)
            raise EventRefused(HTTPStatus.UNAUTHORIZED, problem)
        if len(self._trusted) >= REMEMBERED:
            self._trusted.clear()
        self._trusted[fingerprint] = bundle

    def _kyma(self, sender: EventSender) -> Kyma | None:
        """The Kyma of a sender. Without exactly one the event is dropped: to send it again would change nothing."""
        found = self._kymas(sender.runtime_id)
        if len(found) == 1:
            return found[0]
        reason = "ambiguous" if found else "unknown"
        self._metrics.unmatched.labels(reason).inc()
        names = [one.metadata.name for one in found]
        _log.warning("an event belongs to no single Kyma", runtime_id=sender.runtime_id, reason=reason, kymas=names)
        return None

    def _check_domain(self, kyma: Kyma, sender: EventSender, path: str) -> None:
        domain = kyma.metadata.annotations.get(Annotation.SKR_DOMAIN, "")
        if domain and domain not in sender.names:
            self._metrics.unverified.labels(LISTENER, path).inc()
            _log.warning("a certificate is not of the cluster that it names", runtime_id=sender.runtime_id)
            raise EventRefused(
                HTTPStatus.FORBIDDEN, "the certificate does not name the domain of the runtime's cluster"
            )

    def _hand_on(self, kyma: Kyma, received: Received) -> None:
        key = ObjectKey(kyma.metadata.namespace, kyma.metadata.name)
        self._accept(key, is_probe=received.event.is_probe)
