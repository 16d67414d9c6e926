"""The Kyma of the in-cluster form: its own spec is the truth, and neither it nor the catalog is copied anywhere.

Conditions it owns: Modules. Objects it owns: the Manifests of the Kyma's modules.
It watches: Kymas, Manifests, ModuleTemplates and ModuleReleaseMetas.
It never: connects to another cluster, or changes the spec of the Kyma.
"""

from __future__ import annotations

from collections.abc import Sequence

from hortus.domains.modules.kyma.context import KymaContext, Requeue
from hortus.domains.modules.kyma.reconciling import KymaReconciler
from hortus.domains.modules.kyma.remote import effective
from hortus.domains.modules.kyma.status import KymaCondition
from hortus.engine import Result, Steps
from hortus.kube.objects import ObjectKey


class InClusterKymaController(KymaReconciler):
    """Reconciles one Kyma at a time; see the module's head."""

    def steps(self, context: KymaContext) -> Steps:
        return (
            self._skip,
            self._mark,
            self._take_own,
            self._begin,
            self._process,
            self._conclude,
            self._rest,
        )

    async def gone(self, key: ObjectKey) -> Result | None:
        """Forget the Kyma."""
        self._deletion.forget(key)
        self._metrics.clear(key)
        return None

    async def _take_own(self, context: KymaContext) -> None:
        """Check the Kyma as one from another cluster is checked: users write it."""
        context.stage = Requeue.CONTEXT
        context.wanted = effective(context.object, context.raw, windows_from_remote=True)

    async def _process(self, context: KymaContext) -> None:
        context.stage = Requeue.MANIFESTS
        await self._reconcile_modules(context)

    @property
    def _required(self) -> Sequence[KymaCondition]:
        return (KymaCondition.MODULES,)

    def _measure(self, context: KymaContext) -> None:
        """A Kyma without the labels of a fleet has no metrics, which is no reason for a warning."""
        self._metrics.see(context.key, context.object)
