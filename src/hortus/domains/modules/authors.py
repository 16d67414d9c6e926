"""The power that authors of modules have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hortus.domains.modules.types import (
    KYMAS,
    MANIFESTS,
    MODULE_CONFIGURATIONS,
    MODULE_RELEASE_METAS,
    MODULE_TEMPLATES,
    WATCHERS,
)
from hortus.engine.powers import Power
from hortus.kube.objects import Resource

_CATALOG: Final = Power(
    "The modules that Kymas of its namespace install. Hortus serves one namespace, that of --watch-namespace.",
    "Nothing beyond the clusters that its Kymas may enter.",
)
POWERS: Final[Mapping[Resource, Power]] = {
    KYMAS: Power(
        "Modules of the catalog in the cluster whose kubeconfig is labelled for it, with all permissions there.",
        "The same where the deputy may get that Secret.",
    ),
    MANIFESTS: Power(
        "Any object in that cluster.",
        "The same where the deputy may get that Secret; Secrets of the namespace where it may list them.",
    ),
    WATCHERS: Power(
        "A route of the gateway of watchers, to a Service of any namespace.",
        "The same where the deputy may create VirtualServices.",
    ),
    MODULE_TEMPLATES: _CATALOG,
    MODULE_RELEASE_METAS: _CATALOG,
    MODULE_CONFIGURATIONS: _CATALOG,
}
