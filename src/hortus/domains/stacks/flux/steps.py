"""The steps of a ClusterAddon that concern Flux: who applies its addons, and the change from one to the other.

A change runs the stages of the last hook again: each chart is handed over in its turn, and its stage waits for its
HelmRelease. Objects are not deleted in between: helm-controller takes ownership of what exists, and what Hortus applies
again has the same names.
"""

from __future__ import annotations

from hortus.domains.stacks.addons.context import AddonContext
from hortus.domains.stacks.addons.failures import condition_error
from hortus.domains.stacks.addons.reasons import FLUX_NOT_OFFERED, FLUX_NOT_READY, AddonCondition
from hortus.domains.stacks.conditions import Severity
from hortus.domains.stacks.flux.handover import FluxHandover, handed
from hortus.domains.stacks.flux.settings import BY_FLUX, CHOICE, FluxSettings
from hortus.engine.outcomes import NEVER


class FluxSteps:
    """Decides by flags and annotations; `handover` is None where Flux is not offered."""

    def __init__(self, settings: FluxSettings, handover: FluxHandover | None = None) -> None:
        self._settings = settings
        self.handover = handover

    async def choose(self, context: AddonContext) -> None:
        """Find out who applies the addons. Raises ConditionError for a choice that cannot be followed."""
        chosen = context.cluster.metadata.annotations.get(CHOICE, "")
        problem = self._settings.problem(chosen)
        if not problem and self.handover is None and handed(context.object) is not None:
            problem = (
                self._settings.problem(BY_FLUX) + "; Flux applies these addons now, and only with it gives them back"
            )
        if problem:
            raise condition_error(
                AddonCondition.FLUX_READY,
                FLUX_NOT_OFFERED,
                f"Cluster {context.cluster.key}: annotation {CHOICE}: {problem}",
                severity=Severity.ERROR,
                after=NEVER,
            )
        context.by_flux = self.handover is not None and self._settings.wants(chosen)
        if self.handover is not None and (context.by_flux or handed(context.object) is not None):
            await self.handover.ready(context)
        if not context.by_flux:
            context.drop(AddonCondition.FLUX_READY)

    def rests(self, context: AddonContext) -> bool:
        """Reports whether nothing is to be handed over, taken back or mended. Drafts the state of HelmReleases."""
        if context.by_flux != (handed(context.object) is not None):
            return False
        if self.handover is None or not context.by_flux:
            return True
        found = self.handover.standing(context)
        if found.problem:
            context.false(AddonCondition.FLUX_READY, FLUX_NOT_READY, Severity.WARNING, found.problem)
        else:
            context.true(AddonCondition.FLUX_READY)
        return found.intact

    async def switch(self, context: AddonContext) -> None:
        """Begin to hand over, or take back. Raises ConditionError while Flux has not released all of them."""
        if self.handover is None:
            return
        installed = context.object.spec.cluster_stack == context.cluster.class_name
        if installed and not self.rests(context):
            # Installed addons count as not applied until all of them have been handed over.
            context.unready()
            await context.checkpoint()
        if context.by_flux:
            await self.handover.begin(context)
        elif handed(context.object) is not None:
            await self.handover.take_back(context)

    async def abandon(self, context: AddonContext) -> None:
        """Leave the addons of a ClusterAddon that is deleted as they are."""
        if self.handover is not None:
            await self.handover.abandon(context)


__all__ = ["FluxSteps"]
