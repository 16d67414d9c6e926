"""CertificateSigningRequests: three endpoints, three permissions, and no identity without them."""

from __future__ import annotations

import base64
import datetime
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from tests.conformance.api.test_guards import _as, _may, _rule
from tests.conformance.api.transcripts import RecordedWire

BASE = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
GROUP = "certificates.k8s.io"
FOREIGN = "example.com/signer"
OURS = "kubernetes.io/kube-apiserver-client"
_ASKER: dict[str, Any] = {"headers": {"Impersonate-User": "asker", "Impersonate-Group": "system:masters"}}
"""Somebody without a uid, which the servers' own users have or have not."""
_DECISION = {"reason": "R", "message": "m", "lastUpdateTime": "2026-01-01T00:00:00Z"}


def _pem(*groups: str) -> str:
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    made = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(made.public_bytes(Encoding.PEM)).decode()


def _csr(name: str, *groups: str, signer: str = FOREIGN, **spec: Any) -> dict[str, Any]:
    base = {"request": _pem(*groups), "signerName": signer, "usages": ["client auth", "digital signature"]}
    return {"metadata": {"name": name}, "spec": {**base, **spec}}


async def _requested(wire: RecordedWire, name: str, **options: Any) -> str:
    with wire.unrecorded():
        assert (await wire.post(BASE, _csr(name, **options), **_ASKER)).code == 201
    return f"{BASE}/{name}"


def _status(*conditions: str, **more: Any) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": each, "status": "True", **_DECISION} for each in conditions], **more}}


async def test_who_approves_needs_the_right_to_the_signer(wire: RecordedWire, slug: str) -> None:
    approval, user = await _requested(wire, f"a-{slug}") + "/approval", f"u-{slug}"
    everything = "certificatesigningrequests certificatesigningrequests/approval certificatesigningrequests/status"
    await _may(wire, user, _rule("patch get update", GROUP, everything))
    for decision in ("Approved", "Denied"):
        assert (await wire.merge(approval, _status(decision), **_as(user))).code == 403
        assert (await wire.strategic(approval, _status(decision), **_as(user))).code == 403
    whole = (await wire.get(approval, **_as(user))).body
    assert (await wire.put(approval, {**whole, **_status("Approved")}, **_as(user))).code == 403
    moved = {**_status("Approved"), "spec": {"signerName": "mine.example.com/signer"}}
    await _may(wire, user, _rule("approve", GROUP, "signers", "mine.example.com/signer"), name=f"x-{slug}")
    assert (await wire.merge(approval, moved, **_as(user))).code == 403
    assert (await wire.merge(approval, {"metadata": {"labels": {"a": "b"}}}, **_as(user))).code == 403
    await _may(wire, user, _rule("approve", GROUP, "signers", FOREIGN), name=f"y-{slug}")
    assert (await wire.merge(approval, moved, **_as(user))).code == 200
    assert (await wire.merge(approval, _status("Approved", certificate="YQ=="), **_as(user))).code == 200
    assert (await wire.merge(approval, _status("Approved", "Denied"), **_as(user))).code == 422
    assert (await wire.merge(approval, _status("Denied"), **_as(user))).code == 422
    assert (await wire.merge(approval, {"status": {"conditions": None}}, **_as(user))).code == 422


async def test_a_right_to_all_signers_of_a_domain_counts(wire: RecordedWire, slug: str) -> None:
    path, user = await _requested(wire, f"a-{slug}"), f"u-{slug}"
    everything = "certificatesigningrequests/approval certificatesigningrequests/status"
    await _may(wire, user, _rule("patch", GROUP, everything), _rule("approve sign", GROUP, "signers", "example.com/*"))
    assert (await wire.merge(f"{path}/approval", _status("Denied"), **_as(user))).code == 200
    assert (await wire.merge(f"{path}/status", _status("Denied", "Failed"), **_as(user))).code == 200


async def test_the_status_is_the_signers_and_approves_nothing(wire: RecordedWire, slug: str) -> None:
    path, user = await _requested(wire, f"a-{slug}"), f"u-{slug}"
    status = f"{path}/status"
    await _may(wire, user, _rule("patch get update", GROUP, "certificatesigningrequests/status"))
    certificate = base64.b64encode(_CERTIFICATE).decode()
    assert (await wire.merge(status, {"status": {"certificate": certificate}}, **_as(user))).code == 403
    assert (await wire.merge(status, _status("Failed"), **_as(user))).code == 403
    assert (await wire.merge(status, {"metadata": {"labels": {"a": "b"}}}, **_as(user))).code == 200
    await _may(wire, user, _rule("sign", GROUP, "signers", FOREIGN), name=f"x-{slug}")
    for decision in ("Approved", "Denied"):
        for who in (_as(user), {}):
            assert (await wire.merge(status, _status(decision), **who)).code == 422
            assert (await wire.json_patch(status, _add(decision), **who)).code == 422
    assert (await wire.merge(status, {"status": {"certificate": "YQ=="}}, **_as(user))).code == 422
    assert (await wire.merge(status, {"status": {"certificate": certificate}}, **_as(user))).code == 200
    assert (await wire.merge(status, {"status": {"certificate": None}}, **_as(user))).code == 422
    with wire.unrecorded():
        assert (await wire.merge(f"{path}/approval", _status("Approved"))).code == 200
    kept = await wire.merge(
        status, {"status": {"conditions": [{"type": "Approved", "status": "Unknown"}]}}, **_as(user)
    )
    assert (kept.code, kept.body["status"]["conditions"][0]["status"]) == (200, "True")
    assert (await wire.merge(status, {"status": {"conditions": None}}, **_as(user))).code == 422


async def test_what_is_applied_is_judged_alike(wire: RecordedWire, slug: str) -> None:
    path, user = await _requested(wire, f"a-{slug}"), f"u-{slug}"
    everything = "certificatesigningrequests certificatesigningrequests/approval certificatesigningrequests/status"
    await _may(wire, user, _rule("patch get update", GROUP, everything))
    applied = {"apiVersion": f"{GROUP}/v1", "kind": "CertificateSigningRequest", **_status("Approved")}
    media = {"content_type": "application/apply-patch+yaml", **_as(user)}
    for endpoint, code in (("", 200), ("/approval", 403), ("/status", 422)):
        assert (await wire.send("PATCH", f"{path}{endpoint}?fieldManager=m", applied, **media)).code == code
    await _may(wire, user, _rule("approve", GROUP, "signers"), name=f"x-{slug}")
    assert (await wire.send("PATCH", f"{path}/approval?fieldManager=m", applied, **media)).code == 200


def _add(decision: str) -> list[dict[str, Any]]:
    return [{"op": "add", "path": "/status/conditions", "value": [{"type": decision, "status": "True", **_DECISION}]}]


async def test_a_request_itself_is_never_changed(wire: RecordedWire, slug: str) -> None:
    path = await _requested(wire, f"a-{slug}")
    changed = {"spec": {"username": "admin", "usages": ["any"]}, **_status("Approved", certificate="YQ==")}
    answer = await wire.merge(path, {**changed, "metadata": {"labels": {"a": "b"}}})
    assert (answer.code, "conditions" in answer.body["status"]) == (200, False)


@pytest.mark.parametrize("signer", [OURS, FOREIGN])
async def test_the_masters_are_nobodys_to_ask_for(wire: RecordedWire, slug: str, signer: str) -> None:
    asked = _csr(f"m-{slug}", "devs", "system:masters", signer=signer)
    assert (await wire.post(f"{BASE}?dryRun=All", asked, **_ASKER)).code == (403 if signer == OURS else 201)


@pytest.mark.parametrize(
    "spec",
    [
        {"usages": []},
        {"usages": ["client auth", "client auth"]},
        {"usages": ["everything"]},
        {"signerName": "none"},
        {"signerName": "a/b/c"},
        {"signerName": "single/b"},
        {"signerName": "a_b.example/c"},
        {"signerName": "example.com/C"},
        {"signerName": "kubernetes.io/legacy-unknown"},
        {"expirationSeconds": 599},
        {"request": base64.b64encode(b"none").decode()},
        {"request": base64.b64encode(b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n").decode()},
    ],
    ids=lambda spec: "-".join(f"{key} {value}"[:30] for key, value in spec.items()),
)
async def test_what_is_wrong_with_a_request_is_said(wire: RecordedWire, slug: str, spec: dict[str, Any]) -> None:
    assert (await wire.post(f"{BASE}?dryRun=All", _csr(f"w-{slug}", **spec))).code == 422


@pytest.mark.parametrize(
    "conditions",
    [
        [{"type": "Approved", "status": "False"}],
        [{"type": "Approved"}],
        [{"status": "True"}],
        [{"type": "Other", "status": "Maybe"}],
        [{"type": "Approved", "status": "True"}, {"type": "Approved", "status": "True"}],
        [{"type": "Approved", "status": "True"}, {"type": "Denied", "status": "True"}],
    ],
    ids=["false", "statusless", "typeless", "unknown", "twice", "both"],
)
async def test_what_an_approval_may_say(wire: RecordedWire, slug: str, conditions: list[Any]) -> None:
    path = await _requested(wire, f"c-{slug}")
    assert (await wire.merge(f"{path}/approval", {"status": {"conditions": conditions}})).code == 422


async def test_a_policy_for_approvals_is_asked(wire: RecordedWire, slug: str) -> None:
    path = await _requested(wire, f"a-{slug}")
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    name = f"p-{slug}"
    rule = {
        "apiGroups": [GROUP],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["certificatesigningrequests/approval"],
        "resourceNames": [f"a-{slug}"],
    }
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "false", "messageExpression": "request.subResource + ' is closed'"}],
    }
    with wire.unrecorded():
        assert (await wire.post(policies, {"metadata": {"name": name}, "spec": spec})).code == 201
        binding = {"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}}
        assert (await wire.post(f"{policies}".replace("policies", "policybindings"), binding)).code == 201
    refuse = lambda: wire.merge(f"{path}/approval?dryRun=All", _status("Approved"))  # noqa: E731
    refused = await wire.until(refuse, lambda answer: answer.code == 422)
    assert refused.message.endswith("approval is closed")
    assert (await wire.merge(f"{path}/status", _status("Failed"))).code == 200
    with wire.unrecorded():
        await wire.delete(f"{policies}/{name}")
        await wire.delete(f"{policies}/{name}".replace("policies/", "policybindings/"))


def _own_certificate() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(start).not_valid_after(start + datetime.timedelta(days=1))
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


_CERTIFICATE = _own_certificate()
