"""The requests of a part of the program to API servers, declared next to it: roles are made from them alone.

A test runs the controllers as an account with exactly these permissions: a denied one is missing here, one that nothing
asked for is too much. RBAC: Kubernetes docs, "Using RBAC Authorization".
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from hortus.kube.objects import Object

_ORDER = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


class Permission(msgspec.Struct, frozen=True):
    """Leave to use `verbs` on `resources` of one API group; `names` narrows it to objects of these names."""

    group: str
    resources: tuple[str, ...]
    """Plurals, with a subresource as `shoots/adminkubeconfig`."""
    verbs: tuple[str, ...]
    why: str
    """The purpose, as a comment in the role."""
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    """Paths that are no resources, such as /metrics; `resources` is empty then."""


EVENTS = Permission("", ("events",), ("create", "patch"), "reports its actions, as kubectl describe shows them")
LEASES = Permission("coordination.k8s.io", ("leases",), ("get", "create", "update"), "elects who works")
SHARDS = Permission(
    "coordination.k8s.io",
    ("leases",),
    ("get", "list", "watch", "create", "patch", "delete"),
    "shares the objects among replicas",
)

WEBHOOK_SECRET = Permission(
    "", ("secrets",), ("get", "list", "watch", "create", "patch"), "keeps the certificate of its admission webhooks"
)
WEBHOOK_CONFIGURATION = Permission(
    "admissionregistration.k8s.io",
    ("validatingwebhookconfigurations",),
    ("get", "list", "watch", "patch"),
    "has the API server trust its admission webhooks",
)


def policy_rules(permissions: Iterable[Permission]) -> list[Object]:
    """RBAC rules that give exactly these permissions: one for each group, resource and choice of names, or path."""
    permissions = tuple(permissions)
    verbs: dict[tuple[str, str, tuple[str, ...]], set[str]] = {}
    for permission in permissions:
        for resource in permission.resources:
            verbs.setdefault((permission.group, resource, permission.names), set()).update(permission.verbs)
    paths: dict[str, set[str]] = {}
    for permission in permissions:
        for url in permission.urls:
            paths.setdefault(url, set()).update(permission.verbs)
    of_paths: list[Object] = [{"nonResourceURLs": [url], "verbs": sorted(paths[url])} for url in sorted(paths)]
    return [_rule(*key, verbs[key]) for key in sorted(verbs)] + of_paths


def _rule(group: str, resource: str, names: tuple[str, ...], verbs: set[str]) -> Object:
    rule: Object = {"apiGroups": [group], "resources": [resource]}
    if names:
        rule["resourceNames"] = list(names)
    known = [verb for verb in _ORDER if verb in verbs]
    return {**rule, "verbs": known + sorted(verbs.difference(known))}


__all__ = ["EVENTS", "LEASES", "SHARDS", "WEBHOOK_CONFIGURATION", "WEBHOOK_SECRET", "Permission", "policy_rules"]
