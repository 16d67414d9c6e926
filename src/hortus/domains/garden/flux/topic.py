"""Flux in one Shoot: installed, given its source and Kustomization, and kept as configured.

Owns, in the Shoot: the objects of Flux's install manifests, the source, the Kustomization, copies of Secrets, and
ConfigMap shoot-info. Watches there: Flux's Deployments, the source and the Kustomization. Never: removes Flux, which
stays where it is after deletion, migration and force-deletion, as with the Go extension.

Until the first success an operation waits for each part in turn. After that it fails only for what it cannot write: a
repository that is away is reported as a condition, since it must not hold up the whole Shoot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hortus.domains.garden.extension.composition import SeedView
from hortus.domains.garden.extension.context import ExtensionContext
from hortus.domains.garden.extension.shoots import errors_of_shoot
from hortus.domains.garden.extension.topic import ExtensionTopic, PendingWork, TopicCondition, TopicObjects
from hortus.domains.garden.flux.config import FluxPlan, ReadFlux, read_flux
from hortus.domains.garden.flux.health import UNKNOWN, SyncState, controllers_condition, sync_state
from hortus.domains.garden.flux.library import ManifestLibrary
from hortus.domains.garden.flux.manifests import MissingComponent, installation
from hortus.domains.garden.flux.names import (
    BOOTSTRAPPED,
    CONTROLLERS_HEALTHY,
    DEPLOYMENTS,
    FIELD_MANAGER,
    KUSTOMIZATION,
    KUSTOMIZATION_READY,
    KUSTOMIZATIONS,
    SELF_MANAGED,
    SET_NAME,
    SET_NAMESPACE,
    SOURCE_READY,
)
from hortus.domains.garden.flux.review import FluxReviewer
from hortus.domains.garden.flux.settings import FluxManifestSettings
from hortus.domains.garden.flux.shoots import FluxShoots, followed_by
from hortus.domains.garden.flux.writing import ShootWriter, controllers_waiting, with_mark
from hortus.domains.garden.kinds.extension import GardenExtension
from hortus.engine import Actor, Applier, StepError, metadata_of
from hortus.engine.applysets import PART_OF, set_id
from hortus.engine.remote import RemoteSettings
from hortus.engine.sources import Source
from hortus.kube import RequestObserver
from hortus.kube.objects import Object, key_of

INSTALL_TIME: Final = 60.0
"""Seconds for Flux's definitions and its source-controller, as in the Go extension."""
SYNC_TIME: Final = 300.0
"""Seconds for the source to be ready, and again for the Kustomization, as in the Go extension."""
_SET: Final = set_id(name=SET_NAME, namespace=SET_NAMESPACE, kind="ConfigMap", group="")
_STATE: Final = {"fluxBootstrapped": True}


class FluxTopic(FluxReviewer, ExtensionTopic):
    """Installs Flux in Shoots of one seed."""

    def __init__(
        self,
        settings: FluxManifestSettings,
        view: SeedView,
        remotes: RemoteSettings,
        *,
        observer: RequestObserver | None = None,
    ) -> None:
        """`observer` hears of calls to the clusters of Shoots."""
        self._clock = view.manager.clock
        self._library = ManifestLibrary(settings, clock=self._clock)
        self._shoots = FluxShoots(view, remotes, observer)
        self._applier = Applier(view.client, field_manager=FIELD_MANAGER)

    def sources(self) -> Sequence[Source]:
        return self._shoots.sources

    def dependencies(self, context: ExtensionContext) -> str:
        return self._library.pin(_read(context).plan.version)

    async def has_drifted(self, context: ExtensionContext) -> bool:
        """Compares the Deployments, the source and the Kustomization as the watches show them."""
        found = _read(context)
        plan = found.plan
        if found.errors or context.shoot.is_hibernated or not is_bootstrapped(context.object):
            return False
        self._shoots.enter(context.key, followed_by(plan))
        if not plan.keeps or self._shoots.problem(context.key):
            return False
        pairs = [
            (self._shoots.source(context.key), plan.source),
            (self._shoots.kustomization(context.key), plan.kustomization),
        ]
        wanted = [(live, with_mark(template)) for live, template in pairs if template is not None]
        there = {key_of(one): one for one in self._shoots.deployments(context.key)}
        if not any(_is_self_managed(one) for one in there.values()):
            wanted += [(there.get(key_of(one)), one) for one in self._deployments(plan)]
        return any(self._differs(live, one) for live, one in wanted)

    def _deployments(self, plan: FluxPlan) -> list[Object]:
        """Flux's Deployments as an operation applies them; none before the manifests were read, or can be used."""
        try:
            objects = installation(self._library.known(plan.version) or (), plan)
        except MissingComponent:
            return []
        return [_member(one) for one in objects if _is_deployment(one)]

    def _differs(self, found: Object | None, wanted: Object) -> bool:
        if found is None:
            return True
        return not _is_self_managed(found) and not self._applier.matches(found, wanted)

    async def render(self, context: ExtensionContext) -> TopicObjects | None:
        if context.shoot.is_hibernated:
            self._shoots.leave(context.key)
            return None
        plan, done = _read(context).plan, is_bootstrapped(context.object)
        writer = ShootWriter(self._shoots, context, clock=self._clock)
        with errors_of_shoot():
            if done and not plan.keeps:
                await writer.copy_secrets(plan.secrets)
                await writer.write_info(plan, context.shoot)
            else:
                pending = await self._sync(writer, context, plan, done=done)
                if pending is not None:
                    return TopicObjects(pending=pending)
            await writer.follow(plan)
        return TopicObjects(state=dict(_STATE), conditions=(_BOOTSTRAPPED,))

    async def _sync(
        self, writer: ShootWriter, context: ExtensionContext, plan: FluxPlan, *, done: bool
    ) -> PendingWork | None:
        """Make the Shoot as the plan says; returns the stage that is to be waited for, until the first success."""
        problem = await self._install(writer, plan)
        await writer.follow(plan)
        if problem and not done:
            return _stage("Installing Flux", 20, INSTALL_TIME, problem)
        await writer.copy_secrets(plan.secrets)
        if plan.source is not None:
            resource = followed_by(plan).source
            assert resource is not None, "a plan with a source follows it"
            state = sync_state(await writer.synced(resource[0], plan.source), resource[0].kind)
            if not done and not state.is_ready:
                return _waiting(state, "Waiting for the source of Flux", 50)
        await writer.write_info(plan, context.shoot)
        if plan.kustomization is not None:
            state = sync_state(await writer.synced(KUSTOMIZATIONS, plan.kustomization), KUSTOMIZATION)
            if not done and not state.is_ready:
                return _waiting(state, "Waiting for the Kustomization of Flux", 80)
        await writer.prune(plan)
        return None

    async def _install(self, writer: ShootWriter, plan: FluxPlan) -> str:
        """Install Flux; returns the objects that are not ready yet. Raises StepError."""
        if await writer.is_self_managed(plan):
            return ""
        try:
            objects = installation(await self._library.load(plan.version), plan)
        except MissingComponent as error:
            raise StepError(str(error), reason="ComponentMissing", actor=Actor.OPERATOR) from error
        return controllers_waiting(await writer.install(objects))

    def observed(self, context: ExtensionContext) -> Sequence[TopicCondition]:
        if not self._shoots.is_followed(context.key):
            return ()
        plan, key = _read(context).plan, context.key
        problem = self._shoots.problem(key)
        if problem:
            state = SyncState(UNKNOWN, "ShootNotSeen", f"The Shoot cannot be seen: {problem}")
            types = _condition_types(plan)
            return [state.condition(type_) for type_ in types]
        found = [controllers_condition(plan.components, self._shoots.deployments(key))]
        if plan.source is not None:
            kind = followed_by(plan).source
            assert kind is not None, "a plan with a source follows it"
            found.append(sync_state(self._shoots.source(key), kind[0].kind).condition(SOURCE_READY))
        if plan.kustomization is not None:
            state = sync_state(self._shoots.kustomization(key), KUSTOMIZATION)
            found.append(state.condition(KUSTOMIZATION_READY))
        return found

    async def leave(self, context: ExtensionContext, operation: str) -> None:
        """Release the Shoot; Flux stays in it."""
        self._shoots.leave(context.key)


_BOOTSTRAPPED: Final = TopicCondition(BOOTSTRAPPED, "True", "BootstrapSuccessful", "Flux was installed.")


def is_bootstrapped(extension: GardenExtension) -> bool:
    """Reports whether Flux was installed once: by its condition, or by the state that came from another seed."""
    status = extension.status
    if any(one.type == BOOTSTRAPPED and one.status == "True" for one in status.conditions):
        return True
    return status.state == _STATE


def _read(context: ExtensionContext) -> ReadFlux:
    return read_flux(context.config, "spec.providerConfig", context.shoot)


def _condition_types(plan: FluxPlan) -> list[str]:
    wanted: list[tuple[str, Any]] = [(SOURCE_READY, plan.source), (KUSTOMIZATION_READY, plan.kustomization)]
    return [CONTROLLERS_HEALTHY, *(type_ for type_, template in wanted if template is not None)]


def _stage(description: str, progress: int, patience: float, problem: str) -> PendingWork:
    return PendingWork(description=description, progress=progress, patience=patience, problem=problem)


def _waiting(state: SyncState, description: str, progress: int) -> PendingWork:
    """The stage of an object that Flux has to reconcile. Raises StepError for one that says that it cannot be."""
    if state.has_failed:
        raise StepError(state.message, reason=state.reason, actor=Actor.PROVIDER)
    return _stage(description, progress, SYNC_TIME, state.message)


def _is_deployment(obj: Object) -> bool:
    return DEPLOYMENTS.kind == obj.get("kind")


def _is_self_managed(obj: Object) -> bool:
    return SELF_MANAGED in metadata_of(obj).labels


def _member(obj: Object) -> Object:
    """The object as the set applies it."""
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "labels": {**metadata["labels"], PART_OF: _SET}}}
