"""Installation of the watcher in one cluster, and its removal: the part of the work that the Kyma controller calls.

    state = await installer.install(kyma, remote)     # each reconcile; SKRWebhook is True where state.ready
    await installer.delete_certificate(key)  # deletion step 4: True where there was something to delete
    await installer.remove(remote)                     # deletion step 5: the same
    installer.forget(key)                              # the Kyma is gone, or another replica's

All objects are applied when certificate, settings or Watchers changed, when somebody edited the webhook configuration
or the Deployment, once an hour, and as long as events do not arrive. Any other reconcile only asks for these two.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final, Protocol

import msgspec

from hortus.domains.modules.names import Annotation, FieldOwner, Label
from hortus.domains.modules.types import KYMAS, Kyma, Watcher
from hortus.domains.modules.watching.certificates import CertificateIssuer, WantedCertificate, certificate_name
from hortus.domains.modules.watching.gateways import ListenerAddress
from hortus.domains.modules.watching.health import Hearing, WatcherHealth
from hortus.domains.modules.watching.metrics import WatcherMetrics
from hortus.domains.modules.watching.readiness import agent_problem, ready_replicas
from hortus.domains.modules.watching.secrets import CertificateSecret, read_tls
from hortus.domains.modules.watching.settings import WatcherSettings
from hortus.domains.modules.watching.webhook import (
    DEPLOYMENTS,
    NAME,
    PODS,
    WEBHOOK_CONFIGURATIONS,
    AgentFacts,
    Material,
    identities,
    resources,
)
from hortus.engine import WARNING, Actor, EventRecorder, StepError, metadata_of
from hortus.engine.deputies import Deputies
from hortus.engine.remote import SECRETS
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey, Resource

APPLY_EVERY: Final = 3600.0
"""Seconds after which every object is compared, even if nothing seems to have changed."""

SILENT: Final = "WatcherSilent"
"""Reason of the event for a Kyma whose watcher is Silent."""


class InstallState(msgspec.Struct, frozen=True):
    """The watcher of one cluster after a reconcile."""

    ready: bool
    """The status of the condition SKRWebhook."""
    reason: str
    """Installed, CertificatePending, AgentNotReady, or Off where no agents are installed."""
    message: str
    hearing: Hearing = Hearing.UNPROVEN
    """The standing of its events; Silent is worth an event and an alert."""


class AuthorityBundle(Protocol):
    """The gateway's Secret as it is in the control plane."""

    def outline(self) -> CertificateSecret | None:
        """The outline of the Secret, with its bundle; None before the authority exists."""

    def agent(self, name: str) -> CertificateSecret | None:
        """The outline of an agent's Secret."""


class _Installed(msgspec.Struct):
    """The last complete run on one cluster."""

    fingerprint: bytes
    at: float
    marks: dict[Resource, tuple[str, int]]
    """Uid and generation of the objects that each reconcile looks at: an edit changes one of them."""


class WebhookInstaller:
    """Installs watchers. One for all clusters of a process."""

    def __init__(
        self,
        client: Client,
        *,
        deputies: Deputies,
        settings: WatcherSettings,
        watchers: Callable[[], Iterable[Watcher]],
        issuer: CertificateIssuer,
        authority: AuthorityBundle,
        address: ListenerAddress,
        health: WatcherHealth,
        metrics: WatcherMetrics,
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        """`client` is that of the control plane."""
        self._client = client
        self._deputies = deputies
        self._settings = settings
        self._watchers = watchers
        self._issuer = issuer
        self._authority = authority
        self._address = address
        self._health = health
        self._metrics = metrics
        self._events = events
        self._clock = clock
        self._installed: dict[ObjectKey, _Installed] = {}

    @property
    def enabled(self) -> bool:
        """True where agents are installed; otherwise Kymas have no condition SKRWebhook."""
        return self._settings.enabled

    async def install(self, kyma: Kyma, remote: Client) -> InstallState:
        """Install agent, certificate and webhook configuration in the cluster. Raises StepError, KubeError."""
        if not self.enabled:
            return InstallState(ready=True, reason="Off", message="no agents are installed: no image is set")
        key = ObjectKey(kyma.metadata.namespace, kyma.metadata.name)
        wanted = self._wanted(kyma)
        await self._deputies.require(key.namespace, self._issuer.action)
        await self._issuer.ensure(wanted)
        gateway, agent = self._authority.outline(), self._authority.agent(wanted.name)
        if gateway is None or not gateway.bundle or agent is None:
            return InstallState(
                ready=False, reason="CertificatePending", message=f"Secret {wanted.name} is not there yet"
            )
        await self._renew(wanted, agent, gateway)
        agent = self._authority.agent(wanted.name) or agent
        hearing = self._health.hearing(key)
        deployment = await self._apply(key, wanted, agent, gateway, remote, thorough=hearing is Hearing.SILENT)
        if not ready_replicas(deployment):
            await self._check_pods(remote)
            return InstallState(
                ready=False, reason="AgentNotReady", message="the agent has no ready replica", hearing=hearing
            )
        hearing = await self._health.check(key, remote)
        if hearing is Hearing.SILENT:
            self._events.event(
                _raw(kyma), WARNING, SILENT, "the watcher is installed and ready, its events do not arrive"
            )
        return InstallState(ready=True, reason="Installed", message="the agent is ready", hearing=hearing)

    async def delete_certificate(self, kyma: ObjectKey) -> bool:
        """Delete certificate and Secret of a Kyma's agent; returns whether any was there. Raises KubeError."""
        self._metrics.forget(kyma.name)
        name = certificate_name(kyma.name)
        if not self._deputies.trusts(kyma.namespace) and self._authority.agent(name) is None:
            return False  # a Secret of that name is not an agent's
        return await self._issuer.delete(name)

    async def remove(self, remote: Client) -> bool:
        """Delete every object of the watcher; returns whether any was there. Raises KubeError."""
        found = False
        for resource, namespace, name in identities(self._settings.namespace):
            try:
                await remote.delete(resource, name, namespace)
                found = True
            except NotFound:
                continue
        return found

    def forget(self, kyma: ObjectKey) -> None:
        """Drop what is remembered of a Kyma that is gone, or another replica's."""
        self._installed.pop(kyma, None)
        self._health.forget(kyma)
        self._metrics.forget(kyma.name)

    def shed(self, holds: Callable[[ObjectKey], bool]) -> None:
        """Drop what is remembered of Kymas that are another replica's."""
        for kyma in [kyma for kyma in self._installed if not holds(kyma)]:
            self.forget(kyma)
        self._health.shed(holds)

    # The steps.

    def _wanted(self, kyma: Kyma) -> WantedCertificate:
        metadata, settings = kyma.metadata, self._settings
        domain = metadata.annotations.get(Annotation.SKR_DOMAIN, "")
        if not domain:
            raise StepError(
                f"Kyma {metadata.name}: annotation {Annotation.SKR_DOMAIN} is missing or empty; set it to the "
                "cluster's domain",
                reason="SkrDomainMissing",
                actor=Actor.OPERATOR,
            )
        runtime = metadata.labels.get(Label.RUNTIME_ID, "")
        if not runtime:
            raise StepError(
                f"Kyma {metadata.name}: label {Label.RUNTIME_ID} is missing or empty; set it to the runtime's id",
                reason="RuntimeIdMissing",
                actor=Actor.OPERATOR,
            )
        service = f"{NAME}.{settings.namespace}.svc"
        names = (domain, *settings.certificates.names, f"{service}.cluster.local", service)
        return WantedCertificate(certificate_name(metadata.name), runtime, names)

    async def _renew(self, wanted: WantedCertificate, agent: CertificateSecret, gateway: CertificateSecret) -> None:
        """Order a certificate of a former authority again."""
        kyma = wanted.name.removesuffix("-webhook-tls")
        overdue = agent.ends - self._settings.certificates.renew_before + self._settings.certificates.renew_buffer
        self._metrics.not_renewed(kyma, overdue=bool(agent.ends) and self._clock.now() > overdue)
        if agent.begins and agent.begins < gateway.added_at:
            await self._issuer.renew(wanted)

    async def _apply(
        self,
        key: ObjectKey,
        wanted: WantedCertificate,
        agent: CertificateSecret,
        gateway: CertificateSecret,
        remote: Client,
        *,
        thorough: bool,
    ) -> Object:
        """Apply all objects that differ; returns the Deployment."""
        facts = AgentFacts(
            namespace=self._settings.namespace,
            image=self._settings.agent,
            address=self._address.get(),
            restart_trigger=agent.metadata.resource_version,
            runtime_id=wanted.common_name,
        )
        watchers = [one for one in self._watchers() if one.metadata.deletion_timestamp is None]
        bundle = gateway.bundle.encode()
        fingerprint = _fingerprint(facts, watchers, bundle)
        known, now = self._installed.get(key), self._clock.monotonic()
        if known is not None and known.fingerprint == fingerprint and now - known.at < APPLY_EVERY and not thorough:
            found = await self._look(remote)
            if _marks(found) == known.marks:
                return found[DEPLOYMENTS]
        self._installed.pop(key, None)
        secret = read_tls(await self._client.get(SECRETS, wanted.name, self._settings.certificates.namespace))
        material = Material(secret.value("tls.crt"), secret.value("tls.key"), bundle)
        applied: dict[Resource, Object] = {}
        for placed in resources(facts, material, watchers):
            applied[placed.resource] = await remote.apply(
                placed.resource, placed.object, field_manager=FieldOwner.LIFECYCLE
            )
        if secret.metadata.resource_version == agent.metadata.resource_version:
            marks = _marks({resource: applied[resource] for resource in _LOOKED_AT})
            self._installed[key] = _Installed(fingerprint, now, marks)
        return applied[DEPLOYMENTS]

    async def _look(self, remote: Client) -> dict[Resource, Object]:
        """The objects that each reconcile looks at, as far as they are there."""
        found = {}
        for resource in _LOOKED_AT:
            namespace = self._settings.namespace if resource.namespaced else ""
            with suppress(NotFound):
                found[resource] = await remote.get(resource, NAME, namespace, metadata_only=resource is not DEPLOYMENTS)
        return found

    async def _check_pods(self, remote: Client) -> None:
        """Raises StepError where a pod of the agent will not start by itself."""
        for pod in (await remote.list(PODS, self._settings.namespace, f"app={NAME}")).items:
            if problem := agent_problem(pod):
                raise StepError(problem, reason="AgentFailed", actor=Actor.PROVIDER)


def _raw(kyma: Kyma) -> Object:
    """The Kyma as events refer to it."""
    metadata = kyma.metadata
    identity = {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid}
    return {"apiVersion": KYMAS.api_version, "kind": KYMAS.kind, "metadata": identity}


_LOOKED_AT: Final = (WEBHOOK_CONFIGURATIONS, DEPLOYMENTS)


def _marks(found: Mapping[Resource, Object]) -> dict[Resource, tuple[str, int]]:
    metadata = {resource: metadata_of(obj) for resource, obj in found.items()}
    return {resource: (one.uid, one.generation) for resource, one in metadata.items()}


def _fingerprint(facts: AgentFacts, watchers: Iterable[Watcher], bundle: bytes) -> bytes:
    parts = [msgspec.json.encode(facts), bundle]
    parts += sorted(
        f"{one.metadata.namespace}/{one.metadata.name}/{one.metadata.uid}/{one.metadata.generation}".encode()
        for one in watchers
    )
    return hashlib.sha256(b"\0".join(parts)).digest()
