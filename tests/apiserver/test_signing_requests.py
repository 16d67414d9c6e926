"""A signing request becomes an identity only by an approval of a user with permission for the signer."""

from __future__ import annotations

import base64
from typing import Any

from cryptography import x509
from tests.apiserver.clusters.test_signing import csr
from tests.apiserver.wire import Wire

BASE = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "certificates.k8s.io"


async def _may(wire: Wire, user: str, *rules: tuple[str, str]) -> dict[str, str]:
    """The headers of a user with these verbs on these resources of the group."""
    shown = [
        {"verbs": verbs.split(), "apiGroups": [GROUP], "resources": resources.split()} for verbs, resources in rules
    ]
    assert (await wire.post(f"{RBAC}/clusterroles", {"metadata": {"name": user}, "rules": shown})).code == 201
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    binding = {"metadata": {"name": user}, "subjects": [subject], "roleRef": role}
    assert (await wire.post(f"{RBAC}/clusterrolebindings", binding)).code == 201
    return {"Impersonate-User": user}


def _asked(name: str, *groups: str) -> dict[str, Any]:
    request = base64.b64encode(csr(user="jane", groups=groups or ("devs",))).decode()
    spec = {"request": request, "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}
    return {"metadata": {"name": name}, "spec": spec}


def _approved(**more: Any) -> dict[str, Any]:
    condition = {"type": "Approved", "status": "True", "reason": "Trust", "message": "me"}
    return {"status": {"conditions": [condition], **more}}


async def test_an_approved_request_becomes_a_certificate(wire: Wire) -> None:
    approver = await _may(
        wire, "approver", ("approve", "signers"), ("update patch", "certificatesigningrequests/approval")
    )
    made = (await wire.post(BASE, _asked("good"))).body
    start = made["metadata"]["resourceVersion"]
    async with wire.watch(f"{BASE}?watch=1&resourceVersion={start}&fieldSelector=metadata.name%3Dgood") as events:
        assert (await wire.merge(f"{BASE}/good/approval", _approved(), headers=approver)).code == 200
        status = (await events.next())["object"]["status"]
        while "certificate" not in status:
            status = (await events.next())["object"]["status"]
    leaf = x509.load_pem_x509_certificate(base64.b64decode(status["certificate"]))
    assert leaf.subject.rfc4514_string() == "CN=jane,O=devs"


async def test_permission_to_write_signing_requests_gives_no_identity(wire: Wire) -> None:
    everything = "certificatesigningrequests certificatesigningrequests/approval certificatesigningrequests/status"
    mallory = await _may(wire, "mallory", ("*", everything))
    assert (await wire.post(BASE, _asked("bad", "system:masters"), headers=mallory)).code == 403
    assert (await wire.post(BASE, {**_asked("bad"), **_approved()}, headers=mallory)).code == 201
    for endpoint, code in (("", 200), ("/approval", 403), ("/status", 422)):
        path = f"{BASE}/bad{endpoint}"
        for send in (wire.merge, wire.strategic):
            assert (await send(path, _approved(certificate="YQ=="), headers=mallory)).code == code
        whole = (await wire.get(path, headers=mallory)).body
        assert (await wire.put(path, {**whole, **_approved()}, headers=mallory)).code == code
        applied = {"apiVersion": f"{GROUP}/v1", "kind": "CertificateSigningRequest", **_approved()}
        answer = await wire.send(
            "PATCH",
            f"{path}?fieldManager=m&force=true",
            applied,
            content_type="application/apply-patch+yaml",
            headers=mallory,
        )
        assert answer.code == code
    status = (await wire.get(f"{BASE}/bad")).body["status"]
    assert status == {}
