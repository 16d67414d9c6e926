"""The RBAC rules of this domain on the management cluster; the roles of the chart come from here.

They are those of SovereignCloudStack/cluster-stack-operator, `config/rbac/role.yaml`, without unused verbs.
Further kinds in the chart of a ClusterClass need further rules, which the operator of the platform adds: for Hortus,
and for the deputy of a namespace that is not trusted.
"""

from __future__ import annotations

from typing import Final

from hortus.domains.stacks.capi import CAPI_GROUP
from hortus.domains.stacks.names import FLEET_GROUP, GROUP, INFRASTRUCTURE_GROUP
from hortus.domains.stacks.types import (
    CLUSTER_ADDONS,
    CLUSTER_STACK_RELEASES,
    CLUSTER_STACKS,
    OPENSTACK_NODE_IMAGES,
    OPENSTACK_RELEASE_TEMPLATES,
    OPENSTACK_RELEASES,
    STACK_POLICIES,
)
from hortus.engine.deputies import IMPERSONATES, REVIEWS
from hortus.engine.rbac import Permission

_READ: Final = ("get", "list", "watch")
_ALL: Final = (*_READ, "create", "update", "patch", "delete")
_HANDED: Final = ("list", "watch", "create", "patch", "delete")
_STATUS: Final = tuple(f"{one.plural}/status" for one in (CLUSTER_STACKS, CLUSTER_STACK_RELEASES, CLUSTER_ADDONS))

CONTROL: tuple[Permission, ...] = (
    Permission(GROUP, (CLUSTER_STACKS.plural,), _READ, "follows ClusterStacks"),
    Permission(
        GROUP,
        (CLUSTER_STACK_RELEASES.plural,),
        (*_READ, "create", "patch", "delete"),
        "keeps a ClusterStackRelease for each release",
    ),
    Permission(GROUP, (CLUSTER_ADDONS.plural,), (*_READ, "create", "patch"), "keeps a ClusterAddon for each Cluster"),
    Permission(GROUP, _STATUS, ("patch",), "reports the state of stacks, releases and addons"),
    Permission(FLEET_GROUP, (STACK_POLICIES.plural,), ("list", "watch"), "finds the approved versions"),
    *(
        Permission(group, ("*",), _ALL, "applies ClusterClasses and templates; reads Clusters and what they name")
        for group in (
            CAPI_GROUP,
            f"bootstrap.{CAPI_GROUP}",
            f"controlplane.{CAPI_GROUP}",
            f"infrastructure.{CAPI_GROUP}",
            INFRASTRUCTURE_GROUP,
        )
    ),
    Permission(
        "",
        ("secrets",),
        (*_READ, "create", "patch", "delete"),
        "connects to workload clusters and clouds; labels members; gives Flux its password for charts",
    ),
    Permission("helm.toolkit.fluxcd.io", ("helmreleases",), _HANDED, "hands addons to Flux (--stacks-flux)"),
    Permission("source.toolkit.fluxcd.io", ("ocirepositories",), _HANDED, "names the charts of addons for Flux"),
)
"""In the watched namespace."""

PROVIDER: tuple[Permission, ...] = (
    Permission(GROUP, (CLUSTER_STACKS.plural,), _ALL, "offers stacks"),
    Permission(GROUP, (CLUSTER_STACK_RELEASES.plural, CLUSTER_ADDONS.plural), _READ, "follows releases and addons"),
    Permission(FLEET_GROUP, (STACK_POLICIES.plural,), _ALL, "approves versions"),
    Permission(INFRASTRUCTURE_GROUP, (OPENSTACK_RELEASE_TEMPLATES.plural,), _ALL, "names the identity of clouds"),
    Permission(
        INFRASTRUCTURE_GROUP, (OPENSTACK_RELEASES.plural, OPENSTACK_NODE_IMAGES.plural), _READ, "follows node images"
    ),
    Permission(CAPI_GROUP, ("clusterclasses", "clusters"), _READ, "sees classes and their users"),
    Permission("", ("secrets",), ("get", "create", "update", "patch", "delete"), "gives the credentials of clouds"),
)
"""The provider of the platform has them in the namespace of the catalog."""
CATALOG: tuple[Permission, ...] = (
    Permission(GROUP, (CLUSTER_STACKS.plural, CLUSTER_STACK_RELEASES.plural), _READ, "chooses a release"),
    Permission(FLEET_GROUP, (STACK_POLICIES.plural,), _READ, "sees the approved versions"),
    Permission(CAPI_GROUP, ("clusterclasses",), _READ, "sees the variables of a class"),
)
"""Users of the platform have them in the namespace of the catalog."""
USER: tuple[Permission, ...] = (
    Permission(CAPI_GROUP, ("clusters",), _ALL, "orders, upgrades and deletes clusters"),
    Permission(GROUP, (CLUSTER_ADDONS.plural,), _READ, "follows the addons of clusters"),
)
"""Users of the platform have them in their own namespace: a Cluster is the one object that they write."""
WIDE: tuple[Permission, ...] = (
    Permission(f"runtime.{CAPI_GROUP}", ("extensionconfigs",), ("create", "patch"), "leads Cluster API to its hooks"),
    IMPERSONATES,
    REVIEWS,
)
HOOKS: tuple[Permission, ...] = (
    Permission("", ("secrets",), (*_READ, "create", "patch"), "keeps the certificate of runtime hooks"),
)
"""In the namespace of the hook server."""
