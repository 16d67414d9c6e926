"""The audit extension of one Shoot: a buffer in the seed, to which its kube-apiserver sends every event.

Owns, in the Shoot's namespace of the seed: Secret audit-webhook-certificates. The frame hands all other objects to
gardener-resource-manager. Reads: the Secrets and ConfigMaps that configurations name, and the counters of the buffer's
pods. A webhook of the seed changes the Deployment of the kube-apiserver. Never: touches the audit policy, which
Gardener sets, or a kube-apiserver of a Shoot that is being deleted.

A default backend of the operator whose Secret cannot be used is left out and reported; it does not hold up the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from hortus.domains.garden.audit import forwarding
from hortus.domains.garden.audit.apiserver import apiserver_patch
from hortus.domains.garden.audit.config import read_audit
from hortus.domains.garden.audit.credentials import MissingDefault, credentials, custom_output
from hortus.domains.garden.audit.names import (
    AUDIT,
    BACKEND,
    BACKEND_LABELS,
    CERTIFICATES,
    CHAIN_KEY,
    CLIENT_NAME,
    DEPLOYMENTS,
    SECRETS,
    VOLUME_CLAIMS,
)
from hortus.domains.garden.audit.objects import BufferInputs, buffer_objects, webhook_secret
from hortus.domains.garden.audit.outputs import OutputLooks
from hortus.domains.garden.audit.plan import FORWARDING, AuditPlan
from hortus.domains.garden.audit.review import AuditReviewer, effective
from hortus.domains.garden.audit.settings import AuditChoices
from hortus.domains.garden.extension.certificates import (
    PairUse,
    ShootCertificates,
    read_certificates,
    renewed,
    service_names,
)
from hortus.domains.garden.extension.composition import SeedView
from hortus.domains.garden.extension.context import ExtensionContext
from hortus.domains.garden.extension.controller import FIELD_MANAGER
from hortus.domains.garden.extension.judging import NotJudgedYet, shoot_judge
from hortus.domains.garden.extension.managed import EXTENSION_LABEL
from hortus.domains.garden.extension.topic import ExtensionTopic, SeedWebhook, TopicCondition, TopicObjects
from hortus.domains.garden.kinds.seedcluster import SeedCluster
from hortus.engine import Applier
from hortus.engine.sources import Source
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey
from hortus.kube.selectors import LabelSelector

DEFAULTS: Final = "DefaultBackendsConfigured"
"""The condition that reports whether all default backends of the operator are in use."""
_APISERVER: Final = {"app": "kubernetes", "role": "apiserver"}


class _SecretBody(msgspec.Struct):
    data: dict[str, str] = {}


class AuditTopic(AuditReviewer, ExtensionTopic):
    """Renders the buffers of Shoots of one seed."""

    def __init__(self, settings: AuditChoices, view: SeedView, outputs: OutputLooks) -> None:
        super().__init__(settings)
        self._view = view
        self._outputs = outputs
        self._applier = Applier(view.client, field_manager=FIELD_MANAGER)

    def sources(self) -> Sequence[Source]:
        return (self._outputs.trigger,)

    def webhooks(self) -> Sequence[SeedWebhook]:
        judge = shoot_judge(self, self._view.clusters, self._patch)
        return (SeedWebhook(name="kube-apiserver", resource=DEPLOYMENTS, labels=_APISERVER, judge=judge),)

    def dependencies(self, context: ExtensionContext) -> str:
        """The operator's choices, and what the objects of the Shoot follow from besides its configuration."""
        facts = (self._settings, context.shoot.spec.resources)
        return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()

    async def has_drifted(self, context: ExtensionContext) -> bool:
        return ObjectKey(context.namespace, CERTIFICATES) not in self._view.secrets

    async def render(self, context: ExtensionContext) -> TopicObjects | None:
        written = read_audit(context.config, "spec.providerConfig").plan
        plan, secrets, missing = await self._with_secrets(context, written)
        custom = plan.backends.custom_forwarding
        certificates = await self._certificates(context, plan)
        if plan.has(FORWARDING):
            secrets[FORWARDING] = forwarding.tailer_client(certificates)
        given = BufferInputs(
            plan=plan,
            namespace=context.namespace,
            certificates=certificates,
            secrets=secrets,
            custom=await custom_output(context, custom) if custom is not None and custom.enabled else {},
            settings=self._settings,
            hibernated=context.shoot.is_hibernated,
        )
        seed, shoot = list(buffer_objects(given)), list[Object]()
        if plan.has(FORWARDING):
            hibernated = context.shoot.is_hibernated
            seed += forwarding.seed_objects(context.cluster, self._settings, hibernated=hibernated)
            shoot += forwarding.shoot_objects(given.certificates, self._settings)
        return TopicObjects(seed=tuple(seed), shoot=tuple(shoot), conditions=(_defaults(missing),))

    def observed(self, context: ExtensionContext) -> Sequence[TopicCondition]:
        known = context.object.status.conditions
        former = [TopicCondition(one.type, one.status, one.reason, one.message) for one in known]
        return self._outputs.conditions(context.key, former)

    async def _with_secrets(
        self, context: ExtensionContext, written: AuditPlan
    ) -> tuple[AuditPlan, dict[str, dict[str, str]], list[str]]:
        """The effective plan, the data of its Secrets, and the problems of default backends, which it leaves out."""
        plan = effective(written, self._settings)
        own = {name for name, _ in written.backends.enabled()}
        found: dict[str, dict[str, str]] = {}
        missing: dict[str, str] = {}
        for name, backend in plan.backends.enabled():
            try:
                data = await credentials(context, name, backend, of_operator=name not in own, settings=self._settings)
                found |= {name: data} if data else {}
            except MissingDefault as error:
                missing[name] = str(error)
        kept = msgspec.structs.replace(plan, backends=plan.backends.without(missing))
        return kept, found, list(missing.values())

    async def _certificates(self, context: ExtensionContext, plan: AuditPlan) -> ShootCertificates:
        """The certificates as they serve now; written first, so that a restart in between finds them."""
        key = ObjectKey(context.namespace, CERTIFICATES)
        live = self._view.secrets.get(key)
        if live is None:
            live = await _found(context, key)
        former = read_certificates(msgspec.convert(live, _SecretBody).data) if live else ShootCertificates()
        made = renewed(former, _uses(context.namespace, plan), now=context.now, keys=[CHAIN_KEY])
        config: Object = {
            "metadata": {"name": key.name, "namespace": key.namespace, "labels": {EXTENSION_LABEL: AUDIT}},
            "type": "Opaque",
            "data": made.data(),
        }
        await self._applier.apply(SECRETS, config, cache=self._view.secrets, live=live)
        return made

    def _patch(self, obj: Object, cluster: SeedCluster, config: Any) -> Sequence[Object]:
        """The changes of the kube-apiserver. Raises NotJudgedYet."""
        if cluster.shoot.metadata.deletion_timestamp is not None:
            return ()
        namespace = cluster.technical_id
        live = self._view.secrets.get(ObjectKey(namespace, CERTIFICATES))
        if live is None:
            raise NotJudgedYet(f"Secret {namespace}/{CERTIFICATES} is not there yet: the extension makes it")
        certificates = read_certificates(msgspec.convert(live, _SecretBody).data)
        if "client" not in certificates.pairs:
            raise NotJudgedYet(f"Secret {namespace}/{CERTIFICATES} is not whole: the extension makes it again")
        plan = effective(read_audit(config, "").plan, self._settings)
        return apiserver_patch(obj, plan, checksum=webhook_secret(namespace, certificates).digest)

    async def is_left(self, context: ExtensionContext, operation: str) -> bool:
        """Delete the volumes, which no pod uses any more, and the certificates."""
        labels = LabelSelector.of(BACKEND_LABELS)
        await context.seed.delete_collection(VOLUME_CLAIMS, context.namespace, labels)
        with suppress(NotFound):
            await context.seed.delete(SECRETS, CERTIFICATES, context.namespace)
        left = await context.seed.list(VOLUME_CLAIMS, context.namespace, labels=labels, limit=1)
        return not left.items


async def _found(context: ExtensionContext, key: ObjectKey) -> Object | None:
    """The Secret on the server: the cache may not have it yet, and other certificates would cut off the buffer."""
    try:
        return await context.seed.get(SECRETS, key.name, key.namespace)
    except NotFound:
        return None


def _uses(namespace: str, plan: AuditPlan) -> dict[str, PairUse]:
    found = {
        "server": PairUse(common_name=BACKEND, names=service_names(BACKEND, namespace)),
        "client": PairUse(common_name=CLIENT_NAME),
    }
    return {**found, **forwarding.TAILER_USES} if plan.has(FORWARDING) else found


def _defaults(missing: Sequence[str]) -> TopicCondition:
    if not missing:
        return TopicCondition(DEFAULTS, "True", "AllConfigured", "Every default backend is in use.")
    return TopicCondition(DEFAULTS, "False", "SecretsMissing", f"Default backends are left out: {'; '.join(missing)}.")
