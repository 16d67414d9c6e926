"""One new kubeconfig: a token for the account, and proof that it may do what was asked for and nothing more.

The proof is made with the kubeconfig itself, as its client will use it. The cluster lists what the token may do
(SelfSubjectRulesReview) in every namespace that was asked for and in the account's own; the list is compared with the
rules in both directions. What every account may do there (discovery, asking about oneself, whatever the cluster's owner
gives to all) is not more than asked: for what is not known of every cluster, a made-up account is asked about.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hortus.domains.access.coverage import Atom, are_rules, surplus
from hortus.domains.access.manifests import ACCOUNT_NAMESPACE, ACCOUNTS, account_of, mark_of, name_of, namespaces_of
from hortus.domains.access.service import Setback
from hortus.domains.access.types import Reason
from hortus.engine import Actor
from hortus.kube import Client, ConnectionSettings, yaml
from hortus.kube.clock import Clock
from hortus.kube.dialing import Network
from hortus.kube.errors import Garbage, Unauthorized
from hortus.kube.kubeconfig import KubeconfigError, Trust, document, from_untrusted
from hortus.kube.objects import Object, Resource, parse_time
from hortus.kube.secret import Secret

_RULES_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", namespaced=False
)
_REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
_LONGEST_ANSWER = 4 << 20
"""Bytes; lists of rules are read."""
_MOST_QUESTIONS = 30
"""Rights beyond those asked for about which the cluster is asked whether everybody has them."""
_SHOWN = 5
_BINDING_PAUSE = 600.0
"""Seconds until an account that may more than asked is looked at again: bindings of others are not watched."""

_EVERYBODY: Sequence[Object] = (
    {
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
        "verbs": ["create"],
    },
    {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]},
    {
        "nonResourceURLs": [
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
        ],
        "verbs": ["get"],
    },
)
"""What the default roles system:basic-user, system:discovery, system:public-info-viewer and
system:service-account-issuer-discovery give to every account."""


async def token_for(client: Client, access: Object, seconds: int, clock: Clock) -> tuple[Secret, float]:
    """A new token of the request's account, and when it ends, in seconds since the epoch. Raises KubeError."""
    body: Object = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        # No audience: the token is then bound to the API server's own.
        "spec": {"expirationSeconds": seconds},
    }
    account = account_of(access)
    answer = await client.create_subresource(ACCOUNTS, account.name, "token", body, account.namespace)
    status = answer.get("status") or {}
    try:
        token, ends = status["token"], parse_time(status["expirationTimestamp"])
    except (KeyError, TypeError, ValueError):
        token, ends = "", 0.0
    if not isinstance(token, str) or not token or ends <= clock.now():
        raise Garbage(
            client.host, "answered a TokenRequest without a token that lives", "check the API server, and its clock"
        )
    return Secret(token), ends


def kubeconfig_of(access: Object, *, server: str, ca: bytes, token: Secret) -> bytes:
    """The document for the client."""
    namespaces = namespaces_of(access)
    name = str(access["spec"]["clusterRef"]["name"])
    made = document(
        name, server, ca=ca, user=name_of(access), token=token, namespace=namespaces[0] if namespaces else ""
    )
    return yaml.dump(made).encode()


class Proof:
    """Tries kubeconfigs against their clusters."""

    def __init__(self, *, timeout: float, trust: Trust, deny: tuple[Network, ...]) -> None:
        self._trust = trust
        self._settings = ConnectionSettings(
            connections=1, timeout=timeout, connect_timeout=timeout, max_response=_LONGEST_ANSWER, deny=deny
        )

    async def prove(self, kubeconfig: bytes, admin: Client, access: Object, rules: Sequence[Object]) -> None:
        """Return when the kubeconfig may do just what `rules` say. Raises Setback, KubeError."""
        namespaces = namespaces_of(access)
        try:
            reached = from_untrusted(kubeconfig, trust=self._trust, origin="the new kubeconfig").access()
            client = Client(reached, settings=self._settings)
        except (KubeconfigError, ValueError) as error:
            raise Setback(
                Reason.REFUSED,
                f"no kubeconfig can be made from the cluster's own: {error} (operator: see its Secret)",
                actor=Actor.OPERATOR,
            ) from error
        async with client:
            for namespace in dict.fromkeys((*namespaces, ACCOUNT_NAMESPACE, account_of(access).namespace)):
                asked = rules if not namespaces or namespace in namespaces else ()
                await self._prove_in(client, admin, access, namespace, asked)

    async def _prove_in(
        self, client: Client, admin: Client, access: Object, namespace: str, asked: Sequence[Object]
    ) -> None:
        held = await _held(client, namespace)
        if lacking := surplus(asked, held):
            raise Setback(
                Reason.NOT_PROVEN,
                f"the new token may not yet {_listed(lacking)} in namespace {namespace} (nobody needs to act: tried "
                "again; if it lasts, cluster owner: see what authorizes there beside RBAC)",
                actor=Actor.NOBODY,
            )
        beyond = surplus(held, [*asked, *_EVERYBODY])
        more = await _not_everybodys(admin, access, namespace, beyond)
        if more:
            raise Setback(
                Reason.MORE_THAN_ASKED,
                f"the account {account_of(access)} may also {_listed(more)} in namespace "
                f"{namespace}: something else in the cluster gives it rights; no kubeconfig is handed out (cluster "
                "owner: remove the binding that names it)",
                after=_BINDING_PAUSE,
            )


async def _held(client: Client, namespace: str) -> list[Object]:
    """What the token may do in a namespace, and in the whole cluster."""
    body: Object = {
        "apiVersion": _RULES_REVIEWS.api_version,
        "kind": _RULES_REVIEWS.kind,
        "spec": {"namespace": namespace},
    }
    try:
        answer = await client.create(_RULES_REVIEWS, body)
    except Unauthorized as error:
        raise Setback(
            Reason.NOT_PROVEN,
            f"the new token is not accepted yet: {error} (nobody needs to act: tried again)",
            actor=Actor.NOBODY,
        ) from error
    status = answer.get("status")
    said = status if isinstance(status, dict) else {}
    found = [said.get("resourceRules"), said.get("nonResourceRules")]
    if not all(map(are_rules, found)):
        raise Garbage(client.host, "answered a SelfSubjectRulesReview with what are no rules", "check the API server")
    return [rule for rules in found for rule in rules or ()]


async def _not_everybodys(admin: Client, access: Object, namespace: str, beyond: Sequence[Atom]) -> list[Atom]:
    """The first few of these rights that not everybody has; those too that are too many to ask about."""
    found = list(beyond[_MOST_QUESTIONS:])
    for atom in beyond[:_MOST_QUESTIONS]:
        if len(found) > _SHOWN:
            break
        if not await _everybody_may(admin, access, namespace, atom):
            found.append(atom)
    return found


async def _everybody_may(admin: Client, access: Object, namespace: str, atom: Atom) -> bool:
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
    status = (await admin.create(_REVIEWS, body)).get("status")
    return isinstance(status, dict) and status.get("allowed") is True


def _listed(atoms: Sequence[Atom]) -> str:
    more = f" and {len(atoms) - _SHOWN} more" if len(atoms) > _SHOWN else ""
    return ", ".join(map(str, atoms[:_SHOWN])) + more


def seconds_of(access: Object, longest: float) -> int:
    """The life to ask for: what the request says, within the operator's limit."""
    return math.floor(min(float(access["spec"].get("expirationSeconds") or 3600), longest))


__all__ = ["Proof", "kubeconfig_of", "seconds_of", "token_for"]
