"""An aggregated API server, unchanged, behind each server: k8s.io/sample-apiserver, by kubectl and on the wire."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from functools import partial

import orjson
import pytest
from tests.apiserver.wire import Answer, connected
from tests.conformance.api.conftest import Server
from tests.conformance.api.test_custom_resources import crd
from tests.conformance.api.test_kubectl import KUBECTL, Follow, Kubectl, command, follow, kubectl
from tests.conformance.api.transcripts import RecordedWire, Transcript
from tests.oracles.extension import SAMPLE, RunningExtension, running_extension
from tests.oracles.programs import built_program, why_not

__all__ = ["command", "follow", "kubectl"]

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
GROUP = "/apis/wardle.example.com"
FLUNDER = {
    "apiVersion": "wardle.example.com/v1beta1",
    "kind": "Flunder",
    "metadata": {"name": "f"},
    "spec": {"flunderReference": "other", "referenceType": "Flunder"},
}
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")


@pytest.fixture(scope="module")
def sample(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningExtension]:
    binary = built_program("sampleapiserver")
    if binary is None:
        pytest.skip(why_not("sampleapiserver"))
    with running_extension(binary, tmp_path_factory.mktemp("sample"), server, SAMPLE) as running:
        yield running


@pytest.fixture
def flunders(sample: RunningExtension, namespace: str) -> str:
    return f"{GROUP}/v1beta1/namespaces/{namespace}/flunders"


@pytest.fixture
async def plain(server: Server) -> AsyncIterator[RecordedWire]:
    """Requests whose answers are not compared with those of another server."""
    async with connected(server.url, server.token, server.tls()) as found:
        yield RecordedWire(found, Transcript())


@needs_kubectl
def test_kubectl_works_with_an_aggregated_kind(kubectl: Kubectl, sample: RunningExtension) -> None:
    kubectl("create", "namespace", "aggregated")
    space = "--namespace=aggregated"
    assert kubectl("get", "flunders", space) == "No resources found in aggregated namespace.\n"
    assert kubectl("apply", "-f", "-", space, stdin=FLUNDER) == "flunder.wardle.example.com/f created\n"
    assert kubectl("apply", "-f", "-", space, stdin=FLUNDER) == "flunder.wardle.example.com/f unchanged\n"
    changed = {**FLUNDER, "spec": {"fischerReference": "other", "referenceType": "Fischer"}}
    assert "serverside-applied" in kubectl(
        "apply", "--server-side", "--force-conflicts", "-f", "-", space, stdin=changed
    )
    assert kubectl("get", "flunder", "f", "-o", "jsonpath={.spec.fischerReference}", space) == "other"
    kubectl("label", "flunder", "f", "a=b", space)
    assert kubectl("get", "flunders", "-l", "a=b", "-o", "name", space) == "flunder.wardle.example.com/f\n"
    kubectl("patch", "flunder", "f", "--type=merge", "-p", '{"metadata":{"labels":{"a":"c"}}}', space)
    assert "f " in kubectl("get", "flunders", "-l", "a=c", space)
    # kubectl 1.34 names the namespace of what it deletes.
    assert 'flunder.wardle.example.com "f" deleted' in kubectl("delete", "flunder", "f", space)
    assert "(NotFound)" in kubectl("get", "flunder", "f", space, code=1)


@needs_kubectl
def test_kubectl_finds_and_explains_an_aggregated_kind(kubectl: Kubectl, sample: RunningExtension) -> None:
    listed = kubectl("api-resources", "--api-group=wardle.example.com", "--no-headers").splitlines()
    assert sorted(line.split()[0] for line in listed) == ["fischers", "flunders"]
    assert "wardle.example.com/v1alpha1" in kubectl("api-versions")
    # Some servers publish a schema a moment after they serve its kind; the test's own limit of time ends this.
    while "FIELDS:" not in (explained := kubectl("explain", "flunder.spec", code=None)):
        time.sleep(0.2)
    assert "fischerReference\t<string>" in explained
    services = {line.split()[0]: line.split()[1:3] for line in kubectl("get", "apiservices").splitlines()}
    assert services["v1beta1.wardle.example.com"] == ["wardle/sample-apiserver", "True"]
    assert services["v1.apps"] == ["Local", "True"]


@needs_kubectl
async def test_kubectl_watches_an_aggregated_kind(kubectl: Kubectl, follow: Follow, sample: RunningExtension) -> None:
    watching = await follow("get", "fischers", "--watch", "--output-watch-events", "--no-headers")
    fischer = {"apiVersion": "wardle.example.com/v1alpha1", "kind": "Fischer", "metadata": {"name": "w"}}
    kubectl("create", "-f", "-", stdin=fischer)
    assert (await watching.line("ADDED")).split()[:2] == ["ADDED", "w"]
    kubectl("delete", "fischer", "w")
    assert (await watching.line("DELETED")).split()[:2] == ["DELETED", "w"]


async def test_admission_and_validation_are_those_of_the_server_behind(plain: RecordedWire, flunders: str) -> None:
    invalid = {**FLUNDER, "spec": {"flunderReference": "a", "fischerReference": "b", "referenceType": "Flunder"}}
    refused = await plain.post(flunders, invalid)
    assert (refused.code, refused.body["reason"], refused.body["details"]["group"]) == (
        422,
        "Invalid",
        "wardle.example.com",
    )
    banned = {"metadata": {"name": "ban"}, "disallowedFlunders": ["f"]}
    assert (await plain.post(f"{GROUP}/v1alpha1/fischers", banned)).code == 201
    forbidden = await plain.until(partial(plain.post, flunders, FLUNDER), lambda answer: answer.code == 403)
    assert "this name may not be used" in forbidden.message
    await plain.delete(f"{GROUP}/v1alpha1/fischers/ban")


async def test_users_of_an_aggregated_kind_need_permissions_here(
    plain: RecordedWire, server: Server, flunders: str, namespace: str
) -> None:
    async def ask(**headers: str) -> int:
        answer = await plain.get(flunders, headers={"Impersonate-User": "jane", **headers})
        return answer.code

    assert await ask() == 403
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace
    rule = {"apiGroups": ["wardle.example.com"], "resources": ["flunders"], "verbs": ["list"]}
    subject = {"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
    await plain.post(f"{rbac}/roles", {"metadata": {"name": "r"}, "rules": [rule]})
    await plain.post(f"{rbac}/rolebindings", {"metadata": {"name": "r"}, "subjects": [subject], "roleRef": role})
    # The server behind asks this one by SubjectAccessReview, and remembers a refusal for ten seconds.
    answer = await plain.until(
        partial(plain.get, flunders, headers={"Impersonate-User": "jane"}), lambda answer: answer.code == 200
    )
    assert answer.body["kind"] == "FlunderList"
    assert await ask(**{"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}) == 200
    other = flunders.replace(namespace, "default")
    forged = {"Impersonate-User": "jane", "X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
    assert (await plain.get(other, headers=forged)).code == 403


async def test_discovery_and_openapi_show_what_the_server_behind_serves(
    plain: RecordedWire, sample: RunningExtension
) -> None:
    versions = [
        {"groupVersion": f"wardle.example.com/{version}", "version": version} for version in ("v1beta1", "v1alpha1")
    ]
    group = {"name": "wardle.example.com", "versions": versions, "preferredVersion": versions[0]}
    assert (await plain.get(GROUP)).body == {"kind": "APIGroup", "apiVersion": "v1", **group}
    assert group in (await plain.get("/apis")).body["groups"]
    listed = (await plain.get(f"{GROUP}/v1beta1")).body
    assert (listed["groupVersion"], [each["name"] for each in listed["resources"]]) == (
        "wardle.example.com/v1beta1",
        ["flunders"],
    )
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

    async def found() -> list[dict[str, object]]:
        items = (await plain.get("/apis", accept=accept)).body["items"]
        return [item["versions"] for item in items if item["metadata"]["name"] == "wardle.example.com"]

    [shown] = await found()
    assert [(each["version"], each["freshness"]) for each in shown] == [("v1beta1", "Current"), ("v1alpha1", "Current")]
    assert [each["resource"] for each in shown[1]["resources"]] == ["fischers", "flunders"]
    index = await plain.until(
        partial(plain.get, "/openapi/v3"), lambda answer: "apis/wardle.example.com/v1beta1" in _paths(answer)
    )
    address = _paths(index)["apis/wardle.example.com/v1beta1"]["serverRelativeURL"]
    document = (await plain.get(address)).body
    assert any(name.endswith("v1beta1.Flunder") for name in document["components"]["schemas"])
    swagger = await plain.until(
        partial(plain.get, "/openapi/v2"),
        lambda answer: f"{GROUP}/v1beta1/namespaces/{{namespace}}/flunders" in answer.body["paths"],
    )
    own = "/api/v1/namespaces/{namespace}/configmaps"
    assert own in swagger.body["paths"]


def _paths(answer: Answer) -> dict[str, dict[str, str]]:
    """The index of /openapi/v3, which kube-apiserver calls plain text."""
    body = answer.body if isinstance(answer.body, dict) else orjson.loads(answer.body)
    paths: dict[str, dict[str, str]] = body["paths"]
    return paths


async def test_a_version_that_nobody_serves_any_more_is_unavailable_and_stale(
    wire: RecordedWire, plain: RecordedWire, namespace: str
) -> None:
    """`wire` compares the condition and the answer with those of the original."""
    name, group = f"v1.{namespace}.example.com", f"{namespace}.example.com"
    spec = {
        "group": group,
        "version": "v1",
        "service": {"namespace": namespace, "name": "none", "port": 443},
        "groupPriorityMinimum": 2000,
        "versionPriority": 10,
    }
    with wire.unrecorded():
        assert (await wire.post(SERVICES, {"metadata": {"name": name}, "spec": spec})).code == 201
        await wire.until(partial(wire.get, f"{SERVICES}/{name}"), lambda answer: bool(answer.body.get("status")))
    shown = await wire.get(f"{SERVICES}/{name}")
    [condition] = shown.body["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "ServiceNotFound")
    refused = await wire.get(f"/apis/{group}/v1/things")
    assert (refused.code, refused.body) == (503, b"service unavailable\n")
    assert (await wire.get(f"/apis/{group}/v1")).code == 503
    assert (await wire.get(f"/apis/{group}")).code == 200
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    items = (await plain.get("/apis", accept=accept)).body["items"]
    [item] = [item for item in items if item["metadata"]["name"] == group]
    assert item["versions"] == [{"version": "v1", "freshness": "Stale"}]
    with wire.unrecorded():
        await wire.delete(f"{SERVICES}/{name}")
        await wire.until(partial(wire.get, f"/apis/{group}"), lambda answer: answer.code == 404)


async def test_a_service_without_the_port_has_another_reason_than_one_without_endpoints(
    wire: RecordedWire, namespace: str
) -> None:
    services = f"/api/v1/namespaces/{namespace}/services"
    for name, port in (("other-port", 1), ("no-endpoints", 443)):
        with wire.unrecorded():
            await wire.post(services, {"metadata": {"name": name}, "spec": {"ports": [{"port": port}]}})
            spec = {
                "group": f"{name}.{namespace}.example.com",
                "version": "v1",
                "service": {"namespace": namespace, "name": name},
                "insecureSkipTLSVerify": True,
                "groupPriorityMinimum": 2000,
                "versionPriority": 10,
            }
            path = f"{SERVICES}/v1.{spec['group']}"
            assert (await wire.post(SERVICES, {"metadata": {"name": f"v1.{spec['group']}"}, "spec": spec})).code == 201
            await wire.until(partial(wire.get, path), lambda answer: bool(answer.body.get("status")))
        shown = await wire.get(path)
        with wire.unrecorded():
            await wire.delete(path)
        reason = {"other-port": "ServicePortError", "no-endpoints": "EndpointsNotFound"}[name]
        assert shown.body["status"]["conditions"][0]["reason"] == reason


async def test_a_bad_apiservice_is_refused(wire: RecordedWire) -> None:
    for spec in (
        {},
        {"group": "g.example.com", "version": "v1"},
        {"group": "g.example.com", "version": "v1", "groupPriorityMinimum": 20001, "versionPriority": 1001},
        {
            "group": "G_",
            "version": "1",
            "groupPriorityMinimum": 1,
            "versionPriority": 1,
            "service": {"port": 70000},
            "insecureSkipTLSVerify": True,
            "caBundle": "Zm9v",
        },
        {
            "group": "g.example.com",
            "version": "v1",
            "groupPriorityMinimum": 1,
            "versionPriority": 1,
            "insecureSkipTLSVerify": True,
            "caBundle": "Zm9v",
        },
    ):
        name = f"{spec.get('version', '')}.{spec.get('group', '')}" if spec else "x"
        assert (await wire.post(SERVICES, {"metadata": {"name": name}, "spec": spec})).code == 422


async def test_groups_of_crds_have_apiservices_of_their_own(plain: RecordedWire, slug: str) -> None:
    group = f"g{slug}.example"
    path = f"{SERVICES}/v1.{group}"
    created = await plain.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd(group))
    assert created.code == 201
    found = await plain.until(partial(plain.get, path), lambda answer: answer.code == 200)
    assert found.body["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "true"}
    assert found.body["spec"] == {
        "group": group,
        "version": "v1",
        "groupPriorityMinimum": 1000,
        "versionPriority": 100,
    }
    local = await plain.until(partial(plain.get, path), lambda answer: bool(answer.body["status"].get("conditions")))
    [condition] = local.body["status"]["conditions"]
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "True",
        "Local",
        "Local APIServices are always available",
    )
    await plain.merge(path, {"spec": {"versionPriority": 7}})
    await plain.until(partial(plain.get, path), lambda answer: answer.body["spec"]["versionPriority"] == 100)
    await plain.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/beds.{group}")
    await plain.until(partial(plain.get, path), lambda answer: answer.code == 404)


async def test_servers_behind_learn_whom_to_trust(plain: RecordedWire) -> None:
    found = await plain.get("/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")
    data = found.body["data"]
    assert {key: data[key] for key in data if not key.endswith("ca-file")} == {
        "requestheader-allowed-names": '["front-proxy-client"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
        "requestheader-username-headers": '["X-Remote-User"]',
    }
    assert data["requestheader-client-ca-file"].startswith("-----BEGIN CERTIFICATE-----")


async def test_a_namespace_is_kept_while_a_server_behind_cannot_be_asked(
    plain: RecordedWire, namespace: str, controllers: None
) -> None:
    group = f"{namespace}.example.com"
    spec = {
        "group": group,
        "version": "v1",
        "service": {"namespace": "default", "name": "none"},
        "groupPriorityMinimum": 2000,
        "versionPriority": 10,
    }
    assert (await plain.post(SERVICES, {"metadata": {"name": f"v1.{group}"}, "spec": spec})).code == 201
    refused = partial(plain.get, f"/apis/{group}/v1")
    await plain.until(refused, lambda answer: answer.code == 503)
    space = f"/api/v1/namespaces/{namespace}"
    await plain.delete(space)

    def failing(answer: Answer) -> bool:
        conditions = answer.body.get("status", {}).get("conditions") or ()
        return any(
            each["type"] == "NamespaceDeletionDiscoveryFailure" and each["status"] == "True" for each in conditions
        )

    shown = await plain.until(partial(plain.get, space), failing)
    [condition] = [
        each for each in shown.body["status"]["conditions"] if each["type"] == "NamespaceDeletionDiscoveryFailure"
    ]
    stale = f"{group}/v1: stale GroupVersion discovery: {group}/v1"
    assert (condition["reason"], condition["message"]) == (
        "DiscoveryFailed",
        "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: " + stale,
    )
    await plain.delete(f"{SERVICES}/v1.{group}")
    await plain.until(partial(plain.get, space), lambda answer: answer.code == 404)
