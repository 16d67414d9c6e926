"""The OpenStackClusterStackRelease controller: the node images that a release needs.

Conditions it owns: all of OpenStackClusterStackReleases. Objects it owns: one OpenStackNodeImageRelease for each image,
by a plain owner reference, since releases with the same image share it.
It watches: OpenStackClusterStackReleases, OpenStackNodeImageReleases.
It never: changes the spec of an OpenStackNodeImageRelease, deletes one, or removes the reference of another owner.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from hortus.domains.stacks.announced import AnnouncedProblems
from hortus.domains.stacks.conditions import Severity
from hortus.domains.stacks.context import ConditionError, StackContext, StackController
from hortus.domains.stacks.names import BadName, ReleaseName, parse_tag
from hortus.domains.stacks.openstack.reasons import ImageCondition, ImageEvent, ImageReason
from hortus.domains.stacks.openstack.service import BadNodeImages, object_name, read_node_images
from hortus.domains.stacks.releases import BadRelease, Library, ReleaseError, SourceUnusable
from hortus.domains.stacks.types import (
    OPENSTACK_NODE_IMAGES,
    OPENSTACK_RELEASES,
    OpenStackClusterStackRelease,
    OpenStackNodeImage,
    OpenStackNodeImageRelease,
)
from hortus.engine import NORMAL, Actor, Cache, Result, Steps, TypedCache, Wiring
from hortus.engine.owners import owner_reference
from hortus.kube import PatchKind
from hortus.kube.errors import AlreadyExists, Conflict, KubeError
from hortus.kube.objects import Object, ObjectKey

ASSETS_AGAIN: Final = 60.0
"""Seconds until a release that cannot be had is tried again, as in the Go provider."""
OWNER_INDEX: Final = "openstack-release"


class StackReleaseContext(StackContext[OpenStackClusterStackRelease]):
    """One reconcile of one OpenStackClusterStackRelease."""

    wanted: dict[str, OpenStackNodeImage]
    """The images by the names of their objects."""


class OpenStackReleaseController(StackController[StackReleaseContext]):
    """Reconciles one OpenStackClusterStackRelease at a time."""

    kind = OpenStackClusterStackRelease
    field_manager = "hortus"

    def __init__(self, wiring: Wiring[Any], *, images: Cache, library: Library) -> None:
        super().__init__(wiring)
        self._images = TypedCache(OpenStackNodeImageRelease, images)
        self._library = library
        self._announced = AnnouncedProblems()
        self._images.add_index(OWNER_INDEX, lambda one: [str(key) for key in releases_of(one)])

    def make_context(self, raw: Object) -> StackReleaseContext:
        return StackReleaseContext(self.wiring, raw)

    async def gone(self, key: ObjectKey) -> Result | None:
        self._announced.forget(key)
        return None

    def steps(self, context: StackReleaseContext) -> Steps:
        return (self._read_images, self._provide, self._observe)

    # Steps.

    async def _read_images(self, context: StackReleaseContext) -> None:
        try:
            name = parse_tag(context.key.name)
            if not context.is_true(ImageCondition.ASSETS_READY):
                context.false(ImageCondition.ASSETS_READY, ImageReason.NOT_DOWNLOADED, Severity.INFO)
                await context.checkpoint()
            context.wanted = await self._wanted(name)
        except SourceUnusable as error:
            raise _failed(error, ImageCondition.ASSETS_CLIENT, ImageReason.CLIENT_FAILED, Severity.ERROR) from error
        except (BadName, BadRelease, BadNodeImages) as error:
            raise _failed(error, ImageCondition.ASSETS_READY, ImageReason.BAD_ASSETS, Severity.ERROR) from error
        except ReleaseError as error:
            raise _failed(error, ImageCondition.ASSETS_READY, ImageReason.NOT_DOWNLOADED, Severity.INFO) from error
        context.true(ImageCondition.ASSETS_CLIENT)
        if not context.is_true(ImageCondition.ASSETS_READY):
            context.event(NORMAL, ImageEvent.ASSETS_READY, f"the node images of release {name.tag} are known")
        context.true(ImageCondition.ASSETS_READY)

    async def _wanted(self, name: ReleaseName) -> dict[str, OpenStackNodeImage]:
        release = await self._library.fetch(name)
        document = await release.node_images()
        if document is None:
            raise BadNodeImages(f"release {name.tag}: has no file node-images.yaml; publish it with one")
        images = read_node_images(document)
        return {object_name(name, image, release.versions.node_image): image for image in images}

    async def _provide(self, context: StackReleaseContext) -> None:
        differing = []
        for name, image in context.wanted.items():
            live = self._images.get(ObjectKey(context.key.namespace, name))
            try:
                if live is None:
                    await self._create(context, name, image)
                elif not self._is_owned(context, live):
                    await self._own(context, live)
            except Conflict:
                raise
            except KubeError as error:
                created = live is None
                event = ImageEvent.RELEASE_NOT_CREATED if created else ImageEvent.RELEASE_NOT_UPDATED
                context.warn(event, f"OpenStackNodeImageRelease {name}: {error}")
                raise
            if live is not None and (problem := self._difference(context, live, image)):
                differing.append(problem)
        self._announced.warn(context, ImageEvent.RELEASE_NOT_UPDATED, differing)

    async def _observe(self, context: StackReleaseContext) -> None:
        owned = {one.metadata.name: one for one in self._images.by(OWNER_INDEX, str(context.key))}
        waiting = sorted(name for name in context.wanted if name not in owned or not owned[name].status.ready)
        if waiting or not context.wanted:
            done = len(context.wanted) - len(waiting)
            message = f"{done} of {len(context.wanted)} node images are ready"
            if waiting:
                message += f"; waiting for {', '.join(waiting[:5])}"
            context.false(ImageCondition.IMAGES_READY, ImageReason.ONGOING, Severity.INFO, message)
            context.set_status("ready", False)
            return
        if not context.is_true(ImageCondition.IMAGES_READY):
            context.event(NORMAL, ImageEvent.RELEASES_READY, "all node images are ready")
        context.true(ImageCondition.IMAGES_READY)
        context.set_status("ready", True)

    # Writes.

    async def _create(self, context: StackReleaseContext, name: str, image: OpenStackNodeImage) -> None:
        spec = {
            "identityRef": msgspec.to_builtins(context.object.spec.identity_ref),
            "image": {"url": image.url, "createOpts": _given(image)},
        }
        body = {
            "apiVersion": OPENSTACK_NODE_IMAGES.api_version,
            "kind": OPENSTACK_NODE_IMAGES.kind,
            "metadata": {
                "name": name,
                "namespace": context.key.namespace,
                "ownerReferences": [self._reference(context)],
            },
            "spec": spec,
        }
        client = self.wiring.client
        try:
            made = await client.create(OPENSTACK_NODE_IMAGES, body, field_manager=self.field_manager)
        except AlreadyExists:
            # The watch brings it, and this release with it.
            return
        self._images.raw.learn(made)
        context.event(NORMAL, ImageEvent.RELEASE_CREATED, f"OpenStackNodeImageRelease {name} was created")

    async def _own(self, context: StackReleaseContext, live: OpenStackNodeImageRelease) -> None:
        """Add the reference of this release, and leave those of the others as they are."""
        references = live.metadata.owner_references
        path = "/metadata/ownerReferences"
        added: Object = {"op": "add", "path": f"{path}/-", "value": self._reference(context)}
        if not references:
            added = {"op": "add", "path": path, "value": [self._reference(context)]}
        # A patch of an object that changed meanwhile is a conflict by its version; a failed "test" would be Invalid.
        unchanged = {"op": "replace", "path": "/metadata/resourceVersion", "value": live.metadata.resource_version}
        made = await self.wiring.client.patch(
            OPENSTACK_NODE_IMAGES,
            live.metadata.name,
            [unchanged, added],
            live.metadata.namespace,
            PatchKind.JSON,
            field_manager=self.field_manager,
        )
        self._images.raw.learn(made)

    def _reference(self, context: StackReleaseContext) -> Object:
        head = {"apiVersion": OPENSTACK_RELEASES.api_version, "kind": OPENSTACK_RELEASES.kind}
        return owner_reference({**context.raw, **head}, controller=False, block_deletion=False)

    def _is_owned(self, context: StackReleaseContext, live: OpenStackNodeImageRelease) -> bool:
        return any(owner.uid == context.object.metadata.uid for owner in live.metadata.owner_references)

    def _difference(
        self, context: StackReleaseContext, live: OpenStackNodeImageRelease, image: OpenStackNodeImage
    ) -> str:
        """The warning for an object that another release made with another image or cloud; empty where it fits."""
        wanted = {"identityRef": context.object.spec.identity_ref, "image": image}
        found = {"identityRef": live.spec.identity_ref, "image": live.spec.image}
        parts = [f"spec.{part}" for part, value in wanted.items() if value != found[part]]
        if not parts:
            return ""
        advice = "it is kept as it is; raise the node image version of the release to have another one"
        return f"OpenStackNodeImageRelease {live.metadata.name}: differs in {' and '.join(parts)}; {advice}"


def releases_of(image: OpenStackNodeImageRelease) -> Iterable[ObjectKey]:
    """The releases that own a node image."""
    for owner in image.metadata.owner_references:
        group = owner.api_version.rpartition("/")[0]
        if (group, owner.kind) == (OPENSTACK_RELEASES.group, OPENSTACK_RELEASES.kind):
            yield ObjectKey(image.metadata.namespace, owner.name)


def _given(image: OpenStackNodeImage) -> Object:
    """The options of an image that its release gives."""
    found = msgspec.to_builtins(image.create_opts)
    return {field: value for field, value in found.items() if value}


def _failed(error: Exception, condition: ImageCondition, reason: ImageReason, severity: Severity) -> ConditionError:
    events = {ImageReason.CLIENT_FAILED: ImageEvent.CLIENT_FAILED, ImageReason.BAD_ASSETS: ImageEvent.BAD_ASSETS}
    return ConditionError(
        str(error),
        condition=condition,
        reason=reason,
        severity=severity,
        after=ASSETS_AGAIN,
        actor=Actor.OPERATOR,
        event=events.get(reason, ""),
    )
