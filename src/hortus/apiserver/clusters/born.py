"""Objects that every logical cluster has from the start: the default policy, the system's namespaces and their default
accounts, the Service `kubernetes`, the APIServices of the built-in groups, and what aggregated API servers trust.

Encoded once per server and shown in all clusters by `hortus.apiserver.store.overlay`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from uuid import UUID, uuid5

from hortus.apiserver.authz.policy import default_policy
from hortus.apiserver.clusters.own_service import own_service
from hortus.apiserver.clusters.trust import NAME, NAMESPACE, authentication_map
from hortus.apiserver.registrations import own_registrations
from hortus.apiserver.store.encoding import encode
from hortus.apiserver.store.overlay import BORN_REVISION, Born
from hortus.kube.objects import Object, format_time

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")

_UID = re.compile(rb'"uid":"[0-9a-f-]{36}"')

_PLURALS = {
    "ClusterRole": "rbac.authorization.k8s.io/clusterroles",
    "ClusterRoleBinding": "rbac.authorization.k8s.io/clusterrolebindings",
    "Role": "rbac.authorization.k8s.io/roles",
    "RoleBinding": "rbac.authorization.k8s.io/rolebindings",
    "Namespace": "core/namespaces",
    "ServiceAccount": "core/serviceaccounts",
    "Service": "core/services",
    "Endpoints": "core/endpoints",
    "EndpointSlice": "discovery.k8s.io/endpointslices",
    "ConfigMap": "core/configmaps",
    "APIService": "apiregistration.k8s.io/apiservices",
}
TRUST = _PLURALS["ConfigMap"], f"{NAMESPACE}/{NAME}"
"""Bucket within a cluster, and name of the ConfigMap that `with_authorities` fills."""


def born_objects(
    *, created: float, identity: str, address: str, port: int, versions: Iterable[tuple[str, str]]
) -> Born:
    """The objects by bucket and name, for a server of the built-in `versions` (pairs of group and version) that others
    reach at `address` and `port`.

    `created` becomes their creationTimestamp; their uids, which derive from `identity`, a uid that stays with the store
    (`ServerKeys.root_uid`), are those of the management cluster (`with_own_uid` gives other clusters theirs).
    """
    born: dict[str, dict[str, bytes]] = {}
    served = own_service(address, port, created), own_registrations(versions, created)
    for obj in (*default_policy(), *_namespaces(), *served[0], *served[1], authentication_map(created)):
        suffix = _PLURALS[obj["kind"]]
        metadata = obj["metadata"]
        name = f"{metadata.get('namespace', '')}/{metadata['name']}"
        uid = str(uuid5(UUID(identity), f"{suffix}/{name}"))
        born.setdefault(suffix, {})[name] = _encoded(obj, uid, format_time(created))
    return born


def with_own_uid(uid_of: Callable[[str], str | None], bucket: str, name: str, value: bytes) -> bytes:
    """A born object with a uid that is its cluster's alone: owners and tokens are identified by it alone, and tools
    know a cluster by that of kube-system.

    `uid_of` gives the uid of a logical cluster by its name, None where the uid of `born_objects` shall stay.
    """
    cluster, _, suffix = bucket.partition("/")
    uid = uid_of(cluster)
    if uid is None:
        return value
    place = name if suffix == _PLURALS["Namespace"] else f"{suffix}/{name}"
    return _UID.sub(f'"uid":"{uuid5(UUID(uid), place)}"'.encode(), value, count=1)


def _namespaces() -> Iterable[Object]:
    for name in NAMESPACES:
        labels = {"kubernetes.io/metadata.name": name}
        yield {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": labels},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }
        yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}


def _encoded(obj: Object, uid: str, created: str) -> bytes:
    metadata = {**obj["metadata"], "uid": uid, "creationTimestamp": created}
    return encode({**obj, "metadata": metadata}).at(BORN_REVISION)
