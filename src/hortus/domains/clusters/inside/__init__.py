"""Objects inside a cluster: administrators, OpenIDConnect objects, the ConfigMap with facts about its making.

    async with workloads.open(runtime) as cluster:          # a Client, by the kubeconfig Secret of the Runtime
        await configure_oidc(cluster, runtime, default)
        await bind_administrators(cluster, names)
        await publish_provisioning_info(cluster, runtime, shoot, now)

All of them compare first and write what differs. InsideError says that a cluster could not be reached or refused.
"""

from typing import TYPE_CHECKING

from hortus.facade import lazy

if TYPE_CHECKING:
    from hortus.domains.clusters.inside.administrators import bind_administrators
    from hortus.domains.clusters.inside.caches import asks_for_caches, cache_configs, registry_caches
    from hortus.domains.clusters.inside.oidc import configure_oidc
    from hortus.domains.clusters.inside.provisioninginfo import publish_provisioning_info
    from hortus.domains.clusters.inside.workloads import InsideError, NotPermitted, NoWayIn, PoolWorkloads, Workloads
else:
    __getattr__ = lazy(
        __name__,
        {
            "administrators": "bind_administrators",
            "caches": "asks_for_caches cache_configs registry_caches",
            "oidc": "configure_oidc",
            "provisioninginfo": "publish_provisioning_info",
            "workloads": "InsideError NoWayIn NotPermitted PoolWorkloads Workloads",
        },
    )

__all__ = [
    "InsideError",
    "NoWayIn",
    "NotPermitted",
    "PoolWorkloads",
    "Workloads",
    "asks_for_caches",
    "bind_administrators",
    "cache_configs",
    "configure_oidc",
    "publish_provisioning_info",
    "registry_caches",
]
