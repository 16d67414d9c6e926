"""Upgrades that are held back: until the delay of their Kyma is over, or until a rollout admits the cluster."""

from __future__ import annotations

import msgspec

from hortus.domains.modules.kyma.catalog import ModuleCatalog
from hortus.domains.modules.kyma.context import KymaContext
from hortus.domains.modules.kyma.documents import changed_at
from hortus.domains.modules.kyma.fanout import upgrade_time
from hortus.domains.modules.kyma.resolution import ResolvedModule
from hortus.domains.modules.names import State
from hortus.domains.modules.types import Manifest, ModuleStatus
from hortus.kube.objects import ObjectKey


class UpgradeHolding:
    """Decides whether a module that is installed stays in its version for now."""

    def __init__(self, catalog: ModuleCatalog, *, longest: float) -> None:
        """`longest` is the longest delay in seconds of a Kyma after a change of a release."""
        self._catalog = catalog
        self._longest = longest

    def held(
        self, context: KymaContext, resolved: ResolvedModule, before: ModuleStatus, current: Manifest
    ) -> ModuleStatus | None:
        """The status of a module that is held back; None for one that may be upgraded now.

        Only a change of the release waits. A user who chooses another channel gets its version at once.
        """
        version = resolved.template.spec.version
        if not self._longest or current.spec is None or current.spec.version == version:
            return None
        if before.channel != resolved.channel or not resolved.module.managed:
            return None
        release = self._catalog.releases.get(ObjectKey(context.key.namespace, resolved.module.name))
        changed = changed_at(release) if release is not None else 0.0
        due = upgrade_time(context.key, resolved.module.name, version, changed=changed, longest=self._longest)
        if due <= context.now:
            return None
        context.wait_until(due)
        return msgspec.structs.replace(before, state=current.status.state or State.PROCESSING.value)
