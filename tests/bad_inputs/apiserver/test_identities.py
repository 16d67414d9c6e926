"""Claimed identities: forged, stale and borrowed tokens, certificates of others, and impersonation."""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from tests.apiserver.wire import Wire
from tests.bad_inputs.apiserver.attacked import Target

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
UNAUTHORIZED, FORBIDDEN = (401, "Unauthorized"), (403, "Forbidden")
Parts = tuple[dict[str, Any], dict[str, Any], bytes]

pytestmark = pytest.mark.usefixtures("bystander")


async def _token(wire: Wire, account: str = "default", **spec: Any) -> str:
    made = await wire.post(f"{ACCOUNTS}/{account}/token", {"spec": {"expirationSeconds": 3600, **spec}})
    assert made.code == 201, made.body
    return str(made.body["status"]["token"])


async def _verdict(target: Target, token: str, path: str = "/api/v1/namespaces/default") -> tuple[int, str]:
    answer = await target.ask(f"GET {path} HTTP/1.1", token=token)
    return answer.verdict if answer.code >= 400 else (answer.code, "")


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _taken_apart(token: str) -> Parts:
    header, claims, signature = (base64.urlsafe_b64decode(part + "==") for part in token.split("."))
    return orjson.loads(header), orjson.loads(claims), signature


def _put_together(header: dict[str, Any], claims: dict[str, Any], signature: bytes) -> str:
    return ".".join(map(_text, (orjson.dumps(header), orjson.dumps(claims), signature)))


def _signed(header: dict[str, Any], claims: dict[str, Any], sign: Callable[[bytes], bytes]) -> str:
    body = f"{_text(orjson.dumps(header))}.{_text(orjson.dumps(claims))}"
    return f"{body}.{_text(sign(body.encode()))}"


def _by_hmac(key: bytes) -> Callable[[bytes], bytes]:
    return lambda body: hmac.new(key, body, hashlib.sha256).digest()


def _forged(token: str, public: bytes) -> dict[str, str]:
    header, claims, signature = _taken_apart(token)
    own = ec.generate_private_key(ec.SECP256R1())
    admin = claims | {"sub": "system:serviceaccount:kube-system:admin"}
    own_key = {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}
    return {
        "no algorithm": _put_together(header | {"alg": "none"}, admin, b""),
        "no algorithm, in capitals": _put_together(header | {"alg": "NONE"}, admin, b""),
        "the public key as a secret": _signed(header | {"alg": "HS256"}, admin, _by_hmac(public)),
        "an empty secret": _signed(header | {"alg": "HS256"}, admin, _by_hmac(b"")),
        "another key": _signed(header, claims, lambda body: own.sign(body, ec.ECDSA(hashes.SHA256()))),
        "another key and its name": _put_together(header | {"kid": "x"}, claims, signature),
        "a key in the header": _put_together(header | {"jwk": own_key}, claims, signature),
        "a key from elsewhere": _put_together(header | {"jku": "https://127.0.0.1/keys"}, claims, signature),
        "a key from a file": _put_together(header | {"kid": "../../../../dev/null"}, claims, signature),
        "a key from a database": _put_together(header | {"kid": "' OR 1=1 --"}, claims, signature),
        "a key name of 5 kB": _put_together(header | {"kid": "x" * 5000}, claims, signature),
        "a critical extension": _put_together(header | {"crit": ["exp"]}, claims, signature),
        "another subject": _put_together(header, admin, signature),
        "a later end": _put_together(header, claims | {"exp": 1 << 40}, signature),
        "another audience": _put_together(header, claims | {"aud": ["x"]}, signature),
        "another issuer": _put_together(header, claims | {"iss": "https://x"}, signature),
        "zeros for a signature": _put_together(header, claims, bytes(64)),
        "a signature in DER": _put_together(header, claims, b"\x30\x06\x02\x01\x01\x02\x01\x01"),
        "no signature": token.rpartition(".")[0] + ".",
        "two parts": token.rpartition(".")[0],
        "five parts": token + ".a.b",
        "padding": token + "==",
        "claims that are a list": ".".join([token.split(".")[0], _text(b"[]"), token.split(".")[2]]),
        "claims 10,000 deep": ".".join([token.split(".")[0], _text(b"[" * 4000), token.split(".")[2]]),
    }


async def test_tokens_that_were_tampered_with(target: Target, wire: Wire) -> None:
    token = await _token(wire)
    assert await _verdict(target, token, "/version") == (200, ""), "the token as it is"
    public = ssl.get_server_certificate(("127.0.0.1", target.port)).encode()
    for case, forged in _forged(token, public).items():
        assert forged != token
        assert await _verdict(target, forged, "/version") == UNAUTHORIZED, case


async def test_a_token_for_others_is_none_for_us(target: Target, wire: Wire) -> None:
    assert await _verdict(target, await _token(wire, audiences=["https://vault"])) == UNAUTHORIZED


async def test_a_token_of_one_logical_cluster_is_none_in_another(target: Target) -> None:
    async with target.wire(cluster="a") as a:
        token = await _token(a)
    assert await _verdict(target, token, "/clusters/a/version") == (200, "")
    for path in ("/version", "/clusters/b/version", "/clusters/nowhere/version"):
        assert await _verdict(target, token, path) == UNAUTHORIZED


async def test_a_token_ends_with_its_account_and_is_none_of_its_successor(target: Target, wire: Wire) -> None:
    assert (await wire.post(ACCOUNTS, {"metadata": {"name": "brief"}})).code == 201
    token = await _token(wire, "brief")
    assert await _verdict(target, token, "/version") == (200, "")
    assert (await wire.delete(f"{ACCOUNTS}/brief")).code == 200
    assert await _verdict(target, token, "/version") == UNAUTHORIZED
    assert (await wire.post(ACCOUNTS, {"metadata": {"name": "brief"}})).code == 201
    assert await _verdict(target, token, "/version") == UNAUTHORIZED


async def test_a_token_bound_to_a_pod_or_secret_ends_with_it(target: Target, wire: Wire) -> None:
    pod = {"metadata": {"name": "bound"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    for kind, plural, obj in (("Pod", "pods", pod), ("Secret", "secrets", {"metadata": {"name": "bound"}})):
        path = f"/api/v1/namespaces/default/{plural}"
        made = await wire.post(path, obj)
        reference = {"kind": kind, "apiVersion": "v1", "name": "bound", "uid": made.body["metadata"]["uid"]}
        token = await _token(wire, boundObjectRef=reference)
        assert await _verdict(target, token, "/version") == (200, "")
        await wire.delete(f"{path}/bound", {"gracePeriodSeconds": 0})
        assert await _verdict(target, token, "/version") == UNAUTHORIZED
        assert (await wire.post(path, obj)).code == 201
        assert await _verdict(target, token, "/version") == UNAUTHORIZED, "another of the same name"


async def test_tokens_that_nobody_should_get(wire: Wire) -> None:
    for spec, code in (
        ({"expirationSeconds": 1}, 422),
        ({"expirationSeconds": -1}, 422),
        ({"expirationSeconds": 1 << 33}, 422),
        ({"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "x"}}, 400),
        ({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "missing"}}, 404),
    ):
        answer = await wire.post(f"{ACCOUNTS}/default/token", {"spec": spec})
        assert answer.code == code, (spec, answer.body)
        assert answer.body["kind"] == "Status"
    assert (await wire.post(f"{ACCOUNTS}/missing/token", {"spec": {}})).code == 404


async def test_bearers_that_are_none(target: Target) -> None:
    for value in ("Bearer", "Bearer ", "bearer x", "Bearer a b", "Basic YTpi", "Bearer " + "x" * 16_000, "Bearer \xff"):
        sent = f"GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\nAuthorization: {value}\r\n\r\n".encode("latin-1")
        assert (await target.raw(sent)).verdict in (UNAUTHORIZED, FORBIDDEN), value
    two = (
        "GET /api/v1/secrets HTTP/1.1",
        "Host: x",
        "Authorization: Bearer x",
        f"Authorization: Bearer {target.token}",
    )
    assert (await target.raw("\r\n".join([*two, "", ""]).encode())).verdict == UNAUTHORIZED


def _presented(
    target: Target,
    folder: Path,
    groups: str,
    name: str,
    *,
    ended: bool = False,
    issuer: str = "",
    old_key: bool = False,
) -> ssl.SSLContext:
    """A client's TLS with a certificate that it made itself, naming `issuer` as who signed it."""
    key = rsa.generate_private_key(65537, 1024) if old_key else ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, groups)] if groups else []
    names += [x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else []
    subject = x509.Name(names)
    now = datetime.datetime.now(datetime.UTC)
    end = now + datetime.timedelta(days=-1 if ended else 1)
    authority = x509.load_pem_x509_certificate(target.ca.encode()).subject if issuer else subject
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=2))
        .not_valid_after(end)
        .sign(key, hashes.SHA256())
    )
    path = folder / "client.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    tls = target.tls()
    tls.load_cert_chain(path)
    return tls


@pytest.mark.parametrize(
    "options",
    [
        {"groups": "system:masters", "name": "admin"},
        {"groups": "system:masters", "name": "admin", "issuer": "the server's own authority"},
        {"groups": "system:masters", "name": "admin", "ended": True},
        {"groups": "", "name": ""},
        {"groups": "system:masters", "name": ""},
        {"groups": "\0system:masters", "name": "admin"},
    ],
    ids=str,
)
async def test_certificates_that_nobody_signed_open_nothing(
    target: Target, tmp_path: Path, options: dict[str, Any]
) -> None:
    tls = _presented(target, tmp_path, **options)
    try:
        async with target.socket(tls) as socket:
            await socket.send(b"GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = await socket.reply()
    except (ssl.SSLError, ConnectionError, EOFError):
        return  # TLS itself has refused it
    assert answer.verdict in (UNAUTHORIZED, FORBIDDEN)


async def test_a_certificate_of_one_cluster_opens_no_other_whatever_its_groups(
    target: Target, wire: Wire, tmp_path: Path
) -> None:
    body = {"spec": {"username": "jane", "groups": ["system:masters"], "expirationSeconds": 600}}
    made = await wire.post("/apis/tenancy.hortus.dev/v1alpha1/logicalclusters/a/clientcertificate", body)
    path = tmp_path / "jane.pem"
    path.write_text(made.body["status"]["privateKey"] + made.body["status"]["certificate"])
    tls = target.tls()
    tls.load_cert_chain(path)
    async with target.socket(tls) as socket:
        for prefix, code in (("/clusters/a", 200), ("/clusters/b", 401), ("", 401), ("/clusters/nowhere", 401)):
            await socket.send(f"GET {prefix}/api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert (await socket.reply()).code == code, prefix


async def test_who_may_impersonate_nobody_stays_nobody(target: Target, wire: Wire) -> None:
    token = await _token(wire)
    for header in (
        "Impersonate-User: root",
        "Impersonate-User: system:admin",
        "Impersonate-User: system:serviceaccount:kube-system:admin",
        "Impersonate-User: system:serviceaccount:default:default",
        "impersonate-user: root",
    ):
        assert (await target.ask("GET /api/v1/secrets HTTP/1.1", header, token=token)).verdict == FORBIDDEN, header


_CLAIMS = {
    "an empty user": ["Impersonate-User: "],
    "no user, but a group": ["Impersonate-Group: system:masters"],
    "no user, but a uid": ["Impersonate-Uid: 1"],
    "no user, but extras": ["Impersonate-Extra-a: b"],
    "two users": ["Impersonate-User: a", "Impersonate-User: b"],
    "an empty user first": ["Impersonate-User: ", "Impersonate-User: b"],
}


@pytest.mark.parametrize("headers", _CLAIMS.values(), ids=_CLAIMS)
async def test_an_impersonation_of_nobody_is_never_oneself(target: Target, headers: list[str]) -> None:
    assert (await target.ask("GET /api/v1/secrets HTTP/1.1", *headers)).verdict == (400, "BadRequest")


async def test_somebody_who_may_act_as_one_user_may_not_take_groups_extras_or_uids(target: Target, wire: Wire) -> None:
    rules = [{"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": ["jane"]}]
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    assert (await wire.post(f"{rbac}/clusterroles", {"metadata": {"name": "as-jane"}, "rules": rules})).code == 201
    binding = {
        "metadata": {"name": "as-jane"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
        "roleRef": {"kind": "ClusterRole", "name": "as-jane", "apiGroup": "rbac.authorization.k8s.io"},
    }
    assert (await wire.post(f"{rbac}/clusterrolebindings", binding)).code == 201
    token = await _token(wire)
    for headers, code in (
        (["Impersonate-User: jane"], 201),
        (["Impersonate-User: janet"], 403),
        (["Impersonate-User: JANE"], 403),
        (["Impersonate-User: jane", "Impersonate-Group: system:masters"], 403),
        (["Impersonate-User: jane", "Impersonate-Group: devs", "Impersonate-Group: system:masters"], 403),
        (["Impersonate-User: jane", "IMPERSONATE-GROUP: system:masters"], 403),
        (["Impersonate-User: jane", "Impersonate-Uid: 1"], 403),
        (["Impersonate-User: jane", "Impersonate-EXTRA-sCoPes: all"], 403),
        (["Impersonate-User: jane", "Impersonate-Extra-%73copes: all"], 403),
        (["Impersonate-User: system:serviceaccount:default:default"], 403),
    ):
        body = orjson.dumps(REVIEW)
        answer = await target.ask(
            f"POST {WHOAMI} HTTP/1.1", "Content-Type: application/json", *headers, body=body, token=token
        )
        assert answer.code == code, headers
        if code == 201:
            user = answer.status["status"]["userInfo"]
            assert user == {"username": "jane", "groups": ["system:authenticated"]}


async def test_extra_keys_are_lower_case_and_decoded_once(target: Target) -> None:
    headers = ["Impersonate-User: jane", "Impersonate-Extra-sCoPes: a", "Impersonate-Extra-%2573: b"]
    answer = await target.ask(
        f"POST {WHOAMI} HTTP/1.1", "Content-Type: application/json", *headers, body=orjson.dumps(REVIEW)
    )
    assert answer.status["status"]["userInfo"]["extra"] == {"scopes": ["a"], "%73": ["b"]}
