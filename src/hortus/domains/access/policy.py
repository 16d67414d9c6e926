"""What a request may ask for at most: the operator's limits, so that a kubeconfig "with limited rights" has some.

RBAC knows rights by which one comes by all others: to impersonate, to read every Secret, to run a Pod with any account.
Each such way has a name here, a *power*, and is closed unless the operator opens it, for everybody or for requests of
one namespace. A refusal names the rule by its index, and the verb and resource in it. Pure; no I/O.

Sources: Kubernetes docs, "RBAC good practices: privilege escalation risks" and "Authorization: verbs".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from hortus.kube.objects import Object

_READ: Final = frozenset({"get", "list", "watch"})
_WRITE: Final = frozenset({"create", "update", "patch"})
_RBAC: Final = "rbac.authorization.k8s.io"

POWERS: Final[Mapping[str, str]] = {
    "wildcards": "`*` as verb, group, resource or path: nobody knows what it will mean tomorrow",
    "escalation": "the verbs escalate, bind and impersonate, and writing roles and bindings",
    "secrets": "Secrets of the whole cluster: all tokens and passwords in it",
    "tokens": "making tokens of ServiceAccounts, approving and signing certificates",
    "workloads": "running, changing or entering Pods in the whole cluster, and with them any ServiceAccount",
    "nodes": "nodes/proxy and other subresources of nodes, and changing nodes or PersistentVolumes",
    "admission": "webhooks, admission policies, API services and definitions, which see or change what others write",
    "system-namespaces": "a request for kube-system, kube-public or kube-node-lease",
}
"""Each power with what it opens."""

SYSTEM_NAMESPACES: Final = frozenset({"kube-system", "kube-public", "kube-node-lease"})

_CHANGING: Final = _WRITE | {"delete", "deletecollection"}


class _Way(msgspec.Struct, frozen=True):
    """A right by which one comes by others."""

    power: str
    group: str
    resources: frozenset[str]
    verbs: frozenset[str]
    whole_cluster: bool = False
    """Whether it is one only where it holds in the whole cluster."""


def _way(power: str, group: str, resources: str, verbs: frozenset[str], *, whole_cluster: bool = False) -> _Way:
    return _Way(power, group, frozenset(resources.split()), verbs, whole_cluster)


_ALL_ALONE: Final = frozenset[str]()
"""Reached by the verb `*`; the verbs that would reach it are refused wherever they stand."""
_WAYS: Final = (
    _way("escalation", _RBAC, "roles rolebindings clusterroles clusterrolebindings", _WRITE),
    _way("escalation", "", "users groups serviceaccounts", _ALL_ALONE),
    _way("escalation", "authentication.k8s.io", "userextras uids", _ALL_ALONE),
    _way("tokens", "", "serviceaccounts/token", frozenset({"create"})),
    _way(
        "tokens",
        "certificates.k8s.io",
        "certificatesigningrequests/approval certificatesigningrequests/status signers",
        frozenset({"update", "patch", "approve", "sign"}),
    ),
    _way("secrets", "", "secrets", _READ | _WRITE, whole_cluster=True),
    _way("workloads", "", "pods replicationcontrollers podtemplates", _WRITE, whole_cluster=True),
    _way("workloads", "apps", "deployments daemonsets replicasets statefulsets", _WRITE, whole_cluster=True),
    _way("workloads", "batch", "jobs cronjobs", _WRITE, whole_cluster=True),
    _way(
        "workloads",
        "",
        "pods/exec pods/attach pods/portforward pods/proxy pods/ephemeralcontainers",
        _READ | _WRITE,
        whole_cluster=True,
    ),
    _way("nodes", "", "nodes persistentvolumes", _CHANGING),
    _way("nodes", "", "nodes/proxy nodes/log nodes/metrics nodes/stats nodes/status", _READ | _CHANGING),
    _way(
        "admission",
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations validatingwebhookconfigurations mutatingadmissionpolicies "
        "mutatingadmissionpolicybindings validatingadmissionpolicies validatingadmissionpolicybindings",
        _CHANGING,
    ),
    _way("admission", "apiregistration.k8s.io", "apiservices", _CHANGING),
    _way("admission", "apiextensions.k8s.io", "customresourcedefinitions", _CHANGING),
)


class Refusal(msgspec.Struct, frozen=True):
    """One thing that is not allowed."""

    place: str
    """Where it stands, as `spec.rules[0]`."""
    text: str
    """What it is."""
    power: str
    """What the operator would have to allow."""

    def __str__(self) -> str:
        return f"{self.place}: {self.text} (power {self.power})"


class AccessPolicy(msgspec.Struct, frozen=True):
    """The operator's limits."""

    everywhere: frozenset[str] = frozenset()
    """Powers that every request may use."""
    by_namespace: Mapping[str, frozenset[str]] = {}
    """Powers that requests of one namespace may use."""
    longest: float = 24 * 3600.0
    """Seconds that a token may live."""

    def powers(self, namespace: str) -> frozenset[str]:
        return self.everywhere | self.by_namespace.get(namespace, frozenset())

    @classmethod
    def parse(cls, text: str, *, longest: float = 24 * 3600.0) -> AccessPolicy:
        """From `workloads,module-system/secrets`. Raises ValueError for a power that there is not."""
        everywhere: set[str] = set()
        by_namespace: dict[str, frozenset[str]] = {}
        for entry in filter(None, (part.strip() for part in text.split(","))):
            namespace, slash, power = entry.rpartition("/")
            if power not in POWERS or (slash and not namespace):
                raise ValueError(f"{entry!r} is no power: known are {', '.join(POWERS)}, each also as namespace/power")
            if namespace:
                by_namespace[namespace] = by_namespace.get(namespace, frozenset()) | {power}
            else:
                everywhere.add(power)
        return cls(frozenset(everywhere), by_namespace, longest)

    def refusals(self, namespace: str, rules: Sequence[Object], namespaces: Sequence[str], place: str) -> list[Refusal]:
        """What of `rules` a request of `namespace` may not ask for, in `namespaces` or (empty) in the whole cluster.

        `place` is where the rules come from, as `spec.rules`.
        """
        allowed = self.powers(namespace)
        found = [
            refusal
            for index, rule in enumerate(rules)
            for refusal in _used(rule, f"{place}[{index}]", whole_cluster=not namespaces)
        ]
        found += [
            Refusal(f"spec.namespaces[{index}]", f"namespace {name} is the system's", "system-namespaces")
            for index, name in enumerate(namespaces)
            if name in SYSTEM_NAMESPACES
        ]
        return list(dict.fromkeys(refusal for refusal in found if refusal.power not in allowed))


def _used(rule: Object, place: str, *, whole_cluster: bool) -> Iterator[Refusal]:
    """The powers that a rule uses, each named once."""
    verbs = [str(verb) for verb in rule.get("verbs") or ()]
    yield from _wildcards(rule, place)
    for verb in ("escalate", "bind", "impersonate"):
        if verb in verbs:
            yield Refusal(f"{place}.verbs", f"verb {verb}", "escalation")
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            yield from _through_resource(str(group), str(resource), verbs, place, whole_cluster=whole_cluster)


def _wildcards(rule: Object, place: str) -> Iterator[Refusal]:
    for field in ("verbs", "apiGroups", "resources", "nonResourceURLs"):
        for value in rule.get(field) or ():
            # nonResourceURLs know `/logs/*`, resources `*/scale`.
            if "*" in str(value):
                yield Refusal(f"{place}.{field}", f"wildcard {value}", "wildcards")


def _through_resource(
    group: str, resource: str, verbs: Sequence[str], place: str, *, whole_cluster: bool
) -> Iterator[Refusal]:
    title = f"{resource}.{group}" if group else resource
    where = " of the whole cluster" if whole_cluster else ""
    for way in _WAYS:
        if way.whole_cluster and not whole_cluster:
            continue
        used = [verb for verb in verbs if verb == "*" or verb in way.verbs]
        if used and _same(group, way.group) and any(_same_resource(resource, known) for known in way.resources):
            yield Refusal(place, f"{' and '.join(used)} {title}{where}", way.power)


def _same(asked: str, known: str) -> bool:
    return asked in ("*", known)


def _same_resource(asked: str, known: str) -> bool:
    """Whether a rule's resource includes `known`: `*` is all, `*/scale` that subresource of all."""
    if asked in ("*", known):
        return True
    name, slash, sub = asked.partition("/")
    return bool(slash) and name == "*" and known.partition("/")[2] == sub
