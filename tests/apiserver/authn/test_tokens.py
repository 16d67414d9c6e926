"""ServiceAccount tokens: what they carry, when they count, and every forgery we could think of."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.apiserver.authn.world import World, world

from hortus.apiserver.authn import StoredObjects, UserInfo, issuer_of, json_web_keys, openid_configuration
from hortus.apiserver.authn.certificates import new_key
from hortus.apiserver.authn.jwt import SIZE_LIMIT, key_id, sign
from hortus.apiserver.authn.service_accounts import Bindings, ObjectReference, mint
from hortus.apiserver.authn.token_requests import TokenRequests, token_review
from hortus.apiserver.resources.definition import WriteContext
from hortus.apiserver.store import StoreKey
from hortus.kube.errors import BadRequest, Conflict, Invalid, NotFound, Unauthorized
from hortus.kube.objects import format_time

ACCOUNT = {"metadata": {"name": "bot", "namespace": "ns", "uid": "sa-uid"}}
ACCOUNT_KEY = StoreKey("root/core/serviceaccounts", "ns/bot")
POD = {
    "metadata": {"name": "p", "namespace": "ns", "uid": "pod-uid"},
    "spec": {"serviceAccountName": "bot", "nodeName": "n"},
}


@pytest.fixture
async def here() -> AsyncIterator[World]:
    async with world() as made:
        await made.write(ACCOUNT_KEY, ACCOUNT)
        yield made


def context(here: World, cluster: str = "root") -> WriteContext:
    return WriteContext(cluster=cluster, namespace="ns", user=UserInfo("admin"), now=here.clock.now())


async def request(here: World, spec: dict[str, Any] | None = None, account: dict[str, Any] = ACCOUNT) -> dict[str, Any]:
    requests = TokenRequests(here.clusters, StoredObjects(here.storage.backend))
    return await requests.handler(account, {"spec": spec or {}}, context(here))


async def token(here: World, spec: dict[str, Any] | None = None) -> str:
    return (await request(here, spec))["status"]["token"]


def claims_of(text: str) -> dict[str, Any]:
    body = text.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))


def part(data: Any) -> str:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


async def test_a_token_names_its_account_as_kubernetes_does(here: World) -> None:
    now = int(here.clock.now())
    found = claims_of(await token(here, {"expirationSeconds": 600}))
    assert found.pop("jti")
    assert found == {
        "iss": issuer_of("root"),
        "sub": "system:serviceaccount:ns:bot",
        "aud": [issuer_of("root")],
        "exp": now + 600,
        "iat": now,
        "nbf": now,
        "kubernetes.io": {"namespace": "ns", "serviceaccount": {"name": "bot", "uid": "sa-uid"}},
    }


async def test_a_token_proves_its_account_with_groups(here: World) -> None:
    user = await here.whoami("root", bearer=await token(here))
    assert (user.username, user.uid) == ("system:serviceaccount:ns:bot", "sa-uid")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")


async def test_a_token_ends_with_its_time_its_account_and_its_accounts_identity(here: World) -> None:
    text = await token(here, {"expirationSeconds": 600})
    await here.clock.advance(599)
    await here.whoami("root", bearer=text)
    await here.write(ACCOUNT_KEY, {"metadata": {**ACCOUNT["metadata"], "uid": "another"}})
    with pytest.raises(Unauthorized):
        await here.whoami("root", bearer=text)
    await here.write(ACCOUNT_KEY, ACCOUNT)
    await here.whoami("root", bearer=text)
    await here.remove(ACCOUNT_KEY)
    with pytest.raises(Unauthorized):
        await here.whoami("root", bearer=text)
    await here.write(ACCOUNT_KEY, ACCOUNT)
    await here.clock.advance(1)
    with pytest.raises(Unauthorized):
        await here.whoami("root", bearer=text)


async def test_an_account_in_deletion_keeps_its_tokens_for_a_minute(here: World) -> None:
    text = await token(here)
    await here.whoami("root", bearer=text)
    deleted = {**ACCOUNT["metadata"], "deletionTimestamp": format_time(here.clock.now())}
    await here.write(ACCOUNT_KEY, {"metadata": deleted})
    await here.whoami("root", bearer=text)
    await here.clock.advance(61)
    with pytest.raises(Unauthorized):
        await here.whoami("root", bearer=text)


async def test_a_token_bound_to_a_pod_ends_with_the_pod_and_names_its_node(here: World) -> None:
    pod = StoreKey("root/core/pods", "ns/p")
    await here.write(pod, POD)
    await here.write(StoreKey("root/core/nodes", "/n"), {"metadata": {"name": "n", "uid": "node-uid"}})
    text = await token(here, {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "pod-uid"}})
    user = await here.whoami("root", bearer=text)
    assert user.extra["authentication.kubernetes.io/pod-name"] == ("p",)
    assert user.extra["authentication.kubernetes.io/node-name"] == ("n",)
    await here.remove(pod)
    with pytest.raises(Unauthorized):
        await here.whoami("root", bearer=text)


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        (
            {"expirationSeconds": 599},
            Invalid,
            "spec.expirationSeconds: Invalid value: 599: may not specify a duration less",
        ),
        ({"expirationSeconds": 1 << 33}, Invalid, "larger than 2\\^32 seconds"),
        ({"expirationSeconds": "x"}, BadRequest, "TokenRequest is invalid"),
        ({"boundObjectRef": {"kind": "ConfigMap", "name": "x"}}, BadRequest, "cannot bind token to object of type"),
        ({"boundObjectRef": {"kind": "Pod", "name": "gone"}}, NotFound, 'pods "gone" not found'),
        (
            {"boundObjectRef": {"kind": "Pod", "name": "p", "uid": "other"}},
            Conflict,
            "does not match the UID in record",
        ),
    ],
)
async def test_a_token_request_is_refused_in_kubernetes_words(
    here: World, spec: dict[str, Any], error: type[Exception], message: str
) -> None:
    await here.write(StoreKey("root/core/pods", "ns/p"), POD)
    with pytest.raises(error, match=message):
        await request(here, spec)


async def test_a_pod_of_another_account_binds_no_token(here: World) -> None:
    await here.write(StoreKey("root/core/pods", "ns/p"), {**POD, "spec": {"serviceAccountName": "other"}})
    with pytest.raises(BadRequest, match="different serviceaccount name"):
        await request(here, {"boundObjectRef": {"kind": "Pod", "name": "p"}})


async def test_a_token_for_another_audience_is_refused_here_and_passes_its_review(here: World) -> None:
    text = await token(here, {"audiences": ["vault"]})
    with pytest.raises(Unauthorized):
        await here.whoami("root", bearer=text)

    async def review(**spec: Any) -> dict[str, Any]:
        body = {"spec": {"token": text, **spec}}
        return (await token_review(here.authentication, here.service_accounts, body, context(here)))["status"]

    assert "authenticated" not in await review()
    found = await review(audiences=["vault", "else"])
    assert found["authenticated"] and found["audiences"] == ["vault"]
    assert found["user"]["username"] == "system:serviceaccount:ns:bot"
    assert text not in json.dumps(await review(audiences=["else"]))


async def test_the_first_administrator_comes_in_by_a_fixed_token_of_the_root_only(here: World) -> None:
    await here.create_cluster("a")
    assert (await here.whoami("root", bearer="first-token")).username == "root-admin"
    for cluster, bearer in (("a", "first-token"), ("root", "first-toke"), ("root", "first-token ")):
        with pytest.raises(Unauthorized):
            await here.whoami(cluster, bearer=bearer)


async def test_the_published_keys_are_those_that_sign(here: World) -> None:
    text = await token(here)
    header = json.loads(base64.urlsafe_b64decode(text.split(".")[0] + "=="))
    (published,) = json_web_keys(here.clusters.get("root").keys)["keys"]
    assert header == {"alg": "ES256", "kid": published["kid"]}
    assert openid_configuration("root", "https://x")["issuer"] == claims_of(text)["iss"]


def forgeries(text: str, key: ec.EllipticCurvePrivateKey) -> dict[str, str]:
    """Tokens made from a good one which must not pass."""
    header, body, signature = text.split(".")
    claims = claims_of(text)
    kid = key_id(key.public_key())
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def signed(changed: dict[str, Any]) -> str:
        return sign(json.dumps({**claims, **changed}).encode(), key)

    def hs256(secret: bytes) -> str:
        start = f"{part({'alg': 'HS256', 'kid': kid})}.{body}"
        return f"{start}.{part(hmac.digest(secret, start.encode(), hashlib.sha256))}"

    nested = {**claims["kubernetes.io"], "namespace": "kube-system"}
    return {
        "alg none": f"{part({'alg': 'none', 'kid': kid})}.{body}.",
        "alg None with the signature": f"{part({'alg': 'None', 'kid': kid})}.{body}.{signature}",
        "hmac with the public key": hs256(pem),
        "hmac with the key id": hs256(kid.encode()),
        "rs256": f"{part({'alg': 'RS256', 'kid': kid})}.{body}.{signature}",
        "embedded key": f"{part({'alg': 'ES256', 'kid': kid, 'jwk': {'kty': 'EC'}})}.{body}.{signature}",
        "key url": f"{part({'alg': 'ES256', 'kid': kid, 'jku': 'https://evil'})}.{body}.{signature}",
        "critical extension": f"{part({'alg': 'ES256', 'kid': kid, 'crit': ['x']})}.{body}.{signature}",
        "huge key id": f"{part({'alg': 'ES256', 'kid': 'x' * 1_000_000})}.{body}.{signature}",
        "path in key id": f"{part({'alg': 'ES256', 'kid': '../../../etc/passwd'})}.{body}.{signature}",
        "another key": sign(json.dumps(claims).encode(), new_key()),
        "zero signature": f"{header}.{body}.{part(bytes(64))}",
        "short signature": f"{header}.{body}.{part(bytes(63))}",
        "der signature": f"{header}.{body}.{part(key.sign(f'{header}.{body}'.encode(), ec.ECDSA(_sha256())))}",
        "no signature": f"{header}.{body}.",
        "padded": f"{header}.{body}.{signature}==",
        "other alphabet": text.replace("-", "+").replace("_", "/") + "+",
        "trailing space": text + " ",
        "four parts": text + ".x",
        "changed claims": f"{header}.{part({**claims, 'sub': 'system:serviceaccount:kube-system:admin'})}.{signature}",
        "other issuer": signed({"iss": issuer_of("other")}),
        "no issuer": signed({"iss": ""}),
        "other audience": signed({"aud": ["vault"]}),
        "empty audience": signed({"aud": []}),
        "audience no list": signed({"aud": issuer_of("root")}),
        "subject differs": signed({"sub": "system:serviceaccount:ns:other"}),
        "namespace differs": signed({"kubernetes.io": nested}),
        "expired": signed({"exp": claims["iat"] - 1}),
        "not yet": signed({"nbf": claims["exp"] + 1, "exp": claims["exp"] + 2}),
        "never expires": signed({"exp": None}),
        "expiry no number": signed({"exp": "9999999999"}),
        "infinite": signed({"exp": 1e400}),
        "other identity": signed({"kubernetes.io": {"namespace": "ns", "serviceaccount": {"name": "bot", "uid": "x"}}}),
        "no identity": signed({"kubernetes.io": {"namespace": "ns", "serviceaccount": {"name": "bot"}}}),
        "list for claims": sign(b"[]", key),
        "deep claims": sign(b"[" * 3000, key),
        "not json": sign(b"\xff\xfe", key),
        "empty": "..",
        "word": "word",
        "not ascii": text + "é",
        "surrogate": text + "\ud800",
        "null": text + "\x00",
        "long": "a" * (SIZE_LIMIT + 1),
    }


def _sha256() -> Any:
    from cryptography.hazmat.primitives.hashes import SHA256

    return SHA256()


async def test_no_forged_token_passes(here: World) -> None:
    text = await token(here)
    await here.whoami("root", bearer=text)
    passed = []
    for name, forged in forgeries(text, here.clusters.get("root").keys.token_key).items():
        try:
            await here.whoami("root", bearer=forged)
            passed.append(name)
        except Unauthorized as refusal:
            assert refusal.message == "Unauthorized"
    assert passed == []


async def test_a_token_never_works_in_another_cluster_also_where_all_names_agree(here: World) -> None:
    await here.create_cluster("a")
    await here.write(StoreKey("a/core/serviceaccounts", "ns/bot"), ACCOUNT)
    text = await token(here)
    with pytest.raises(Unauthorized):
        await here.whoami("a", bearer=text)
    bindings = Bindings("ns", ObjectReference("bot", "sa-uid"))
    claiming_a = sign(
        json.dumps({**claims_of(text), "iss": issuer_of("a"), "aud": [issuer_of("a")]}).encode(),
        here.clusters.get("root").keys.token_key,
    )
    with pytest.raises(Unauthorized):
        await here.whoami("a", bearer=claiming_a)
    good = mint(here.clusters.get("a").keys, bindings, audiences=(), now=here.clock.now(), seconds=600)
    assert (await here.whoami("a", bearer=good)).username == "system:serviceaccount:ns:bot"


async def test_many_bad_tokens_are_not_remembered(here: World) -> None:
    keys = here.clusters.get("root").keys
    for number in range(50):
        with pytest.raises(Unauthorized):
            await here.whoami("root", bearer=f"{number}.x.y")
    assert not keys.tokens
