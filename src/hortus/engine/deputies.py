"""The permissions with which a controller acts for an object: those of Hortus, or of a deputy of its namespace.

A controller may do more than most authors of its objects. In a namespace that the operator trusts an object has all of
that power, as with the Go systems. In any other one a controller does beyond the namespace, on Secrets and inside
members, what the ServiceAccount `hortus-deputy` of the namespace may: writes and watches are made as this account
(Kubernetes docs, "User impersonation"), and the API server judges each; what no call of ours can carry, such as work
inside a member, is asked by a SubjectAccessReview. The account need not exist: a RoleBinding names it. An object of no
namespace acts for the namespace that its domain says. docs/adr/0020 has the alternatives.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hortus.engine.outcomes import Actor, StepError
from hortus.engine.rbac import Permission
from hortus.kube.access import Impersonation
from hortus.kube.objects import Object, Resource

if TYPE_CHECKING:
    from hortus.kube import Client
    from hortus.kube.clock import Clock

ACCOUNT: Final = "hortus-deputy"
"""Name of the ServiceAccount whose permissions the objects of its namespace have."""
GO_NAMESPACES: Final = "kcp-system,kyma-system,instana-agent,cluster,garden,shoot--*"
"""The namespaces in which the charts and samples of the Go systems put their objects: those of infrastructure-manager
and lifecycle-manager, and of the latter's in-cluster form, of the Instana agent operator, of cluster stacks, and of a
garden and its seeds."""

IMPERSONATES: Final = Permission(
    "", ("serviceaccounts",), ("impersonate",), "acts for objects of namespaces that are not trusted", names=(ACCOUNT,)
)
REVIEWS: Final = Permission(
    "authorization.k8s.io",
    ("subjectaccessreviews",),
    ("create",),
    "asks for the permissions of objects of namespaces that are not trusted",
)

_REVIEW: Final = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
_ALLOWED_FOR: Final = 300.0
_DENIED_FOR: Final = 30.0
"""Seconds for which an answer is kept: those of kube-apiserver's webhook authorizer
(--authorization-webhook-cache-authorized-ttl and -unauthorized-ttl)."""
_ANSWERS: Final = 10_000
_RETRY: Final = 60.0
"""Seconds until what was refused is asked for again: no watch of ours reports RBAC."""


class Action(NamedTuple):
    """One request that an object makes its controller do, as RBAC sees it."""

    verb: str
    group: str
    resource: str
    """Plural, with a subresource as `shoots/adminkubeconfig`."""
    namespace: str = ""
    name: str = ""
    """Empty for any name."""

    def __str__(self) -> str:
        named = "/".join(filter(None, (self.resource, self.name)))
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {named}{f' of {self.group}' if self.group else ''}{where}"


def secret_reading(namespace: str, name: str) -> Action:
    """The action of reading one Secret, which is worth all that it leads to."""
    return Action("get", "", "secrets", namespace, name)


def trusted_namespaces(values: Mapping[str, Any]) -> str:
    """The namespaces that a process with these values of flags trusts, as `Deputies` takes them."""
    # One watched namespace is the operator's choice, as is that of the Go systems.
    return f"{values['trusted-namespaces']},{values['watch-namespace']}"


def deputy_of(namespace: str) -> str:
    """The user name of a namespace's deputy."""
    return f"system:serviceaccount:{namespace}:{ACCOUNT}"


class Deputies:
    """Gives each namespace the permissions with which its objects act. A process has one."""

    def __init__(self, client: Client, trusted: str, *, clock: Clock) -> None:
        """`client` reaches the cluster of the objects with the process's own permissions.

        `trusted` are names of namespaces, separated by commas, where * stands for any text.
        """
        self._client = client
        self._clock = clock
        patterns = (".*".join(map(re.escape, one.strip().split("*"))) for one in trusted.split(",") if one.strip())
        self._trusted = re.compile("|".join(patterns) or r"(?!)")
        self._clients: dict[str, Client] = {}
        self._answers: OrderedDict[tuple[str, Action], tuple[bool, float]] = OrderedDict()

    def trusts(self, namespace: str) -> bool:
        """Returns whether objects of this namespace act with the permissions of the process."""
        return bool(namespace) and self._trusted.fullmatch(namespace) is not None

    def account(self, namespace: str) -> str:
        """The account with whose permissions objects of this namespace act, for messages."""
        return "Hortus" if self.trusts(namespace) else deputy_of(namespace)

    def client(self, namespace: str) -> Client:
        """A client with the permissions of the objects in this namespace."""
        if self.trusts(namespace):
            return self._client
        if (found := self._clients.get(namespace)) is None:
            found = self._clients[namespace] = self._client.acting_as(Impersonation(user=deputy_of(namespace)))
        return found

    async def may(self, namespace: str, action: Action) -> bool:
        """Returns whether objects of this namespace may have this done for them. Raises KubeError."""
        if self.trusts(namespace):
            return True
        now, key = self._clock.monotonic(), (namespace, action)
        known = self._answers.get(key)
        if known is not None and now < known[1]:
            return known[0]
        review = await self._client.create(_REVIEW, _review(namespace, action))
        allowed = bool(review["status"].get("allowed"))
        self._answers[key] = allowed, now + (_ALLOWED_FOR if allowed else _DENIED_FOR)
        self._answers.move_to_end(key)
        if len(self._answers) > _ANSWERS:
            self._answers.popitem(last=False)
        return allowed

    async def require(
        self,
        namespace: str,
        action: Action,
        *,
        reason: str = "NotPermitted",
        condition: str = "",
        after: float = _RETRY,
    ) -> None:
        """Raises StepError for what objects of this namespace may not have done."""
        if not await self.may(namespace, action):
            raise StepError(
                refusal(namespace, action), reason=reason, condition=condition, actor=Actor.OPERATOR, after=after
            )


def refusal(namespace: str, action: Action) -> str:
    """The message for an action that objects of this namespace may not have done."""
    return (
        f"namespace {namespace} may not {action}: its objects act with the permissions of ServiceAccount {ACCOUNT} in "
        f"it; grant them to {deputy_of(namespace)}, or add the namespace to --trusted-namespaces"
    )


def _review(namespace: str, action: Action) -> Object:
    resource, _, subresource = action.resource.partition("/")
    attributes = {
        "verb": action.verb,
        "group": action.group,
        "resource": resource,
        "subresource": subresource,
        "namespace": action.namespace,
        "name": action.name,
    }
    return {
        "apiVersion": _REVIEW.api_version,
        "kind": _REVIEW.kind,
        "spec": {
            "user": deputy_of(namespace),
            # The groups of a ServiceAccount: Kubernetes docs, "Authenticating", service account tokens.
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"],
            "resourceAttributes": {name: value for name, value in attributes.items() if value},
        },
    }
