"""One new kubeconfig: a token for the account of a request, in a document for its client, proven."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from hortus.domains.access.coverage import RbacRule
from hortus.domains.access.manifests import ACCOUNTS, account_of, name_of
from hortus.domains.access.proof import PermissionProof
from hortus.domains.access.types import ClusterAccess
from hortus.engine.kubeconfigs import IssuedKubeconfig
from hortus.kube import Client, yaml
from hortus.kube.clock import Clock
from hortus.kube.errors import Garbage
from hortus.kube.kubeconfig import document
from hortus.kube.objects import Object, parse_time, shaped
from hortus.kube.secret import Secret


class _Grant(msgspec.Struct):
    """The status of a TokenRequest."""

    token: str
    expirationTimestamp: str


class _TokenRequest(msgspec.Struct):
    status: _Grant


class AccessIssuer:
    """Makes kubeconfigs and proves them before it returns them."""

    def __init__(self, proof: PermissionProof, *, longest: float, clock: Clock) -> None:
        """`longest` is the longest life of a token in seconds, whatever a request asks for."""
        self._proof = proof
        self._longest = longest
        self._clock = clock

    async def issue(
        self, admin: Client, access: ClusterAccess, rules: Sequence[RbacRule], *, made_for: str
    ) -> IssuedKubeconfig:
        """A kubeconfig that may do just what `rules` say. Raises StepError, KubeError."""
        now = self._clock.now()
        seconds = math.floor(min(access.spec.expiration_seconds, self._longest))
        token, ends = await token_for(admin, access, seconds, self._clock)
        kubeconfig = kubeconfig_of(access, server=admin.access.server, ca=admin.access.ca, token=token)
        await self._proof.prove(kubeconfig, admin, access, rules)
        return IssuedKubeconfig(kubeconfig, now, ends, made_for)


async def token_for(client: Client, access: ClusterAccess, seconds: int, clock: Clock) -> tuple[Secret, float]:
    """A new token of the request's account, and when it ends, in seconds since the epoch. Raises KubeError."""
    body: Object = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        # No audience: the token is then bound to the API server's own.
        "spec": {"expirationSeconds": seconds},
    }
    account = account_of(access)
    answer = await client.create_subresource(ACCOUNTS, account.name, "token", body, account.namespace)
    made = shaped(answer, _TokenRequest)
    ends = _seconds(made.status.expirationTimestamp) if made is not None else 0.0
    if made is None or not made.status.token or ends <= clock.now():
        raise Garbage(
            client.host, "answered a TokenRequest without a token that lives", "check the API server, and its clock"
        )
    return Secret(made.status.token), ends


def kubeconfig_of(access: ClusterAccess, *, server: str, ca: bytes, token: Secret) -> bytes:
    """The document for the client."""
    namespaces = access.spec.namespaces
    made = document(
        access.spec.cluster_ref.name,
        server,
        ca=ca,
        user=name_of(access),
        token=token,
        namespace=namespaces[0] if namespaces else "",
    )
    return yaml.dump(made).encode()


def _seconds(text: str) -> float:
    """A time as a server sent it; 0 where it is none."""
    try:
        return parse_time(text)
    except ValueError:
        return 0.0
