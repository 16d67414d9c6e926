"""The Deployment of the chart: the command that the real helm renders, with its arguments and the permissions of its
account, before an API server of ours and the original, shows a page to a viewer with a token."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
from tests.dashboard.conftest import ACCOUNTS, CLUSTER_BINDINGS, CLUSTER_ROLES, CRDS, HOME, NAMESPACES, make_cluster
from tests.oracles.controlplane import RealServer
from tests.render.oracles import find_helm
from tests.waiting import until
from yarl import URL

from hortus.dashboard.server import COOKIE
from hortus.domains import all_domains, free_port
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine.serving.issuing import issued
from hortus.kube import Client, Resource, yaml
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object
from hortus.schema import crd
from hortus.testing.apiserver import TestServer

CHART = Path(__file__).resolve().parents[2] / "charts" / "hortus"
PLACE = "hortus-system"
PUBLIC = "https://hortus.example.org"
REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
PERMISSIONS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
CERTIFICATE = "dashboard-tls"


def rendered(**values: str) -> list[Object]:
    """The objects of the chart as the real helm renders them."""
    helm = find_helm()
    if helm is None:
        pytest.skip("no helm: neither on the PATH nor a Go toolchain to build one")
    command = [helm, "template", "hortus", str(CHART), "-n", PLACE, "--kube-version", "v1.34.0"]
    for name, value in {"dashboard.enabled": "true", "garden.secretName": "", **values}.items():
        command += ["--set", f"{name}={value}"]
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    return [one for one in yaml.load_all(made.stdout) if one]


class Pod(NamedTuple):
    """The process of a rendered Deployment, with folders of the test in the places of its volumes."""

    address: str
    tls: ssl.SSLContext
    process: subprocess.Popen[bytes]
    log: Path


@contextmanager
def started(deployment: Object, server: TestServer | RealServer, folder: Path) -> Iterator[Pod]:
    """Starts the one container as a kubelet does: command, arguments, volumes, and the variables of a pod.

    Only the address is another: loopback, and a free port.
    """
    template = deployment["spec"]["template"]["spec"]
    (container,) = template["containers"]
    volumes = {one["name"]: one for one in template["volumes"]}
    mounts = {
        one["mountPath"]: _filled(volumes[one["name"]], server, folder / one["name"])
        for one in container["volumeMounts"]
    }
    port = free_port()
    ports = {"0.0.0.0": "127.0.0.1", str(container["ports"][0]["containerPort"]): str(port)}
    words = [_placed(word, mounts, ports) for word in (*container["command"], *container["args"])]
    address = URL(server.url)
    variables = {
        "KUBERNETES_SERVICE_HOST": str(address.host),
        "KUBERNETES_SERVICE_PORT": str(address.port),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(mounts["/tmp"]),
        **{one["name"]: one["value"] for one in container.get("env", ())},
    }
    log = folder / "log"
    with log.open("wb") as written, subprocess.Popen(words, stderr=written, env=variables) as process:
        try:
            scheme = container["readinessProbe"]["httpGet"]["scheme"].lower()
            tls = ssl.create_default_context(cafile=str(mounts["/tls"] / "tls.crt"))
            tls.check_hostname = False  # the certificate is that of the public address
            yield Pod(f"{scheme}://127.0.0.1:{port}", tls, process, log)
        finally:
            process.terminate()
    assert process.returncode == 0, log.read_text()


def _filled(volume: Mapping[str, Any], server: TestServer | RealServer, folder: Path) -> Path:
    """A folder with what the volume holds in a cluster."""
    folder.mkdir(parents=True)
    if volume.get("configMap", {}).get("name") == "kube-root-ca.crt":
        (folder / "ca.crt").write_bytes(server.ca)
    elif volume.get("secret", {}).get("secretName") == CERTIFICATE:
        now = time.time()
        certificate, key = issued(["hortus.example.org"], begins=now - 60, ends=now + 3600)
        (folder / "tls.crt").write_bytes(certificate)
        (folder / "tls.key").write_text(key.reveal())
    else:
        assert "emptyDir" in volume, volume
    return folder


def _placed(word: str, mounts: Mapping[str, Path], addresses: Mapping[str, str]) -> str:
    """An argument with a path of a volume, or an address, as it is here."""
    name, equals, value = word.partition("=")
    for mount, folder in mounts.items():
        if value.startswith(f"{mount}/"):
            return f"{name}={folder / value.removeprefix(f'{mount}/')}"
    return f"{name}{equals}{addresses.get(value, value)}"


@asynccontextmanager
async def installed(server: TestServer | RealServer, objects: list[Object]) -> AsyncIterator[Client]:
    """A management cluster with the CRDs, one cluster, and the account and the permissions of the chart."""
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        for kind in (kind for domain in all_domains() for kind in domain.kinds().values()):
            await client.apply(CRDS, crd(kind), field_manager="tests")
        for name in (HOME, PLACE):
            await client.create(NAMESPACES, {"metadata": {"name": name}})
        for one in (one for one in objects if one["kind"] in PERMISSIONS):
            await client.apply(_resource(one), one, field_manager="tests")
        await until(lambda: _serves(client, GARDENER_CLUSTERS))
        await make_cluster(client, "one", "Error", "shoot one is gone")
        yield client


async def _serves(client: Client, resource: Resource) -> bool:
    try:
        await client.list(resource, limit=1)
    except NotFound:
        return False
    return True


def _resource(obj: Object) -> Resource:
    group, _, version = obj["apiVersion"].rpartition("/")
    kind = obj["kind"]
    return Resource(group, version, f"{kind.lower()}s", kind, namespaced="namespace" in obj["metadata"])


async def test_the_rendered_deployment_shows_a_page_to_a_viewer_and_may_nothing_itself(
    either_server: TestServer | RealServer, tmp_path: Path
) -> None:
    objects = rendered(**{"dashboard.publicUrl": PUBLIC, "dashboard.tlsSecretName": CERTIFICATE})
    (deployment,) = (
        one for one in objects if one["kind"] == "Deployment" and one["metadata"]["name"].endswith("-dashboard")
    )
    pod_spec = deployment["spec"]["template"]["spec"]
    async with installed(either_server, objects) as admin:
        account = pod_spec["serviceAccountName"]
        assert (await admin.get(ACCOUNTS, account, PLACE))["automountServiceAccountToken"] is False
        assert pod_spec["automountServiceAccountToken"] is False
        for verb, resource in (("list", "gardenerclusters"), ("get", "secrets"), ("impersonate", "users")):
            asked = {
                "user": f"system:serviceaccount:{PLACE}:{account}",
                "resourceAttributes": {"verb": verb, "resource": resource, "group": "*"},
            }
            answer = await admin.create(
                REVIEWS, {"apiVersion": REVIEWS.api_version, "kind": REVIEWS.kind, "spec": asked}
            )
            assert answer["status"]["allowed"] is False, resource
        token = await _viewer(admin)
        with started(deployment, either_server, tmp_path) as pod:
            async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
                browser = _Browser(session, pod)
                await until(browser.ready)
                anonymous = await browser.ask("GET", "/clusters")
                assert anonymous.status == 303 and anonymous.headers["Location"].startswith("/login")
                signed = await browser.ask("POST", "/login", data={"token": token, "next": "/clusters"})
                assert signed.status == 303, await signed.text()
                cookie = signed.headers["Set-Cookie"].partition(";")[0]
                assert cookie.startswith(COOKIE)
                page = await (await browser.ask("GET", "/clusters", Cookie=cookie)).text()
                document = await (await browser.ask("GET", "/clusters?output=json", Cookie=cookie)).json()
    (row,) = document["rows"]["items"]
    assert (row["name"], row["state"], row["message"]) == ("one", "Error", "shoot one is gone")
    assert "<title>Clusters - Hortus</title>" in page
    assert any("you may not list and watch secrets" in note for note in document["notes"])


async def _viewer(admin: Client) -> str:
    """The token of an account that may read GardenerClusters alone."""
    rules = [{"apiGroups": [GARDENER_CLUSTERS.group], "resources": ["gardenerclusters"], "verbs": ["list", "watch"]}]
    await admin.create(ACCOUNTS, {"metadata": {"name": "viewer", "namespace": HOME}})
    await admin.create(CLUSTER_ROLES, {"metadata": {"name": "viewer"}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "viewer", "namespace": HOME}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "viewer"}
    await admin.create(CLUSTER_BINDINGS, {"metadata": {"name": "viewer"}, "subjects": [subject], "roleRef": role})
    made = await admin.create_subresource(ACCOUNTS, "viewer", "token", {"spec": {"expirationSeconds": 3600}}, HOME)
    return str(made["status"]["token"])


class _Browser:
    """Comes by the public address, through a proxy that hands its Host on."""

    def __init__(self, session: aiohttp.ClientSession, pod: Pod) -> None:
        self._session = session
        self._pod = pod

    async def ready(self) -> bool:
        """The answer of the container's readiness probe."""
        try:
            return (await self.ask("GET", "/healthz")).status == 200
        except aiohttp.ClientConnectorCertificateError:
            raise
        except aiohttp.ClientConnectorError:
            assert self._pod.process.poll() is None, self._pod.log.read_text()
            return False

    async def ask(
        self, method: str, path: str, data: Mapping[str, str] | None = None, **headers: str
    ) -> aiohttp.ClientResponse:
        given = {"Host": URL(PUBLIC).host or "", **({"Origin": PUBLIC} if data else {}), **headers}
        answer = await self._session.request(
            method, self._pod.address + path, data=data, headers=given, ssl=self._pod.tls, allow_redirects=False
        )
        await answer.read()
        return answer
