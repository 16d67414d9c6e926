"""The live objects of agents, from caches that hold what controllers of agents made and nothing else.

The selection is that of the Go operator: a DaemonSet of the agent's name without the label counts as not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from hortus.domains.agents.discovery.secrets import MANAGED
from hortus.domains.agents.names import CERTIFICATES
from hortus.domains.agents.operating.dependents import Dependent, dependent_of
from hortus.domains.agents.operating.filters import ownership_of
from hortus.engine import Cache, Manager
from hortus.kube.objects import Object, ObjectKey, Resource

FIELD_MANAGER: Final = "instana-agent-operator"
"""The Go operator's, so that each goes on where the other stopped."""
CONTROL_PLANE: Final = "kube-system"

CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS: Final = Resource("", "v1", "secrets", "Secret")
SERVICES: Final = Resource("", "v1", "services", "Service")
ACCOUNTS: Final = Resource("", "v1", "serviceaccounts", "ServiceAccount")
DAEMON_SETS: Final = Resource("apps", "v1", "daemonsets", "DaemonSet")
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")
BUDGETS: Final = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
POLICIES: Final = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
_RBAC: Final = "rbac.authorization.k8s.io"
CLUSTER_ROLES: Final = Resource(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_BINDINGS: Final = Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
ROLES: Final = Resource(_RBAC, "v1", "roles", "Role")
BINDINGS: Final = Resource(_RBAC, "v1", "rolebindings", "RoleBinding")

BESIDES_THE_AGENT: Final = (CONFIG_MAPS, SECRETS, SERVICES, ACCOUNTS, DAEMON_SETS, DEPLOYMENTS, BUDGETS, POLICIES)
"""Kinds whose objects lie next to their agent, which owns them."""
WITHOUT_OWNER: Final = (CLUSTER_ROLES, CLUSTER_BINDINGS, ROLES, BINDINGS)
"""Kinds whose objects no reference leads from: garbage collection works within one namespace."""
WITHOUT_CACHE: Final = (CERTIFICATES,)
"""Kinds that few clusters serve, of objects that only options ask for: no watch of them is kept."""
KINDS: Final = (*BESIDES_THE_AGENT, *WITHOUT_OWNER)
"""Kinds that every cluster serves."""
_BY_KIND: Final = {(one.group, one.kind): one for one in (*KINDS, *WITHOUT_CACHE)}


def resource_of(one: Dependent) -> Resource | None:
    """The resource of an object; None for a kind that no agent has now."""
    return _BY_KIND.get((one.group, one.kind))


class AgentObjects:
    """The caches of all kinds that agents consist of."""

    def __init__(self, manager: Manager, *, namespace: str) -> None:
        places = dict.fromkeys(BESIDES_THE_AGENT, namespace) | dict.fromkeys((ROLES, BINDINGS), CONTROL_PLANE)
        self.caches: dict[Resource, Cache] = {
            resource: manager.cache(
                resource, namespace=places.get(resource, ""), labels=MANAGED, transform=ownership_of(FIELD_MANAGER)
            )
            for resource in (*BESIDES_THE_AGENT, *WITHOUT_OWNER)
        }

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """One object, read only; None also for a kind that has no cache."""
        cache = self.caches.get(resource)
        return cache.get(ObjectKey(namespace, name)) if cache is not None else None

    def live(self, wanted: Object) -> Object | None:
        """The object of the name of one that was built."""
        return self.find(dependent_of(wanted))

    def binding_of(self, role: Object) -> Object | None:
        """The binding of the same name as a role."""
        one = dependent_of(role)
        return self.find(one._replace(kind=f"{one.kind}Binding"))

    def find(self, one: Dependent) -> Object | None:
        """The object of that identity."""
        resource = resource_of(one)
        return self.get(resource, one.namespace, one.name) if resource is not None else None

    def of_kind(self, resource: Resource, names: Iterable[str], namespace: str) -> Iterator[tuple[str, Object]]:
        """The objects of these names that are there."""
        for name in names:
            live = self.get(resource, namespace, name)
            if live is not None:
                yield name, live
