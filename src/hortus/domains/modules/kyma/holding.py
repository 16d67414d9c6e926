"""Upgrades that are held back: until a rollout admits the cluster, or until the delay of its Kyma is over.

Only a change of the release waits, and a version that was pushed again: another layer of the same version. A user who
chooses another channel gets its version at once.
"""

from __future__ import annotations

from typing import Final

import msgspec

from hortus.domains.modules.kyma.catalog import ModuleCatalog
from hortus.domains.modules.kyma.changes import MODULE, WAITS
from hortus.domains.modules.kyma.context import KymaContext
from hortus.domains.modules.kyma.documents import changed_at
from hortus.domains.modules.kyma.fanout import cluster_of, upgrade_time
from hortus.domains.modules.kyma.resolution import ResolvedModule
from hortus.domains.modules.names import State
from hortus.domains.modules.types import MANIFESTS, InstallSource, Manifest, ModuleStatus
from hortus.engine import Cache
from hortus.engine.rollouts import Proposal, RolloutGate
from hortus.engine.rollouts.gate import UNREAD
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import ObjectKey
from hortus.render.bounded import Bounded

_MOST_PUSHES: Final = 1000
"""Layers that were pushed under a version that had another one, and are remembered."""


class UpgradeHolding:
    """Decides whether a module that is installed stays in its version for now."""

    def __init__(
        self, client: Client, manifests: Cache, catalog: ModuleCatalog, gate: RolloutGate, *, longest: float
    ) -> None:
        """`longest` is the longest delay in seconds of a Kyma after a change of a release that no policy governs."""
        self._client = client
        self._manifests = manifests
        self._catalog = catalog
        self._gate = gate
        self._longest = longest
        self._pushes: Bounded[tuple[str, str, str], float] = Bounded(_MOST_PUSHES, lambda key, value: 1)

    async def held(
        self, context: KymaContext, resolved: ResolvedModule, before: ModuleStatus, current: Manifest, wanted: Manifest
    ) -> ModuleStatus | None:
        """The status of a module that is held back; None for one whose Manifest may become `wanted` now.

        Raises KubeError.
        """
        version = resolved.template.spec.version
        if current.spec is None or wanted.spec is None:
            return None
        if before.channel != resolved.channel or not resolved.module.managed:
            return None
        state = current.status.state or State.PROCESSING.value
        if current.spec.version == version:
            source = msgspec.convert(wanted.spec.install.source, InstallSource)
            if source == msgspec.convert(current.spec.install.source, InstallSource):
                return None
            due = self._push_due(context, resolved.module.name, source)
            if due <= context.now:
                return None
            context.wait_until(due)
            return msgspec.structs.replace(before, state=state)
        answer = self._gate.ask(Proposal(MODULE, resolved.module.name, version), cluster_of(context.object))
        if not answer.allowed:
            if answer is not UNREAD:
                await self._annotate(current, version)
            return msgspec.structs.replace(before, state=state, message=answer.reason)
        if answer.rollout:
            return None
        due = self._due(context, resolved.module.name, version)
        if due <= context.now:
            return None
        context.wait_until(due)
        return msgspec.structs.replace(before, state=state)

    async def settle(self, current: Manifest) -> None:
        """Take off the annotation of a Manifest that waits for nothing any more. Raises KubeError."""
        if WAITS in current.metadata.annotations:
            await self._annotate(current, None)

    def _due(self, context: KymaContext, module: str, version: str) -> float:
        release = self._catalog.releases.get(ObjectKey(context.key.namespace, module))
        changed = changed_at(release) if release is not None else 0.0
        return upgrade_time(context.key, module, version, changed=changed, longest=self._longest)

    def _push_due(self, context: KymaContext, module: str, source: InstallSource) -> float:
        """The time at which a Kyma takes a layer that was pushed under the version it has.

        It counts from the first reconcile that met the layer, as a registry does not say when a tag was moved: after a
        restart the Kymas that still wait begin their delays again.
        """
        push = (module, source.repo, source.ref)
        seen = self._pushes.get(push)
        if seen is None:
            seen = context.now
            self._pushes.put(push, seen)
        return upgrade_time(context.key, module, source.ref, changed=seen, longest=self._longest)

    async def _annotate(self, manifest: Manifest, version: str | None) -> None:
        metadata = manifest.metadata
        if metadata.annotations.get(WAITS) == version:
            return
        patch = {"metadata": {"annotations": {WAITS: version}}}
        try:
            written = await self._client.patch(MANIFESTS, metadata.name, patch, metadata.namespace)
        except NotFound:
            return
        self._manifests.learn(written)
