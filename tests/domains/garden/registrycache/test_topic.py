"""Registry caches on a seed and in a Shoot, as gardenlet asks for them; all through real sockets."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from cryptography import x509
from tests.domains.garden.registrycache.test_config import RESOURCES, caches
from tests.domains.garden.world import SeedWorld, add_user, shoot_document
from tests.waiting import until

from hortus.domains.garden.extension.composition import SeedView
from hortus.domains.garden.extension.topic import ExtensionTopic
from hortus.domains.garden.rbac import permissions
from hortus.domains.garden.registrycache import TOPIC
from hortus.domains.garden.registrycache.config import read_caches
from hortus.domains.garden.registrycache.names import CERTIFICATES, SECRETS, SERVICES
from hortus.domains.garden.registrycache.topic import CacheEndpoint, CacheStatus, CacheTopic, node_parts
from hortus.domains.garden.types import EXTENSIONS, MANAGED_RESOURCES
from hortus.engine.rbac import policy_rules
from hortus.engine.remote import RemoteSettings
from hortus.engine.serving import ReviewRequest
from hortus.kube import Client, Resource, yaml
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer

TYPE = "registry-cache"
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")


class CachedShoot:
    """One Shoot with its own logical cluster."""

    number = 0

    def __init__(self, seed: SeedWorld, client: Client, name: str) -> None:
        self.seed = seed
        self.client = client
        self.name = name
        self.id = f"shoot--bar--{name}"

    async def write(self, **spec: Any) -> None:
        await self.seed.add_shoot(shoot_document(self.name, resources=RESOURCES, **spec))

    async def object(self, resource: Resource, name: str) -> Object:
        return await self.client.get(resource, name, "kube-system")

    async def rendered(self) -> list[Object]:
        found = await self.seed.there(SECRETS, "managedresource-extension-registry-cache", self.id)
        return [one for text in found["data"].values() for one in yaml.load_all(base64.b64decode(text))]


@asynccontextmanager
async def cached_shoot(seed: SeedWorld, server: TestServer) -> AsyncIterator[CachedShoot]:
    CachedShoot.number += 1
    name = f"cached{CachedShoot.number}"
    server.create_cluster(f"shoot--bar--{name}")
    async with Client.from_kubeconfig(server.kubeconfig_for(f"shoot--bar--{name}")) as client:
        made = CachedShoot(seed, client, name)
        await made.write()
        text = server.kubeconfig_for(made.id).read_bytes()
        data = {"kubeconfig": base64.b64encode(text).decode()}
        await seed.create(SECRETS, "gardener", made.id, data=data)
        yield made


@pytest.fixture
async def shoot(seed: SeedWorld, server: TestServer) -> AsyncIterator[CachedShoot]:
    async with cached_shoot(seed, server) as made:
        yield made


@asynccontextmanager
async def running(seed: SeedWorld, *, resources: bool = True, user: str = "") -> AsyncIterator[ExtensionTopic]:
    def make(view: SeedView) -> CacheTopic:
        return CacheTopic("registry:3", view, RemoteSettings(deny=()))

    async with seed.running(make, resources=resources, user=user) as (made,):
        yield made


async def test_a_cache_runs_in_the_shoot_and_reports_its_address(seed: SeedWorld, shoot: CachedShoot) -> None:
    values = {"username": "anna", "password": "c4n4ry"}
    await seed.create(SECRETS, "ref-user-object", shoot.id, stringData=values, immutable=True)
    entry = {"upstream": "quay.io", "secretReferenceName": "user", "highAvailability": {"enabled": True}}
    plain = {"upstream": "my.io:5000", "http": {"tls": False}, "proxy": {"httpsProxy": "http://proxy.example.org:3128"}}
    async with running(seed):
        await seed.add_extension(shoot.id, TYPE, caches(entry, plain))
        found = await seed.operated(shoot.id, TYPE)
        address = (await shoot.object(SERVICES, "registry-quay-io"))["spec"]["clusterIP"]
        other = (await shoot.object(SERVICES, "registry-my-io-5000"))["spec"]["clusterIP"]
        status = found["status"]["providerStatus"]
        assert (status["apiVersion"], status["kind"]) == (
            "registry.extensions.gardener.cloud/v1alpha3",
            "RegistryStatus",
        )
        assert status["caches"] == [
            {"upstream": "quay.io", "endpoint": f"https://{address}:5000", "remoteURL": "https://quay.io"},
            {"upstream": "my.io:5000", "endpoint": f"http://{other}:5000", "remoteURL": "https://my.io:5000"},
        ]
        bundle = await seed.there(SECRETS, status["caSecretName"], shoot.id)
        rendered = {f"{one['kind']} {one['metadata']['name']}": one for one in await shoot.rendered()}
        kinds = sorted(name.partition(" ")[0] for name in rendered)
        assert kinds == ["PodDisruptionBudget", *["Secret"] * 3, *["Service"] * 2, *["StatefulSet"] * 2]
        tls = next(one for name, one in rendered.items() if name.startswith("Secret registry-quay-io-tls-"))
        certificate = x509.load_pem_x509_certificate(base64.b64decode(tls["data"]["tls.crt"]))
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == [address]
        (authority,) = x509.load_pem_x509_certificates(base64.b64decode(bundle["data"]["bundle.crt"]))
        certificate.verify_directly_issued_by(authority)
        config = next(one for name, one in rendered.items() if name.startswith("Secret registry-quay-io-config-"))
        assert yaml.load(base64.b64decode(config["data"]["config.yml"]))["proxy"] == {
            "remoteurl": "https://quay.io",
            "ttl": "168h0m0s",
            "username": "anna",
            "password": "c4n4ry",
        }
        others = [one for one in rendered.values() if one["kind"] != "Secret"]
        assert "c4n4ry" not in str(others) + str(found)
        pods = rendered["StatefulSet registry-quay-io"]["spec"]
        assert (pods["replicas"], rendered["StatefulSet registry-my-io-5000"]["spec"]["replicas"]) == (2, 1)
        (container,) = rendered["StatefulSet registry-my-io-5000"]["spec"]["template"]["spec"]["containers"]
        assert {"name": "HTTPS_PROXY", "value": "http://proxy.example.org:3128"} in container["env"]


async def test_a_cache_that_is_removed_goes_with_its_service_and_the_others_keep_their_certificate(
    seed: SeedWorld, shoot: CachedShoot
) -> None:
    async with running(seed):
        await seed.add_extension(shoot.id, TYPE, caches({"upstream": "quay.io"}, {"upstream": "ghcr.io"}))
        await seed.operated(shoot.id, TYPE)
        before = await seed.there(SECRETS, CERTIFICATES, shoot.id)
        await until(lambda: _there(shoot, "registry-ghcr-io"))
        await seed.configure(shoot.id, TYPE, caches({"upstream": "quay.io"}))
        await seed.operated(shoot.id, TYPE, kind="Reconcile")
        after = await seed.there(SECRETS, CERTIFICATES, shoot.id)
        assert after["data"]["registry-quay-io.crt"] == before["data"]["registry-quay-io.crt"]
        assert "registry-ghcr-io.crt" not in after["data"]
        await until(lambda: _gone(shoot, "registry-ghcr-io"))
        await seed.client.delete(EXTENSIONS, TYPE, shoot.id)
        await seed.gone(EXTENSIONS, TYPE, shoot.id)
        await seed.gone(MANAGED_RESOURCES, "extension-registry-cache", shoot.id)
        assert await seed.get(SECRETS, CERTIFICATES, shoot.id) is None
        await until(lambda: _gone(shoot, "registry-quay-io"))


async def _names(shoot: CachedShoot) -> set[str]:
    found = [*(await shoot.client.list(SERVICES, "kube-system")).items]
    found += (await shoot.client.list(STATEFUL_SETS, "kube-system")).items
    return {f"{one['metadata']['name']}" for one in found}


async def _there(shoot: CachedShoot, name: str) -> bool:
    return name in await _names(shoot)


async def _gone(shoot: CachedShoot, name: str) -> bool:
    return name not in await _names(shoot)


async def test_a_shoot_that_hibernates_keeps_its_report(seed: SeedWorld, shoot: CachedShoot) -> None:
    async with running(seed):
        await seed.add_extension(shoot.id, TYPE, caches({"upstream": "quay.io"}))
        before = (await seed.operated(shoot.id, TYPE))["status"]["providerStatus"]
        await shoot.write(hibernation={"enabled": True})

        async def reconciled() -> bool:
            found = (await seed.extension(shoot.id, TYPE))["status"]
            return bool(found["providerStatus"]["dependencies"] != before["dependencies"])

        await until(reconciled)
        after = (await seed.operated(shoot.id, TYPE))["status"]["providerStatus"]
        assert {**after, "dependencies": ""} == {**before, "dependencies": ""}


ACCOUNT = json.dumps({"type": "service_account", "project_id": "p"})


@pytest.mark.parametrize(
    ("values", "immutable", "problem"),
    [
        ({"username": "a", "password": "c4n4ry"}, False, "must be immutable and have username and password alone"),
        ({"username": "a"}, True, "must be immutable and have username and password alone"),
        ({"username": "a", "password": "c4n4ry", "more": ""}, True, "must be immutable and have username and password"),
        ({"username": "a b", "password": "c4n4ry"}, True, "has an empty username or password, or spaces"),
        ({"username": "a", "password": " "}, True, "has an empty username or password, or spaces"),
        ({"username": "_json_key", "password": "c4n4ry"}, True, "has no service account in JSON"),
        ({"username": "_json_key", "password": '{"credential_source": "c4n4ry"}'}, True, "credential_source"),
        ({"username": "_json_key", "password": ACCOUNT}, True, ""),
    ],
)
async def test_credentials_follow_the_rules_of_the_go_extension(
    seed: SeedWorld, shoot: CachedShoot, values: dict[str, str], immutable: bool, problem: str
) -> None:
    await seed.create(SECRETS, "ref-user-object", shoot.id, stringData=values, immutable=immutable)
    async with running(seed):
        await seed.add_extension(shoot.id, TYPE, caches({"upstream": "quay.io", "secretReferenceName": "user"}))
        if not problem:
            await seed.operated(shoot.id, TYPE)
            return
        error = (await seed.operated(shoot.id, TYPE, "Error"))["status"]["lastError"]
        assert problem in error["description"]
        assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
        assert "c4n4ry" not in error["description"]


async def test_credentials_that_are_missing_are_waited_for(seed: SeedWorld, shoot: CachedShoot) -> None:
    async with running(seed):
        await seed.add_extension(shoot.id, TYPE, caches({"upstream": "quay.io", "secretReferenceName": "user"}))
        error = (await seed.operated(shoot.id, TYPE, "Error"))["status"]["lastError"]
        assert f"Secret {shoot.id}/ref-user-object does not exist" in error["description"]
        assert "codes" not in error
        values = {"username": "anna", "password": "x"}
        await seed.create(SECRETS, "ref-user-object", shoot.id, stringData=values, immutable=True)
        await seed.ask(shoot.id, TYPE, "reconcile")
        await seed.operated(shoot.id, TYPE)


async def test_nodes_ask_the_cache_first_once_it_is_reported(seed: SeedWorld, shoot: CachedShoot) -> None:
    config = caches({"upstream": "quay.io"})
    await shoot.write(extensions=[{"type": TYPE, "providerConfig": config}])
    nodes = {
        "metadata": {"name": "pool", "namespace": shoot.id},
        "spec": {"purpose": "reconcile", "files": [], "units": [], "criConfig": {"name": "containerd"}},
    }
    async with running(seed) as topic:
        (hook,) = topic.webhooks()
        request = ReviewRequest(uid="1", operation="UPDATE", object=nodes)

        async def judged() -> Any:
            verdict = await hook.judge(request)
            return verdict if verdict.code == 503 and "reports no caches yet" in verdict.message else None

        await until(judged)
        await seed.add_extension(shoot.id, TYPE, config)
        status = (await seed.operated(shoot.id, TYPE))["status"]["providerStatus"]

        async def patched() -> Any:
            return (await hook.judge(request)).patch

        operations = {one["path"]: one["value"] for one in await until(patched)}
        path = f"/etc/containerd/certs.d/{status['caSecretName']}.crt"
        (file,) = operations["/spec/files"]
        assert file["path"] == path
        assert file["content"] == {"secretRef": {"name": status["caSecretName"], "dataKey": "bundle.crt"}}
        (registry,) = operations["/spec/criConfig/containerd"]["registries"]
        assert registry == {
            "upstream": "quay.io",
            "server": "https://quay.io",
            "hosts": [
                {
                    "url": status["caches"][0]["endpoint"],
                    "capabilities": ["pull", "resolve"],
                    "caCerts": [path],
                }
            ],
            "readinessProbe": True,
        }


def test_a_cache_that_is_reported_no_more_leaves_nodes() -> None:
    found = read_caches(caches({"upstream": "quay.io"}), "").caches
    status = CacheStatus(
        caches=[
            CacheEndpoint(upstream="quay.io", endpoint="http://10.0.0.1:5000"),
            CacheEndpoint(upstream="ghcr.io", endpoint="http://10.0.0.2:5000"),
        ]
    )
    parts = node_parts(found, status)
    assert [one.upstream for one in parts.registries] == ["quay.io"]
    assert parts.files == ()
    assert parts.registries[0].hosts[0].authorities == ()


async def test_the_permissions_of_the_chart_are_enough_for_caches(seed: SeedWorld, shoot: CachedShoot) -> None:
    """A denied request would be reported as an error of the operation."""
    await add_user(seed, policy_rules(permissions([TOPIC])))
    values = {"username": "anna", "password": "x"}
    await seed.create(SECRETS, "ref-user-object", shoot.id, stringData=values, immutable=True)
    async with running(seed, user="extension"):
        await seed.add_extension(shoot.id, TYPE, caches({"upstream": "quay.io", "secretReferenceName": "user"}))
        made = await seed.operated(shoot.id, TYPE, kind="Create")
        assert "lastError" not in made["status"]
        await seed.client.delete(EXTENSIONS, TYPE, shoot.id)
        # A deletion that is denied anything leaves the Extension, and this times out.
        await seed.gone(EXTENSIONS, TYPE, shoot.id)
