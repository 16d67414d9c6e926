"""Writes to the cluster of one Shoot: Flux itself, its source and Kustomization, the Secrets and the ConfigMap.

All is server-side apply, so that a field that is not configured stays its owner's, as `spec.suspend` after `flux
suspend`. Objects that Flux applies itself from its source are left to it. A write is left out where nothing differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from hortus.domains.garden.extension.context import ExtensionContext
from hortus.domains.garden.flux.config import FluxPlan, SecretCopy
from hortus.domains.garden.flux.names import (
    CONFIG_MAPS,
    COPY_LABELS,
    DEPLOYMENTS,
    FIELD_MANAGER,
    KUSTOMIZATIONS,
    MANAGED_BY,
    MANAGER,
    NAMESPACES,
    REQUIRED_COMPONENTS,
    SECRETS,
    SELF_MANAGED,
    SET_NAME,
    SET_NAMESPACE,
    SHOOT_INFO,
    SOURCES,
)
from hortus.domains.garden.flux.shoots import FluxShoots, followed_by
from hortus.domains.garden.kinds.seedcluster import GardenShoot
from hortus.engine import Actor, Applier, StepError, metadata_of
from hortus.engine.applysets import (
    ApplyReport,
    ApplySet,
    ClusterClient,
    ConfigMapParent,
    Conflicts,
    DiscoveredKinds,
    LabelledAdoption,
    ObjectAction,
    Policy,
    ServerLive,
)
from hortus.kube import Client, Clock
from hortus.kube.errors import AlreadyExists, ApiError, NotFound, NotServed, TransportError
from hortus.kube.objects import Object, ObjectKey, Resource, key_of

_MARK: Final = {MANAGED_BY: MANAGER}
_LABELLED: Final = f"{MANAGED_BY}={MANAGER}"


class _Written(msgspec.Struct):
    """The content of a Secret."""

    data: dict[str, str] | None = None
    type: str = "Opaque"


_POLICY: Final = Policy(
    conflicts=Conflicts.FORCE,
    # As the Go extension installed it, or `flux install`: a Shoot has one Flux.
    adopt=LabelledAdoption({"app.kubernetes.io/part-of": "flux"}),
)


class _Live(ServerLive):
    """Objects as the server has them; answers to writes are passed on to the watches."""

    def __init__(self, client: Client, shoots: FluxShoots, key: ObjectKey) -> None:
        super().__init__(client)
        self._shoots = shoots
        self._key = key

    def learn(self, resource: Resource, obj: Object) -> None:
        self._shoots.learn(self._key, resource, obj)


class ShootWriter:
    """Writes to the Shoot of one Extension."""

    def __init__(self, shoots: FluxShoots, context: ExtensionContext, *, clock: Clock) -> None:
        self._shoots = shoots
        self._context = context
        self._key = context.key
        self._client = shoots.client(context.key)
        self._applier = Applier(self._client, field_manager=FIELD_MANAGER)
        self._live = _Live(self._client, shoots, context.key)
        self._clock = clock

    async def is_self_managed(self, plan: FluxPlan) -> bool:
        """Reports whether Flux keeps its own controllers from its source, as after `flux bootstrap`."""
        found = await self._live.get(DEPLOYMENTS, plan.namespace, REQUIRED_COMPONENTS[0])
        return found is not None and SELF_MANAGED in metadata_of(found).labels

    async def install(self, objects: Sequence[Object]) -> ApplyReport:
        """Make the Shoot have these objects of Flux, and none that were there for it before. Raises StepError."""
        made = ApplySet(
            ClusterClient(self._client),
            ConfigMapParent(self._client, SET_NAME, SET_NAMESPACE, field_manager=FIELD_MANAGER),
            kinds=DiscoveredKinds(self._client),
            live=self._live,
            field_manager=FIELD_MANAGER,
            policy=_POLICY,
            clock=self._clock,
        )
        report = await made.apply(objects, whole=True)
        if report.failures:
            failed = ApplyReport(report.failures)
            raise StepError(
                f"Flux cannot be installed: {failed.message()}",
                reason="InstallFailed",
                actor=Actor.PROVIDER,
                after=report.retry_after,
            )
        return report

    async def follow(self, plan: FluxPlan) -> None:
        """Make the watches follow what the plan leads to."""
        self._shoots.enter(self._key, followed_by(plan))

    async def synced(self, resource: Resource, template: Object) -> Object:
        """Make the Shoot have a source or a Kustomization; returns it as it is."""
        key = key_of(template)
        found = await self._live.get(resource, key.namespace, key.name)
        if found is not None and SELF_MANAGED in metadata_of(found).labels:
            return found
        if found is None:
            await self._ensure_namespace(key.namespace)
        written = await self._applier.apply(resource, with_mark(template), live=found)
        if written.written:
            self._live.learn(resource, written.object)
        return written.object

    async def prune(self, plan: FluxPlan) -> None:
        """Delete the objects of former configurations; what Kustomizations have applied stays."""
        wanted = {(one.kind, key_of(found)) for one, found in _wanted(plan)}
        wanted.add((CONFIG_MAPS.kind, ObjectKey(plan.namespace, SHOOT_INFO)))
        for resource in (KUSTOMIZATIONS, *SOURCES.values(), CONFIG_MAPS):
            for found in await self._marked(resource):
                key = key_of(found)
                if (resource.kind, key) in wanted or SELF_MANAGED in metadata_of(found).labels:
                    continue
                with suppress(NotFound):
                    if resource == KUSTOMIZATIONS:
                        # Flux prunes on deletion what a Kustomization has applied, but not of one that is suspended.
                        await self._client.patch(resource, key.name, {"spec": {"suspend": True}}, key.namespace)
                    uid = metadata_of(found).uid
                    await self._client.delete(resource, key.name, key.namespace, uid=uid)

    async def copy_secrets(self, copies: Iterable[SecretCopy]) -> None:
        """Copy Secrets from the seed, and delete copies that nothing refers to. Raises StepError."""
        wanted = {ObjectKey(one.namespace, one.target): one for one in copies}
        for key, one in wanted.items():
            await self._copy(key, one)
        for found in await self._marked(SECRETS):
            if key_of(found) not in wanted:
                metadata = metadata_of(found)
                with suppress(NotFound):
                    await self._client.delete(SECRETS, metadata.name, metadata.namespace, uid=metadata.uid)

    async def _origin(self, copy: SecretCopy) -> Object:
        """The Secret in the seed. Raises StepError."""
        place = f"Secret {self._context.namespace}/{copy.origin} of the seed"
        try:
            found = await self._context.seed.get(SECRETS, copy.origin, self._context.namespace)
        except NotFound:
            raise StepError(
                f"{place} does not exist: gardenlet copies it from the project",
                reason="SecretMissing",
                actor=Actor.PROVIDER,
            ) from None
        except (ApiError, TransportError) as error:
            raise StepError(f"{place} cannot be read: {error}", reason="SeedRefuses", actor=Actor.OPERATOR) from error
        if not msgspec.convert(found, _Written).data:
            raise StepError(
                f"{place} has no keys: fill the Secret in the project", reason="SecretEmpty", actor=Actor.USER
            )
        return found

    async def _copy(self, key: ObjectKey, copy: SecretCopy) -> None:
        origin = await self._origin(copy)
        metadata, written = metadata_of(origin), msgspec.convert(origin, _Written)
        labels = dict(metadata.labels) if metadata.annotations.get(COPY_LABELS) == "true" else {}
        made: Object = {
            "metadata": {"name": key.name, "namespace": key.namespace, "labels": {**labels, **_MARK}},
            "type": written.type,
            "data": written.data,
        }
        found = await self._live.get(SECRETS, key.namespace, key.name)
        if found is None:
            await self._ensure_namespace(key.namespace)
        elif metadata_of(found).labels.get(MANAGED_BY) != MANAGER:
            raise StepError(
                f"Secret {key} of the Shoot belongs to someone else: delete it, give it the label {_LABELLED}, or "
                "configure another name",
                reason="SecretTaken",
                actor=Actor.USER,
            )
        elif msgspec.convert(found, _Written).type != written.type:
            # The type of a Secret cannot be changed.
            await self._client.delete(SECRETS, key.name, key.namespace, uid=metadata_of(found).uid)
            found = None
        await self._applier.apply(SECRETS, made, live=found)

    async def write_info(self, plan: FluxPlan, shoot: GardenShoot) -> None:
        """Write the ConfigMap with facts about the Shoot, for substitutions in Kustomizations."""
        metadata = {"name": SHOOT_INFO, "namespace": plan.namespace, "labels": dict(_MARK)}
        found = await self._live.get(CONFIG_MAPS, plan.namespace, SHOOT_INFO)
        await self._applier.apply(CONFIG_MAPS, {"metadata": metadata, "data": shoot_info(shoot)}, live=found)

    async def _marked(self, resource: Resource) -> list[Object]:
        try:
            return (await self._client.list(resource, labels=_LABELLED, metadata_only=True)).items
        except (NotServed, NotFound):
            return []

    async def _ensure_namespace(self, name: str) -> None:
        with suppress(AlreadyExists):
            made: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await self._client.create(NAMESPACES, made)


def _wanted(plan: FluxPlan) -> list[tuple[Resource, Object]]:
    found = followed_by(plan)
    wanted = [(found.source[0], plan.source)] if found.source is not None and plan.source is not None else []
    return [*wanted, *([(KUSTOMIZATIONS, plan.kustomization)] if plan.kustomization is not None else [])]


def with_mark(template: Object) -> Object:
    """The template with the label of what the extension keeps."""
    metadata = msgspec.convert(template, _Template).metadata
    return {**template, "metadata": {**metadata, "labels": {**(metadata_of(template).labels or {}), **_MARK}}}


class _Template(msgspec.Struct):
    metadata: dict[str, Any]


def shoot_info(shoot: GardenShoot) -> dict[str, str]:
    """The data of ConfigMap shoot-info."""
    status = shoot.status
    own = f"{status.technical_id}-{status.uid}-"
    return {
        "SHOOT_INFO_CLUSTER_IDENTITY": status.cluster_identity,
        "SHOOT_INFO_NAME": shoot.metadata.name,
        "SHOOT_INFO_TECHNICAL_ID": status.technical_id,
        "SHOOT_INFO_GARDEN_CLUSTER_IDENTITY": (
            status.cluster_identity.removeprefix(own) if status.cluster_identity.startswith(own) else ""
        ),
    }


def controllers_waiting(report: ApplyReport) -> str:
    """The objects of an installation that are not ready and that its source needs; empty where it can go on."""
    undone = report.of(ObjectAction.WAITING, ObjectAction.PRUNING)
    if undone:
        return ApplyReport(undone).message()
    for one in report.outcomes:
        if (one.member.kind, one.member.name) == (DEPLOYMENTS.kind, REQUIRED_COMPONENTS[0]) and not one.readiness.ready:
            return f"{one.member}: {one.readiness.message or 'is not ready'}"
    return ""
