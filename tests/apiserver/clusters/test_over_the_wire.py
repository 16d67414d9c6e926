"""Authentication, authorization and logical clusters as a client meets them: over TLS, on a composed server."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from hortus.testing.apiserver import TestServer, running_apiserver

CLUSTERS = "/apis/tenancy.hortus.dev/v1alpha1/logicalclusters"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
Answer = tuple[int, dict[str, Any]]


class Caller:
    """One client: with a token, with a certificate, or with nothing."""

    def __init__(self, server: TestServer, session: aiohttp.ClientSession, tls: ssl.SSLContext, token: str) -> None:
        self._server = server
        self._session = session
        self._tls = tls
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        sent = self._headers | {name.replace("_", "-"): value for name, value in headers.items()}
        async with self._session.request(
            method, f"{self._server.url}{path}", json=body, headers=sent, ssl=self._tls
        ) as answer:
            return answer.status, await answer.json(content_type=None)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[TestServer]:
    async with running_apiserver(folder=tmp_path, clusters=["a", "b"]) as running:
        yield running


@asynccontextmanager
async def caller(
    server: TestServer, *, token: str = "", certificate: dict[str, str] | None = None
) -> AsyncIterator[Caller]:
    tls = server.tls()
    if certificate is not None:
        path = Path(server.kubeconfig).parent / "client.pem"
        path.write_text(certificate["privateKey"] + certificate["certificate"])
        tls.load_cert_chain(path)
    async with aiohttp.ClientSession() as session:
        yield Caller(server, session, tls, token)


async def issued(admin: Caller, cluster: str, username: str, *groups: str) -> dict[str, str]:
    body = {"spec": {"username": username, "groups": groups, "expirationSeconds": 600}}
    code, answer = await admin.call("POST", f"{CLUSTERS}/{cluster}/clientcertificate", body)
    assert code in (200, 201), answer
    return answer["status"]


async def whoami(client: Caller, cluster: str, **headers: str) -> Answer:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    code, answer = await client.call(
        "POST", f"/clusters/{cluster}/apis/authentication.k8s.io/v1/selfsubjectreviews", body, **headers
    )
    return code, answer["status"]["userInfo"] if code == 201 else answer


async def test_a_certificate_from_the_subresource_works_in_its_cluster_until_that_is_deleted(
    server: TestServer,
) -> None:
    async with caller(server, token=server.token) as admin:
        certificate = await issued(admin, "a", "jane", "system:masters")
        async with caller(server, certificate=certificate) as jane:
            code, user = await whoami(jane, "a")
            assert (code, user["username"]) == (201, "jane")
            assert (await jane.call("GET", "/clusters/a/api/v1/namespaces"))[0] == 200
            for elsewhere in ("/clusters/b", ""):
                code, answer = await jane.call("GET", f"{elsewhere}/api/v1/namespaces")
                assert (code, answer["reason"], answer["message"]) == (401, "Unauthorized", "Unauthorized")
            assert (await admin.call("DELETE", f"{CLUSTERS}/a"))[0] == 200
            assert (await jane.call("GET", "/clusters/a/api/v1/namespaces"))[0] == 401


async def test_a_service_account_of_elsewhere_may_have_a_longer_name_than_x520_foresees(server: TestServer) -> None:
    name = "gardener.cloud:admin:system:serviceaccount:kcp-system:infrastructure-manager"
    async with caller(server, token=server.token) as admin:
        certificate = await issued(admin, "a", name, "gardener.cloud:system:admins")
        async with caller(server, certificate=certificate) as somebody:
            code, user = await whoami(somebody, "a")
    assert (code, user["username"]) == (201, name)
    assert user["groups"] == ["gardener.cloud:system:admins", "system:authenticated"]


async def test_a_cluster_made_again_is_empty_and_accepts_no_old_certificate(server: TestServer) -> None:
    async with caller(server, token=server.token) as admin:
        certificate = await issued(admin, "a", "jane", "system:masters")
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"k": "v"}}
        assert (await admin.call("POST", "/clusters/a/api/v1/namespaces/default/configmaps", made))[0] == 201
        await admin.call("DELETE", f"{CLUSTERS}/a")
        again = {"apiVersion": "tenancy.hortus.dev/v1alpha1", "kind": "LogicalCluster", "metadata": {"name": "a"}}
        code = 409
        while code == 409:
            code, answer = await admin.call("POST", CLUSTERS, again)
        assert code == 201 and answer["status"]["path"] == "/clusters/a"
        code, _ = await admin.call("GET", "/clusters/a/api/v1/namespaces/default/configmaps/x")
        assert code == 404
        async with caller(server, certificate=certificate) as jane:
            assert (await jane.call("GET", "/clusters/a/api/v1/namespaces"))[0] == 401


async def test_a_member_of_a_cluster_sees_what_its_roles_allow_in_kubernetes_words(server: TestServer) -> None:
    async with caller(server, token=server.token) as admin:
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "jane", "namespace": "default"},
            "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"kind": "ClusterRole", "name": "admin", "apiGroup": "rbac.authorization.k8s.io"},
        }
        code, answer = await admin.call("POST", f"/clusters/a{RBAC}/namespaces/default/rolebindings", binding)
        assert code == 201, answer
        async with caller(server, certificate=await issued(admin, "a", "jane")) as jane:
            assert (await jane.call("GET", "/clusters/a/api/v1/namespaces/default/pods"))[0] == 200
            code, answer = await jane.call("GET", "/clusters/a/api/v1/pods")
            assert (code, answer["message"]) == (
                403,
                'pods is forbidden: User "jane" cannot list resource "pods" in API group "" at the cluster scope',
            )
            wide = {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "Role",
                "metadata": {"name": "wide"},
                "rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            }
            code, answer = await jane.call("POST", f"/clusters/a{RBAC}/namespaces/default/roles", wide)
            assert code == 403 and "attempting to grant RBAC permissions not currently held" in answer["message"]
            code, answer = await jane.call("GET", "/clusters/a/api/v1/pods", Impersonate_User="root")
            assert code == 403 and 'cannot impersonate resource "users"' in answer["message"]


async def test_a_service_account_token_works_where_it_was_made(server: TestServer) -> None:
    async with caller(server, token=server.token) as admin:
        path = "/clusters/a/api/v1/namespaces/default/serviceaccounts/default/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
        code, answer = await admin.call("POST", path, body)
        assert code == 201, answer
        async with caller(server, token=answer["status"]["token"]) as account:
            code, user = await whoami(account, "a")
            assert (code, user["username"]) == (201, "system:serviceaccount:default:default")
            assert (await whoami(account, "b"))[0] == 401
            assert (await account.call("GET", "/clusters/a/api/v1/namespaces/default/pods"))[0] == 403


async def test_impersonation_shows_another_self(server: TestServer) -> None:
    async with caller(server, token=server.token) as admin:
        code, user = await whoami(admin, "a", Impersonate_User="jane", Impersonate_Group="devs")
        assert (code, user) == (201, {"username": "jane", "groups": ["devs", "system:authenticated"]})


async def test_anonymous_requests_see_health_and_version_alone(server: TestServer) -> None:
    async with caller(server) as nobody:
        for path in ("/version", "/clusters/a/version", "/clusters/nowhere/version"):
            assert (await nobody.call("GET", path))[0] == 200
        for path in ("/api", "/clusters/a/apis", "/clusters/a/api/v1/namespaces", "/clusters/nowhere/api"):
            code, answer = await nobody.call("GET", path)
            assert code == 403 and 'User "system:anonymous" cannot' in answer["message"]
        code, _ = await nobody.call("GET", "/clusters/nowhere/api", Impersonate_User="jane")
        assert code == 403


async def test_the_servers_own_keys_are_out_of_every_requests_reach(server: TestServer) -> None:
    async with caller(server, token=server.token) as admin:
        for path in (
            "/clusters/_server/api/v1/keys",
            "/clusters/_server%2Fkeys/api/v1/pods",
            "/clusters/..%2f_server/api",
        ):
            code, _ = await admin.call("GET", path)
            assert code in (400, 401, 404), path


async def test_default_roles_are_there_and_can_be_changed_per_cluster(server: TestServer) -> None:
    async with caller(server, token=server.token) as admin:
        code, role = await admin.call("GET", f"/clusters/a{RBAC}/clusterroles/view")
        assert code == 200
        role["metadata"]["labels"]["mine"] = "yes"
        code, changed = await admin.call("PUT", f"/clusters/a{RBAC}/clusterroles/view", role)
        assert code == 200, changed
        assert changed["metadata"]["uid"] == role["metadata"]["uid"]
        code, answer = await admin.call("PUT", f"/clusters/a{RBAC}/clusterroles/view", role)
        assert (code, answer["reason"]) == (409, "Conflict")
        assert (await admin.call("DELETE", f"/clusters/a{RBAC}/clusterroles/edit"))[0] == 200
        names = {}
        for cluster in ("a", "b"):
            _, listed = await admin.call("GET", f"/clusters/{cluster}{RBAC}/clusterroles")
            names[cluster] = {item["metadata"]["name"] for item in listed["items"]}
        assert names["b"] - names["a"] == {"edit"}
        _, other = await admin.call("GET", f"/clusters/b{RBAC}/clusterroles/view")
        assert "mine" not in other["metadata"]["labels"]


async def test_every_cluster_is_known_by_a_kube_system_of_its_own(server: TestServer) -> None:
    async with caller(server, token=server.token) as admin:
        uids = []
        for cluster in ("", "/clusters/a", "/clusters/b"):
            _, found = await admin.call("GET", f"{cluster}/api/v1/namespaces/kube-system")
            _, listed = await admin.call("GET", f"{cluster}/api/v1/namespaces")
            uids.append(found["metadata"]["uid"])
            assert uids[-1] in [one["metadata"]["uid"] for one in listed["items"]]
        assert len(set(uids)) == 3
        patch = {"metadata": {"labels": {"touched": "yes"}}}
        headers = {"Content_Type": "application/merge-patch+json"}
        code, patched = await admin.call("PATCH", "/clusters/a/api/v1/namespaces/kube-system", patch, **headers)
        assert code == 200
        assert patched["metadata"]["uid"] == uids[1], "a write over it changes nothing of that"
