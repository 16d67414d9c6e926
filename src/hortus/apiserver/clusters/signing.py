"""Signs approved CertificateSigningRequests for `kubernetes.io/kube-apiserver-client` (Kubernetes docs, "Certificates
and Certificate Signing Requests"): how `kubectl` users make themselves a client certificate.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from hortus.apiserver.authn.certificates import parsed_request
from hortus.apiserver.authn.cluster_keys import ClusterKeys
from hortus.apiserver.authn.subjects import subject_of
from hortus.apiserver.authz.rbac import MASTERS
from hortus.apiserver.authz.signers import CLIENT_SIGNER
from hortus.apiserver.clusters.issuing import issue
from hortus.kube.errors import BadRequest
from hortus.kube.objects import Object

LONGEST_SECONDS = 365 * 86400
"""What a request gets that names no time, and the most that any gets (kube-controller-manager's default)."""

_ALLOWED_USAGES = frozenset({"client auth", "digital signature", "key encipherment"})


def certificate_for(request: Object, keys: ClusterKeys, *, now: float) -> str:
    """The base64 text for `status.certificate` of an approved request; empty when it is not ours or not yet to sign.

    Raises BadRequest saying why it cannot be signed, for the condition `Failed`.
    """
    spec, status = request.get("spec") or {}, request.get("status") or {}
    conditions = {condition.get("type") for condition in status.get("conditions") or ()}
    if spec.get("signerName") != CLIENT_SIGNER or "Approved" not in conditions or conditions & {"Denied", "Failed"}:
        return ""
    if status.get("certificate"):
        return ""
    usages = set(spec.get("usages") or ())
    if "client auth" not in usages or usages - _ALLOWED_USAGES:
        raise BadRequest(f"spec.usages {sorted(usages)}: {CLIENT_SIGNER} signs for client auth only")
    seconds = min(spec.get("expirationSeconds") or LONGEST_SECONDS, LONGEST_SECONDS)
    csr, user, groups = _subject(spec.get("request", ""))
    issued = issue(keys, username=user, groups=groups, seconds=seconds, now=now, csr=csr)
    return base64.b64encode(issued.certificate).decode()


def _subject(encoded: str) -> tuple[bytes, str, Sequence[str]]:
    try:
        pem = base64.b64decode(encoded, validate=True)
        names, groups = subject_of(parsed_request(pem))
    except (ValueError, binascii.Error) as problem:
        raise BadRequest(f"spec.request is no certificate signing request: {problem}") from problem
    if MASTERS in groups:
        raise BadRequest(f"spec.request asks for the group {MASTERS}, which {CLIENT_SIGNER} does not sign for")
    return pem, names[-1] if names else "", groups
