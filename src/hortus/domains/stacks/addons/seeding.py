"""The objects of the release before, for a list that lacks them: with stages the Go system leaves none."""

from __future__ import annotations

from hortus.domains.stacks.addons.config import AddonConfigError
from hortus.domains.stacks.addons.context import AddonContext
from hortus.domains.stacks.addons.failures import workload_errors
from hortus.domains.stacks.addons.reasons import OLD_RENDER_FAILED
from hortus.domains.stacks.addons.rendering import (
    AddonReleases,
    AddonRendering,
    ArchiveInvalid,
    RenderFailed,
    ValuesError,
)
from hortus.domains.stacks.names import parse_either
from hortus.domains.stacks.releases.errors import ReleaseError
from hortus.domains.stacks.releases.release import StackRelease
from hortus.kube.objects import Object


class FormerObjects:
    """Finds the objects of the release that a ClusterAddon reports as installed."""

    def __init__(self, releases: AddonReleases, rendering: AddonRendering) -> None:
        self._releases = releases
        self._rendering = rendering

    async def seed(self, context: AddonContext) -> None:
        """Add them to the list, as far as they can be rendered."""
        name = parse_either(context.object.spec.cluster_stack)
        if name is None:
            return
        try:
            old = await self._releases.fetch(name)
            objects = await self._rendered(context, old)
        except (ReleaseError, ArchiveInvalid, AddonConfigError, ValuesError, RenderFailed) as error:
            # The rest of it can only be found by hand; an upgrade is worth more.
            context.warn(OLD_RENDER_FAILED, f"the objects of release {name.tag} are not known: {error}")
            return
        async with workload_errors(context):
            await context.inventory.name(objects)
            stored = await context.inventory.load()
            await context.inventory.store({**await context.inventory.members(objects), **stored})
        context.set_resources(context.inventory.listed)

    async def _rendered(self, context: AddonContext, release: StackRelease) -> list[Object]:
        if not release.is_multi_stage:
            return await self._rendering.single(release, context.data, context.served)
        found = await self._rendering.staged(release)
        objects: list[Object] = []
        for name in found.config.applied_charts(""):
            if name in found.charts:
                objects += await self._rendering.chart(release, name, found.charts[name], context.data, context.served)
        return objects
