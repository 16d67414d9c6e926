"""Proof of a new kubeconfig: it may do what was asked for and nothing more.

The proof is made with the kubeconfig itself, as its client will use it. The cluster lists what the token may do
(SelfSubjectRulesReview) in every namespace that was asked for and in the account's own; the list is compared with the
rules in both directions. What every account may do there (discovery, asking about oneself, whatever the cluster's owner
gives to all) is not more than asked: for what is not known of every cluster, a made-up account is asked about.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hortus.domains.access.coverage import MOST_COMPARED, RbacRule, read_rules, surplus
from hortus.domains.access.manifests import ACCOUNT_NAMESPACE, account_of, mark_of
from hortus.domains.access.types import ClusterAccess, Reason
from hortus.engine import Actor, StepError
from hortus.engine.kubeconfigs import TrialClients
from hortus.kube import Client
from hortus.kube.errors import Garbage, Unauthorized
from hortus.kube.kubeconfig import KubeconfigError
from hortus.kube.objects import Object, Resource, shaped
from hortus.kube.permissions import Atom, TooManyPermissions

_RULES_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", namespaced=False
)
_REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
LONGEST_ANSWER = 4 << 20
"""Bytes; lists of rules are read."""
_MOST_QUESTIONS = 30
"""Permissions beyond those asked for about which the cluster is asked whether everybody has them."""
_SHOWN = 5
_BINDING_PAUSE = 600.0
"""Seconds until an account that may do more than asked is tried again: bindings of others are not watched."""

_EVERYBODY: Sequence[RbacRule] = (
    RbacRule(
        verbs=("create",),
        api_groups=("authorization.k8s.io",),
        resources=("selfsubjectaccessreviews", "selfsubjectrulesreviews"),
    ),
    RbacRule(verbs=("create",), api_groups=("authentication.k8s.io",), resources=("selfsubjectreviews",)),
    RbacRule(
        verbs=("get",),
        non_resource_urls=(
            "/.well-known/openid-configuration",
            "/.well-known/openid-configuration/",
            "/api",
            "/api/*",
            "/apis",
            "/apis/*",
            "/healthz",
            "/livez",
            "/openapi",
            "/openapi/*",
            "/openid/v1/jwks",
            "/openid/v1/jwks/",
            "/readyz",
            "/version",
            "/version/",
        ),
    ),
)
"""The rules that the default roles system:basic-user, system:discovery, system:public-info-viewer and
system:service-account-issuer-discovery give to every account."""


class _Held(msgspec.Struct):
    """The status of a SelfSubjectRulesReview."""

    resourceRules: object = None
    nonResourceRules: object = None


class _RulesReview(msgspec.Struct):
    status: _Held = msgspec.field(default_factory=_Held)


class _Verdict(msgspec.Struct):
    allowed: bool


class _AccessReview(msgspec.Struct):
    status: _Verdict


class PermissionProof:
    """Tries kubeconfigs against their clusters."""

    def __init__(self, clients: TrialClients) -> None:
        self._clients = clients

    async def prove(self, kubeconfig: bytes, admin: Client, access: ClusterAccess, rules: Sequence[RbacRule]) -> None:
        """Return when the kubeconfig may do just what `rules` say. Raises StepError, KubeError."""
        try:
            client = self._clients.open(kubeconfig, origin="the new kubeconfig")
        except (KubeconfigError, ValueError) as error:
            raise StepError(
                f"no kubeconfig can be made from the cluster's own: {error} (operator: see its Secret)",
                reason=Reason.REFUSED,
                actor=Actor.OPERATOR,
            ) from error
        namespaces = access.spec.namespaces
        async with client:
            for namespace in dict.fromkeys((*namespaces, ACCOUNT_NAMESPACE, account_of(access).namespace)):
                asked = rules if not namespaces or namespace in namespaces else ()
                await _prove_in(client, admin, access, namespace, asked)


async def _prove_in(
    client: Client, admin: Client, access: ClusterAccess, namespace: str, asked: Sequence[RbacRule]
) -> None:
    held = await held_in(client, namespace)
    try:
        lacking, beyond = surplus(asked, held), surplus(held, [*asked, *_EVERYBODY])
    except TooManyPermissions as error:
        raise StepError(
            f"the permissions of account {account_of(access)} in namespace {namespace} cannot be proven: {error} "
            "(cluster owner: remove the bindings that give it others; or requester: ask for less)",
            reason=Reason.NOT_PROVEN,
            actor=Actor.USER,
            after=_BINDING_PAUSE,
        ) from None
    if lacking:
        raise StepError(
            f"the new token may not yet {_listed(lacking)} in namespace {namespace} (nobody needs to act: tried "
            "again; if it lasts, cluster owner: look for an authorizer besides RBAC)",
            reason=Reason.NOT_PROVEN,
        )
    more = await _not_everybodys(admin, access, namespace, beyond)
    if more:
        raise StepError(
            f"the account {account_of(access)} may also {_listed(more)} in namespace "
            f"{namespace}: another binding in the cluster gives it permissions; no kubeconfig is issued (cluster "
            "owner: remove the binding that names it)",
            reason=Reason.MORE_THAN_ASKED,
            actor=Actor.USER,
            after=_BINDING_PAUSE,
        )


async def held_in(client: Client, namespace: str) -> list[RbacRule]:
    """The rules that hold for the client's token in a namespace, and in the whole cluster. Raises KubeError."""
    body: Object = {
        "apiVersion": _RULES_REVIEWS.api_version,
        "kind": _RULES_REVIEWS.kind,
        "spec": {"namespace": namespace},
    }
    try:
        answer = await client.create(_RULES_REVIEWS, body)
    except Unauthorized as error:
        raise StepError(
            f"the new token is not accepted yet: {error} (nobody needs to act: tried again)",
            reason=Reason.NOT_PROVEN,
        ) from error
    review = shaped(answer, _RulesReview) or _RulesReview()
    resources, paths = read_rules(review.status.resourceRules), read_rules(review.status.nonResourceRules)
    if resources is None or paths is None:
        raise Garbage(client.host, "answered a SelfSubjectRulesReview with what are no rules", "check the API server")
    return [*resources, *paths]


async def _not_everybodys(admin: Client, access: ClusterAccess, namespace: str, beyond: Sequence[Atom]) -> list[Atom]:
    """The first few of these permissions that not everybody has; those too that are too many to ask about."""
    found = list(beyond[_MOST_QUESTIONS:])
    for atom in beyond[:_MOST_QUESTIONS]:
        if len(found) > _SHOWN:
            break
        if not await _everybody_may(admin, access, namespace, atom):
            found.append(atom)
    return found


async def _everybody_may(admin: Client, access: ClusterAccess, namespace: str, atom: Atom) -> bool:
    """True when an account that nobody knows may do it as well.

    It is one of kube-system: what the accounts of a namespace that the request chose may do together counts as more.
    """
    spec: Object = {
        "user": f"system:serviceaccount:{ACCOUNT_NAMESPACE}:access-nobody-{mark_of(access)}",
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{ACCOUNT_NAMESPACE}", "system:authenticated"],
    }
    if atom.path:
        spec["nonResourceAttributes"] = {"path": atom.path, "verb": atom.verb}
    else:
        resource, _, sub = atom.resource.partition("/")
        asked = {"namespace": namespace, "verb": atom.verb, "group": atom.group, "resource": resource}
        asked |= {"subresource": sub} if sub else {}
        spec["resourceAttributes"] = asked | ({"name": atom.name} if atom.name else {})
    body: Object = {"apiVersion": _REVIEWS.api_version, "kind": _REVIEWS.kind, "spec": spec}
    review = shaped(await admin.create(_REVIEWS, body), _AccessReview)
    return review is not None and review.status.allowed


def _listed(atoms: Sequence[Atom]) -> str:
    more = f" and {len(atoms) - _SHOWN} more" if len(atoms) > _SHOWN else ""
    more += ", at least" if len(atoms) >= MOST_COMPARED - _MOST_QUESTIONS else ""
    return ", ".join(map(str, atoms[:_SHOWN])) + more
