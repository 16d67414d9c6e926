"""The RBAC rules of this domain on the control plane; the roles of the chart come from here.

Kymas, ModuleTemplates, ModuleReleaseMetas and Watchers are created and deleted by others alone.
"""

from __future__ import annotations

from hortus.domains import NamespaceRules
from hortus.domains.modules.kyma.documents import CRDS
from hortus.domains.modules.types import KYMAS, MANIFESTS, MODULE_CONFIGURATIONS, MODULE_RELEASE_METAS, MODULE_TEMPLATES
from hortus.domains.modules.watching.rbac import CONTROL as WATCHING
from hortus.domains.modules.watching.rbac import ISTIO
from hortus.engine.deputies import IMPERSONATES, REVIEWS
from hortus.engine.rbac import Permission

_GROUP = KYMAS.group
_RELEASES = MODULE_RELEASE_METAS.plural

CONTROL: tuple[Permission, ...] = (
    Permission(_GROUP, (KYMAS.plural,), ("get", "list", "watch", "patch"), "follows Kymas and marks them as its own"),
    Permission(_GROUP, (f"{KYMAS.plural}/status",), ("patch",), "reports the state of modules"),
    Permission(
        _GROUP,
        (MANIFESTS.plural,),
        ("get", "list", "watch", "create", "patch", "delete", "deletecollection"),
        "keeps a Manifest for each module of a cluster",
    ),
    Permission(_GROUP, (f"{MANIFESTS.plural}/status",), ("patch",), "reports the state of a module"),
    Permission(_GROUP, (_RELEASES,), ("get", "list", "watch", "patch"), "finds versions; holds mandatory modules"),
    Permission(_GROUP, (MODULE_TEMPLATES.plural,), ("list", "watch"), "finds the versions of modules"),
    Permission(
        MODULE_CONFIGURATIONS.group,
        (MODULE_CONFIGURATIONS.plural,),
        ("list", "watch"),
        "configures modules before their users",
    ),
    Permission("", ("secrets",), ("get", "list", "watch"), "connects to clusters, and to the registry"),
    *WATCHING,
)
"""In the namespace of Kymas."""
WIDE: tuple[Permission, ...] = (
    Permission(CRDS.group, (CRDS.plural,), ("list", "watch"), "copies three CRDs to each cluster"),
    Permission(CRDS.group, (f"{CRDS.plural}/status",), ("patch",), "drops versions that no object is stored in"),
    IMPERSONATES,
    REVIEWS,
)
ELSEWHERE: tuple[NamespaceRules, ...] = (
    NamespaceRules(ISTIO, namespace_flag="istio-namespace", flag="skr-watcher-image-tag"),
)
"""In the namespace of certificates, where agents are installed."""
