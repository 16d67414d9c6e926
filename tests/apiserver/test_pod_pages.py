"""`pods/proxy` hands on the page of a pod, by permission of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.apiserver.wire import Wire

from hortus.apiserver.pods import PodPage
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer, started_apiserver


class Network:
    """Says what it is asked for."""

    async def get(self, cluster: str, pod: Object, port: int, path: str) -> PodPage:
        if port == 1:
            raise ConnectionError("connect: connection refused")
        text = f"{cluster} {pod['metadata']['name']} {port} {path}"
        return PodPage(418 if path == "/teapot" else 200, text.encode(), "text/x-page")


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_apiserver() as running:
        running.server.reach_pods(Network())
        yield running


async def _pod(wire: Wire, namespace: str, name: str = "one", *, address: str = "10.0.0.7") -> str:
    path = f"/api/v1/namespaces/{namespace}/pods"
    await wire.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})
    container = {"name": "c", "image": "i", "ports": [{"containerPort": 8080}]}
    made = await wire.post(path, {"metadata": {"name": name}, "spec": {"containers": [container]}})
    assert made.code == 201, made.body
    if address:
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
        assert (await wire.merge(f"{path}/{name}/status", {"status": status})).code == 200
    return f"{path}/{name}"


async def test_a_page_is_handed_on_with_its_code_and_type(wire: Wire, namespace: str) -> None:
    path = await _pod(wire, namespace)
    found = await wire.get(f"{path}/proxy/a/b?c=d")
    assert (found.code, found.body) == (200, b"root one 8080 /a/b?c=d")
    assert found.headers["Content-Type"] == "text/x-page"
    assert (await wire.get(f"{path}/proxy")).body == b"root one 8080 /"
    assert (await wire.get(f"{path}:9/proxy/teapot")).code == 418
    assert (await wire.get(path.replace("/one", "/http:one:9") + "/proxy/")).body == b"root one 9 /"


@pytest.mark.parametrize("name", ["one:http", "one:0", "one:70000", "ftp:one:80", ":80", "a:b:c:d"])
async def test_a_name_that_is_no_pod_is_refused(wire: Wire, namespace: str, name: str) -> None:
    path = await _pod(wire, namespace)
    refused = await wire.get(path.replace("/one", f"/{name}") + "/proxy/")
    assert (refused.code, refused.message) == (400, f'invalid pod request "{name}"')


async def test_a_pod_that_is_gone_or_has_no_address_is_not_asked(wire: Wire, namespace: str) -> None:
    path = await _pod(wire, namespace, address="")
    refused = await wire.get(f"{path}/proxy/")
    assert (refused.code, refused.message) == (400, "address not allowed")
    missing = await wire.get(path.replace("/one", "/two:80") + "/proxy/")
    assert (missing.code, missing.message) == (404, 'pods "two" not found')


async def test_a_pod_that_cannot_be_reached_is_a_plain_503(wire: Wire, namespace: str, server: TestServer) -> None:
    path = await _pod(wire, namespace)
    refused = await wire.get(f"{path}:1/proxy/status")
    expected = b"error trying to reach service: http://10.0.0.7:1/status: connect: connection refused"
    assert (refused.code, refused.body) == (503, expected)


async def test_without_a_network_no_pod_is_reached(wire: Wire, namespace: str, server: TestServer) -> None:
    path = await _pod(wire, namespace)
    router = server.server._handler._router
    network, router.pods = router.pods, None
    try:
        refused = await wire.get(f"{path}/proxy/")
    finally:
        router.pods = network
    assert (refused.code, b"has no network to pods" in refused.body) == (503, True)


async def test_only_get_is_served(wire: Wire, namespace: str) -> None:
    path = await _pod(wire, namespace)
    for method in ("POST", "PUT", "PATCH", "DELETE", "HEAD"):
        assert (await wire.send(method, f"{path}/proxy/status")).code == 405, method
    assert (await wire.get(path)).code == 200


async def test_the_permission_is_get_on_pods_proxy_whatever_the_page(wire: Wire, namespace: str) -> None:
    path = await _pod(wire, namespace)
    jane = {"Impersonate-User": "jane"}
    for resource, code in (("pods", 403), ("pods/proxy", 200)):
        rules = [{"apiGroups": [""], "resources": [resource], "verbs": ["get"]}]
        roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
        name = resource.replace("/", "-")
        await wire.post(f"{roles}/roles", {"metadata": {"name": name}, "rules": rules})
        subject = {"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}
        of = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
        bound = {"metadata": {"name": name}, "subjects": [subject], "roleRef": of}
        assert (await wire.post(f"{roles}/rolebindings", bound)).code == 201
        assert (await wire.get(f"{path}/proxy/deep/down", headers=jane)).code == code
        assert (await wire.get(f"{path}:9/proxy/", headers=jane)).code == code
