"""Prevention of privilege escalation: users grant only permissions that they hold (Kubernetes docs, "Using RBAC
Authorization").

The writer of a role must hold all its rules, or be allowed to `escalate` it; the writer of a binding must hold all
rules of its role, or be allowed to `bind` it. The texts are kube-apiserver's.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.authz.attributes import Attributes
from hortus.apiserver.authz.policy import API_GROUP
from hortus.apiserver.authz.rbac import MASTERS, RbacAuthorizer
from hortus.apiserver.authz.rules import PolicyRule, compact, quoted, rules_of
from hortus.kube.errors import Forbidden, NotFound
from hortus.kube.objects import Object
from hortus.kube.permissions import TooManyPermissions, lacking
from hortus.schema.quoting import quote

GUARDED = frozenset({"clusterroles", "roles", "clusterrolebindings", "rolebindings"})
"""Plurals of the RBAC group whose writes go through `check_rbac_write`."""

_EVERYTHING = (
    PolicyRule(verbs=("*",), api_groups=("*",), resources=("*",)),
    PolicyRule(verbs=("*",), non_resource_urls=("*",)),
)
_MOST_NAMED = 4096
"""Missing permissions that a refusal names. kube-apiserver names all, which may be many thousand times the request."""
_COLLECTED = frozenset({"ownerReferences", "finalizers", "managedFields", "resourceVersion", "generation"})


async def check_rbac_write(
    authorizer: RbacAuthorizer,
    plural: str,
    obj: Object,
    old: Object | None,
    *,
    cluster: str,
    user: UserInfo,
    named: bool = True,
) -> None:
    """Refuses a write of the RBAC group over `old` (None: create) by which `user` grants permissions that they do not
    hold.

    Any change counts, since a label may hand a role to others by aggregation; only the fields that the garbage
    collector changes do not. `named` means that the request's path names the object: otherwise rules with resourceNames
    do not apply. Raises Forbidden, NotFound.
    """
    if MASTERS in user.groups or (old is not None and _content(obj) == _content(old)):
        return
    if plural in ("clusterroles", "roles"):
        await _check_role(authorizer, plural, obj, old, cluster, user, named=named)
    else:
        await _check_binding(authorizer, plural, obj, cluster, user)


async def check_escalation(
    authorizer: RbacAuthorizer, rules: Sequence[PolicyRule], *, cluster: str, namespace: str, user: UserInfo
) -> str:
    """Empty when `user` holds all `rules` in `namespace` (empty: everywhere); else the sentence with the missing
    rules."""
    grants = await authorizer.grants(cluster, user)
    found = lacking(rules, dict.fromkeys(grants.rules(namespace)))
    try:
        missing = list(islice(found, _MOST_NAMED))
        lines = "\n".join(dict.fromkeys(str(rule) for rule in compact(missing)))
        if len(missing) == _MOST_NAMED and next(found, None) is not None:
            lines += "\nand more"
    except TooManyPermissions as error:
        lines = str(error)
    if not lines:
        return ""
    text = (
        f"user {quote(user.username)} (groups={quoted(user.groups)}) is attempting to grant RBAC permissions "
        f"not currently held:\n{lines}"
    )
    problems = grants.problems(namespace)
    return text + (f"; resolution errors: [{' '.join(problems)}]" if problems else "")


async def _check_role(
    authorizer: RbacAuthorizer,
    plural: str,
    obj: Object,
    old: Object | None,
    cluster: str,
    user: UserInfo,
    *,
    named: bool,
) -> None:
    metadata = obj["metadata"]
    name, namespace = metadata.get("name", ""), metadata.get("namespace", "")
    asked = Attributes(cluster, user, "escalate", API_GROUP, "v1", plural, "", namespace, name if named else "")
    if (await authorizer.authorize(asked)).allowed:
        return
    why = await check_escalation(authorizer, rules_of(obj), cluster=cluster, namespace=namespace, user=user)
    # The rules that an aggregate gathers are not known when it is written, so writing one, or a former one whose rules
    # stay with its subjects, takes all permissions.
    if not why and (_gathers(obj) or (old is not None and _gathers(old))):
        lacking = await check_escalation(authorizer, _EVERYTHING, cluster=cluster, namespace="", user=user)
        why = "must have cluster-admin privileges to use the aggregationRule" if lacking else ""
    if why:
        raise _forbidden(plural, name, why)


async def _check_binding(authorizer: RbacAuthorizer, plural: str, obj: Object, cluster: str, user: UserInfo) -> None:
    metadata, reference = obj["metadata"], obj.get("roleRef") or {}
    namespace, kind, role = metadata.get("namespace", ""), reference.get("kind", ""), reference.get("name", "")
    target = "clusterroles" if kind == "ClusterRole" else "roles"
    asked = Attributes(cluster, user, "bind", API_GROUP, "v1", target, "", namespace, role)
    if (await authorizer.authorize(asked)).allowed:
        return
    rules = (await authorizer.index(cluster)).rules(kind, namespace, role)
    if rules is None:
        details = {"name": role, "group": API_GROUP, "kind": target}
        raise NotFound(f'{target}.{API_GROUP} "{role}" not found', details=details)
    why = await check_escalation(authorizer, rules, cluster=cluster, namespace=namespace, user=user)
    if why:
        raise _forbidden(plural, metadata.get("name", ""), why)


def _gathers(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _content(obj: Object) -> Object:
    """The object without what garbage collection and field management change."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _COLLECTED}
    return {**obj, "metadata": metadata}


def _forbidden(plural: str, name: str, why: str) -> Forbidden:
    details = {"name": name, "group": API_GROUP, "kind": plural}
    return Forbidden(f'{plural}.{API_GROUP} "{name}" is forbidden: {why}', details=details)
