"""The OpenStackNodeImageRelease controller: one node image in one cloud.

Conditions it owns: all of OpenStackNodeImageReleases. Objects it owns: images in Glance, recorded by an annotation.
It watches: OpenStackNodeImageReleases, the Secrets that they name. Glance has no watch: an image is asked for every
--openstack-poll-interval until it is active, then with the resync.
It never: deletes an image unless --delete-node-images is set, the image is its own, and no owner is left; takes
readiness away because Glance does not answer.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from hortus.domains.stacks.conditions import Severity, condition_of
from hortus.domains.stacks.context import ConditionError, StackContext, StackController
from hortus.domains.stacks.openstack.clouds import read_cloud
from hortus.domains.stacks.openstack.errors import BadCloud, NoImageService, OpenStackError
from hortus.domains.stacks.openstack.glance import CloudImage, ImageService, ImportTask
from hortus.domains.stacks.openstack.reasons import ImageCondition, ImageEvent, ImageReason
from hortus.domains.stacks.openstack.service import (
    IMAGE_ANNOTATION,
    ImageState,
    ImageVerdict,
    foreign_problem,
    hash_problem,
    judge,
)
from hortus.domains.stacks.openstack.services import ImageServices
from hortus.domains.stacks.openstack.settings import OpenStackSettings
from hortus.domains.stacks.types import OPENSTACK_NODE_IMAGES, OpenStackNodeImageRelease, SeverityCondition
from hortus.engine import NEVER, NORMAL, Actor, Cache, Result, Steps, Wiring, has_finalizer, metadata_of, read
from hortus.engine.deputies import Deputies, refusal, secret_reading
from hortus.engine.leftovers import Debt, LeftoverRecorder, infrastructure_item, source_of
from hortus.engine.leftovers.types import LeftoverReason
from hortus.engine.remote import SECRETS
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey, parse_time, shaped

SECRET_AGAIN: Final = 60.0
"""Seconds until a missing Secret is looked for again; its creation wakes the controller earlier."""
FINALIZER: Final = f"{OPENSTACK_NODE_IMAGES.plural}.{OPENSTACK_NODE_IMAGES.group}"
"""Held only while --delete-node-images is set."""
CLOUD_INDEX: Final = "cloud"


class _SecretVersion(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _SecretHead(msgspec.Struct):
    metadata: _SecretVersion


class NodeImageContext(StackContext[OpenStackNodeImageRelease]):
    """One reconcile of one OpenStackNodeImageRelease."""

    service: ImageService
    image: CloudImage | None = None
    tasks: Sequence[ImportTask] = ()


class NodeImageController(StackController[NodeImageContext]):
    """Reconciles one OpenStackNodeImageRelease at a time."""

    kind = OpenStackNodeImageRelease
    field_manager = "hortus"

    def __init__(
        self,
        wiring: Wiring[Any],
        *,
        services: ImageServices,
        settings: OpenStackSettings,
        releases: Cache,
        deputies: Deputies,
        leftovers: LeftoverRecorder,
    ) -> None:
        super().__init__(wiring)
        self._deputies = deputies
        self._leftovers = leftovers
        self._services = services
        self._settings = settings
        self._releases = releases
        self._imports: dict[ObjectKey, float] = {}
        """The times of the last imports; after a restart that of the condition counts."""
        wiring.cache.add_index(
            CLOUD_INDEX, lambda one: [str(ObjectKey(one.metadata.namespace, one.spec.identity_ref.name))]
        )

    def make_context(self, raw: Object) -> NodeImageContext:
        return NodeImageContext(self.wiring, raw)

    async def gone(self, key: ObjectKey) -> Result | None:
        self._imports.pop(key, None)
        return None

    def steps(self, context: NodeImageContext) -> Steps:
        return (self._hold, self._connect, self._find, self._create, self._observe)

    def finalize_steps(self, context: NodeImageContext) -> Steps:
        return (self._connect_to_delete, self._delete, self._release)

    # Steps.

    async def _hold(self, context: NodeImageContext) -> None:
        if self._settings.deletes_images:
            await context.ensure_finalizer(FINALIZER)
        else:
            await context.remove_finalizer(FINALIZER)

    async def _connect(self, context: NodeImageContext) -> None:
        spec = context.object.spec
        key = ObjectKey(context.key.namespace, spec.identity_ref.name)
        place = f"Secret {key}"
        await context.require(self._deputies, secret_reading(*key), condition=ImageCondition.CLOUD)
        try:
            secret = await self.wiring.client.get(SECRETS, key.name, key.namespace)
            access = read_cloud(secret, place)
            head = msgspec.convert(secret, _SecretHead)
            service = await self._services.get(key, head.metadata.resource_version, access)
        except NotFound:
            await self._services.drop(key)
            raise ConditionError(
                f"{place} does not exist; create it with the key clouds.yaml, or correct spec.identityRef.name",
                condition=ImageCondition.CLOUD,
                reason=ImageReason.SECRET_NOT_FOUND,
                severity=Severity.ERROR,
                after=SECRET_AGAIN,
                actor=Actor.USER,
                event=ImageEvent.SECRET_NOT_FOUND,
            ) from None
        except BadCloud as error:
            raise _cloud_not_set(error) from error
        context.true(ImageCondition.CLOUD)
        try:
            await service.connect()
        except BadCloud as error:
            raise _cloud_not_set(error) from error
        except OpenStackError as error:
            no_service = isinstance(error, NoImageService)
            raise ConditionError(
                str(error),
                condition=ImageCondition.SERVICE,
                reason=ImageReason.SERVICE_NOT_SET,
                severity=Severity.ERROR,
                after=self._settings.poll,
                actor=Actor.USER,
                event=ImageEvent.SERVICE_NOT_SET if no_service else ImageEvent.PROVIDER_NOT_SET,
            ) from error
        context.true(ImageCondition.SERVICE)
        context.service = service

    async def _find(self, context: NodeImageContext) -> None:
        options = context.object.spec.image.create_opts
        try:
            found = await context.service.find(options)
            if len(found) == 1:
                context.image = found[0]
                if found[0].status != "active" or self._is_foreign(context):
                    context.tasks = await context.service.tasks(found[0].id)
        except OpenStackError as error:
            raise self._unanswered(error, ImageEvent.FIND_FAILED) from error
        if len(found) > 1:
            ids = ", ".join(sorted(image.id for image in found)[:5])
            raise _issue(
                f"{len(found)} images are named {options.name!r}: {ids}; delete or rename all but one",
                ImageEvent.FIND_FAILED,
            )

    async def _create(self, context: NodeImageContext) -> None:
        if context.image is not None:
            return
        image = context.object.spec.image
        context.set_status("ready", False)
        context.false(
            ImageCondition.ACTIVE, ImageReason.NOT_CREATED, Severity.INFO, f"image {image.create_opts.name} is created"
        )
        self._not_started(context)
        context.event(NORMAL, ImageEvent.IMPORT_STARTED, f"image {image.create_opts.name} is created and imported")
        await context.checkpoint()
        try:
            context.image = await context.service.create(image.create_opts)
        except OpenStackError as error:
            raise self._unanswered(error, ImageEvent.CREATE_FAILED) from error
        context.event(NORMAL, ImageEvent.CREATED, f"image {context.image.id} was created")
        await self._record(context, context.image)

    async def _observe(self, context: NodeImageContext) -> Result | None:
        image = context.image
        assert image is not None, "found or created"
        if self._is_foreign(context) and (problem := foreign_problem(image, context.object.spec.image, context.tasks)):
            raise _issue(problem, ImageEvent.UNEXPECTED)
        verdict = judge(
            image,
            context.tasks,
            waited=self._waited(context),
            begun=self._begun(context),
            timeout=self._settings.import_timeout,
        )
        match verdict.state:
            case ImageState.IMPORT:
                return await self._import(context, image)
            case ImageState.ACTIVE:
                self._accept(context, image)
                return None
            case ImageState.WAIT:
                return await self._wait(context, image, verdict)
        return self._report(context, verdict)

    async def _import(self, context: NodeImageContext, image: CloudImage) -> Result:
        """Begin the import of an image, also of one that a former process created and left without data."""
        url = context.object.spec.image.url
        try:
            await context.service.start_import(image.id, url)
        except OpenStackError as error:
            raise self._unanswered(error, ImageEvent.IMPORT_FAILED) from error
        self._imports[context.key] = context.now
        context.true(ImageCondition.IMPORT_STARTED)
        context.set_status("ready", False)
        context.false(
            ImageCondition.ACTIVE, ImageReason.NOT_IMPORTED, Severity.INFO, f"image {image.id} is {image.status}"
        )
        context.event(NORMAL, ImageEvent.IMPORT_STARTED, f"the import of image {image.id} has begun")
        await context.checkpoint()
        await self._record(context, image)
        return Result(requeue_after=0.0)

    def _accept(self, context: NodeImageContext, image: CloudImage) -> None:
        if problem := hash_problem(image, context.object.spec.image):
            context.set_status("ready", False)
            raise _issue(problem, ImageEvent.UNEXPECTED)
        self._imports.pop(context.key, None)
        if not context.is_true(ImageCondition.ACTIVE):
            context.event(NORMAL, ImageEvent.ACTIVE, f"image {image.id} is active")
        context.true(ImageCondition.IMPORT_STARTED)
        context.true(ImageCondition.ACTIVE)
        context.set_status("ready", True)

    async def _wait(self, context: NodeImageContext, image: CloudImage, verdict: ImageVerdict) -> Result:
        """Report the progress of an import, which a former process may have begun without a note of it."""
        context.set_status("ready", False)
        context.true(ImageCondition.IMPORT_STARTED)
        context.false(ImageCondition.ACTIVE, ImageReason.NOT_IMPORTED, Severity.INFO, verdict.message)
        if context.tasks and context.tasks[0].uri == context.object.spec.image.url:
            await self._record(context, image)
        return Result(requeue_after=self._settings.poll)

    def _report(self, context: NodeImageContext, verdict: ImageVerdict) -> Result | None:
        """Draft the state of an image that cannot be used."""
        context.set_status("ready", False)
        if verdict.state is ImageState.FAILED:
            if not self._has_reason(context, ImageReason.ISSUE):
                context.warn(ImageEvent.IMPORT_FAILED, verdict.message)
            context.false(ImageCondition.ACTIVE, ImageReason.ISSUE, Severity.ERROR, verdict.message)
            return Result(requeue_after=self._settings.poll)
        if verdict.state is ImageState.TIMED_OUT:
            if not self._has_reason(context, ImageReason.TIMED_OUT):
                context.warn(ImageEvent.TIMED_OUT, verdict.message)
            context.false(ImageCondition.ACTIVE, ImageReason.TIMED_OUT, Severity.ERROR, verdict.message)
            return None
        unknown = verdict.state is ImageState.UNKNOWN
        raise _issue(verdict.message, ImageEvent.UNKNOWN if unknown else ImageEvent.UNEXPECTED)

    # Deletion.

    async def _connect_to_delete(self, context: NodeImageContext) -> Result | None:
        if not has_finalizer(context.raw, FINALIZER):
            return Result()
        if not self._must_delete(context):
            return None
        namespace, cloud = context.key.namespace, context.object.spec.identity_ref.name
        reading = secret_reading(namespace, cloud)
        if await self._deputies.may(namespace, reading):
            await self._connect(context)
            return None
        await self._leftovers.record(_debt(context, refusal(namespace, reading)))
        context.warn(ImageEvent.NOT_PERMITTED, f"its image is left behind: {refusal(namespace, reading)}")
        await self._release(context)
        return Result()

    async def _delete(self, context: NodeImageContext) -> None:
        if not self._must_delete(context):
            return
        image = context.object.metadata.annotations[IMAGE_ANNOTATION]
        try:
            await context.service.delete(image)
        except OpenStackError as error:
            raise self._unanswered(error, ImageEvent.DELETE_FAILED) from error
        context.event(NORMAL, ImageEvent.DELETED, f"image {image} was deleted with its last owner")

    async def _release(self, context: NodeImageContext) -> None:
        await context.remove_finalizer(FINALIZER)

    def _must_delete(self, context: NodeImageContext) -> bool:
        """True where the image is recorded as our own, and nobody needs it any more."""
        metadata = context.object.metadata
        image = metadata.annotations.get(IMAGE_ANNOTATION, "")
        if not image or not self._settings.deletes_images or context.object.spec.image.create_opts.protected:
            return False
        living = {metadata_of(found).uid for found in self._releases.values()}
        if any(owner.uid in living for owner in metadata.owner_references):
            return False
        others = (read(OpenStackNodeImageRelease, raw) for raw in self.wiring.cache.raw.values())
        return not any(
            other.metadata.annotations.get(IMAGE_ANNOTATION) == image
            for other in others
            if other.metadata.uid != metadata.uid
        )

    # Facts about an image.

    async def _record(self, context: NodeImageContext, image: CloudImage) -> None:
        if self._is_foreign(context):
            await context.patch({"metadata": {"annotations": {IMAGE_ANNOTATION: image.id}}})

    def _is_foreign(self, context: NodeImageContext) -> bool:
        """True where the image is not recorded as created or imported for this object."""
        found = context.image
        return found is not None and context.object.metadata.annotations.get(IMAGE_ANNOTATION) != found.id

    def _not_started(self, context: NodeImageContext) -> None:
        context.false(ImageCondition.IMPORT_STARTED, ImageReason.IMPORT_NOT_STARTED, Severity.INFO)

    def _waited(self, context: NodeImageContext) -> float | None:
        """Seconds since the condition says that the import has begun."""
        if not context.is_true(ImageCondition.IMPORT_STARTED):
            return None
        found = _condition(context, ImageCondition.IMPORT_STARTED)
        try:
            return max(context.now - parse_time(found.last_transition_time), 0.0) if found is not None else None
        except ValueError:
            return 0.0

    def _begun(self, context: NodeImageContext) -> float | None:
        """Seconds since the import was begun last."""
        waited, last = self._waited(context), self._imports.get(context.key)
        if waited is None or last is None:
            return waited
        return min(waited, context.now - last)

    def _unanswered(self, error: OpenStackError, event: ImageEvent) -> ConditionError:
        """The failure of one request. It says nothing about the image, so readiness stays as it is."""
        return _issue(str(error), event, after=self._settings.poll)

    def _has_reason(self, context: NodeImageContext, reason: ImageReason) -> bool:
        found = _condition(context, ImageCondition.ACTIVE)
        return found is not None and found.reason == reason


def _debt(context: NodeImageContext, message: str) -> Debt:
    """The debt for an image whose deletion the namespace may not ask for."""
    metadata = context.object.metadata
    image = metadata.annotations[IMAGE_ANNOTATION]
    return Debt(
        source=source_of(OPENSTACK_NODE_IMAGES.kind, metadata),
        reason=LeftoverReason.NOT_PRUNED,
        message=message,
        items=[
            infrastructure_item(
                f"Image {image} of the cloud in Secret {metadata.namespace}/{context.object.spec.identity_ref.name}",
                image,
                look=f"openstack image show {shlex.quote(image)}",
                remove=f"openstack image delete {shlex.quote(image)}",
            )
        ],
        since=metadata.deletion_timestamp,
    )


def _condition(context: NodeImageContext, kind: ImageCondition) -> SeverityCondition | None:
    return shaped(condition_of(context.draft.fields, kind), SeverityCondition)


def _cloud_not_set(error: BadCloud) -> ConditionError:
    return ConditionError(
        str(error),
        condition=ImageCondition.CLOUD,
        reason=ImageReason.CLOUD_NOT_SET,
        severity=Severity.ERROR,
        after=NEVER,
        actor=Actor.USER,
        event=ImageEvent.CLOUD_NOT_SET,
    )


def _issue(message: str, event: ImageEvent, *, after: float = NEVER) -> ConditionError:
    """A problem of the image; without `after` the object rests until it changes, or until the resync."""
    return ConditionError(
        message,
        condition=ImageCondition.ACTIVE,
        reason=ImageReason.ISSUE,
        severity=Severity.ERROR,
        after=after,
        actor=Actor.PROVIDER,
        event=event,
    )
