"""Authorization of signers: approving and signing a certificate request takes permission for its signer.

Kubernetes docs, "Certificates and Certificate Signing Requests: authorization"; the rules and texts are those of
kube-apiserver's admission plugins CertificateApproval, CertificateSigning and CertificateSubjectRestriction.
"""

from __future__ import annotations

from collections.abc import Sequence

from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.authz.attributes import Attributes, Authorizer
from hortus.apiserver.authz.rbac import MASTERS
from hortus.kube.objects import Object
from hortus.schema.quoting import quote

GROUP = "certificates.k8s.io"
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
"""The signer whose certificates this server accepts."""


async def refused_decision(
    authorizer: Authorizer, subresource: str, obj: Object, old: Object, *, cluster: str, user: UserInfo
) -> str:
    """The reason why `user` may not write this over `old` through `approval` or `status`; empty when they may.

    The stored request says whose signer it is, whatever the new one says.
    """
    signer = (old.get("spec") or {}).get("signerName", "")
    if subresource == "approval":
        verb = "approve"
    elif subresource == "status" and _decided(obj) != _decided(old):
        verb = "sign"
    else:
        return ""
    if await _may_use(authorizer, verb, signer, cluster=cluster, user=user):
        return ""
    return f"user not permitted to {verb} requests with signerName {quote(signer)}"


async def _may_use(authorizer: Authorizer, verb: str, signer: str, *, cluster: str, user: UserInfo) -> bool:
    """True when the verb is allowed on the signer or on all signers of its domain."""
    for name in (signer, f"{signer.partition('/')[0]}/*"):
        asked = Attributes(cluster, user, verb, GROUP, "*", "signers", "", "", name)
        if (await authorizer.authorize(asked)).allowed:
            return True
    return False


def refused_subject(signer: str, organizations: Sequence[str]) -> str:
    """The reason why the signer refuses a certificate of these groups to everybody; empty when it does not."""
    if signer == CLIENT_SIGNER and MASTERS in organizations:
        return f"use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed"
    return ""


def _decided(request: Object) -> tuple[object, object]:
    status = request.get("status") or {}
    return status.get("certificate") or "", status.get("conditions") or []
